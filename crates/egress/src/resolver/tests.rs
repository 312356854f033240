//! Results of name servers, honest and not.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::*;

/// Returns its results one after the other.
struct Fickle(Mutex<VecDeque<Vec<IpAddr>>>);

#[async_trait]
impl Resolve for Fickle {
    async fn resolve(&self, _: &str, _: PoolKey) -> Result<Vec<IpAddr>, LookupError> {
        self.0.lock().unwrap().pop_front().ok_or(LookupError::Failed)
    }
}

fn fickle(answers: &[&[&str]]) -> Fickle {
    let parsed = answers.iter().map(|answer| answer.iter().map(|address| address.parse().unwrap()).collect());
    Fickle(Mutex::new(parsed.collect()))
}

async fn resolve(answers: &[&[&str]], allow: &[&str], private: bool) -> Result<Vec<IpAddr>, SendError> {
    let policy = AddressPolicy::new(allow.iter().map(|network| network.parse().unwrap()).collect());
    resolve_checked(&fickle(answers), &policy, ("api.example.com", private), PoolKey::Notices).await
}

#[tokio::test]
async fn one_forbidden_answer_refuses_the_name() {
    let mixtures: [&[&str]; 6] = [
        &["10.0.0.1"],
        &["8.8.8.8", "10.0.0.1"],
        &["10.0.0.1", "8.8.8.8"],
        &["8.8.8.8", "8.8.4.4", "::1"],
        &["2606:4700::1111", "::ffff:127.0.0.1"],
        &["8.8.8.8", "64:ff9b::a9fe:a9fe"],
    ];
    for answer in mixtures {
        assert!(matches!(resolve(&[answer], &[], false).await, Err(SendError::ForbiddenAddress(_))), "{answer:?}");
    }
}

#[tokio::test]
async fn good_answers_come_out_once_each_and_in_canonical_form() {
    let addresses = resolve(&[&["8.8.8.8", "::ffff:8.8.8.8", "2606:4700::1111"]], &[], false).await.unwrap();
    assert_eq!(addresses, ["8.8.8.8", "2606:4700::1111"].map(|address| address.parse::<IpAddr>().unwrap()));
}

#[tokio::test]
async fn a_name_without_addresses_cannot_be_resolved() {
    let unresolvable = Err(SendError::Unresolvable { host: "api.example.com".to_owned() });
    assert_eq!(resolve(&[&[]], &[], false).await, unresolvable);
    assert_eq!(resolve(&[], &[], false).await, unresolvable);
}

#[tokio::test]
async fn a_private_name_leads_only_to_exempt_addresses() {
    assert!(resolve(&[&["127.0.0.1"]], &["127.0.0.1/32"], true).await.is_ok());
    let public = resolve(&[&["8.8.8.8"]], &["127.0.0.1/32"], true).await;
    assert!(matches!(public, Err(SendError::PrivateName { .. })));
}

#[tokio::test]
async fn a_name_that_turns_private_is_refused_from_then_on() {
    let resolver = fickle(&[&["8.8.8.8"], &["169.254.169.254"]]);
    let policy = AddressPolicy::default();
    assert!(resolve_checked(&resolver, &policy, ("api.example.com", false), PoolKey::Notices).await.is_ok());
    assert!(resolve_checked(&resolver, &policy, ("api.example.com", false), PoolKey::Notices).await.is_err());
}

#[tokio::test]
async fn the_system_knows_this_machine() {
    let addresses = SystemResolver::default().resolve("localhost", PoolKey::Notices).await.unwrap();
    assert!(!addresses.is_empty() && addresses.iter().all(IpAddr::is_loopback));
}
