//! When keys are fetched, who waits for them, and what is used while they cannot be.

use std::collections::VecDeque;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolgate_model::principal::TenantId;
use toolgate_model::token_subject::IssuerUrl;
use toolgate_testkit::token_signer::TokenSigner;

use super::*;

const ES256: SignatureAlgorithm = SignatureAlgorithm::Es256;

/// Answers each fetch with the next of these, and the last one again and again, as soon as it is allowed to.
struct Script {
    answers: Mutex<VecDeque<Result<Value, u16>>>,
    asked: Mutex<Vec<String>>,
    allowed: Semaphore,
}

#[async_trait]
impl IssuerLink for Script {
    async fn get(&self, url: &str, _: Duration) -> Result<IssuerDocument, IssuerFailure> {
        self.asked.lock().unwrap().push(url.to_owned());
        self.allowed.acquire().await.unwrap().forget();
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop_front().unwrap() } else { answers[0].clone() };
        match answer {
            Ok(body) => Ok(IssuerDocument { status: 200, body: body.to_string().into_bytes() }),
            Err(0) => Err(IssuerFailure("no connection".to_owned())),
            Err(status) => Ok(IssuerDocument { status, body: Vec::new() }),
        }
    }
}

fn set(signers: &[&TokenSigner]) -> Result<Value, u16> {
    Ok(json!({"keys": signers.iter().map(|signer| signer.jwk()).collect::<Vec<_>>()}))
}

fn keys(jwks_uri: Option<&str>, answers: Vec<Result<Value, u16>>) -> (Arc<IssuerKeys>, Arc<Script>) {
    let script = Arc::new(Script {
        answers: Mutex::new(answers.into()),
        asked: Mutex::default(),
        allowed: Semaphore::new(1000),
    });
    let settings = IssuerSettings {
        issuer: IssuerUrl::parse("https://login.example.com").unwrap(),
        audiences: Vec::new(),
        algorithms: vec![ES256],
        jwks_uri: jwks_uri.map(str::to_owned),
        subject_claim: "sub".to_owned(),
        required_scopes: Vec::new(),
        tenant: TenantId::default_tenant(),
    };
    (Arc::new(IssuerKeys::new(Arc::new(settings), script.clone())), script)
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_770_000_000_000 + seconds * 1000).unwrap()
}

async fn code(keys: &Arc<IssuerKeys>, id: &str, seconds: i64) -> Option<Code> {
    keys.key(Some(id), ES256, at(seconds)).await.err().map(|refusal| refusal.code())
}

#[tokio::test]
async fn unknown_keys_cause_one_fetch_in_thirty_seconds() {
    let (one, two) = (TokenSigner::es256("1"), TokenSigner::es256("2"));
    let (keys, script) = keys(Some("https://k.example"), vec![set(&[&one]), set(&[&one, &two])]);
    assert_eq!(code(&keys, "1", 0).await, None);
    for _ in 0..100 {
        assert_eq!(code(&keys, "2", 29).await, Some(Code::TokenInvalid));
    }
    assert_eq!(script.asked.lock().unwrap().len(), 1);
    assert_eq!(code(&keys, "2", 30).await, None, "a rotated key is found");
    assert_eq!(code(&keys, "3", 31).await, Some(Code::TokenInvalid));
    assert_eq!(script.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn many_wait_for_one_fetch_and_those_with_a_known_key_for_none() {
    let (one, two) = (TokenSigner::es256("1"), TokenSigner::es256("2"));
    let (keys, script) = keys(Some("https://k.example"), vec![set(&[&one]), set(&[&one, &two])]);
    assert_eq!(code(&keys, "1", 0).await, None);
    script.allowed.forget_permits(999);
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let keys = Arc::clone(&keys);
            tokio::spawn(async move { code(&keys, "2", 60).await })
        })
        .collect();
    while script.asked.lock().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(code(&keys, "1", 60).await, None, "it does not wait");
    // One of those that wait disconnects; the fetch goes on.
    waiting[0].abort();
    script.allowed.add_permits(1);
    for task in waiting.into_iter().skip(1) {
        assert_eq!(task.await.unwrap(), None);
    }
    assert_eq!(script.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn the_last_good_set_is_used_for_a_day_while_fetches_fail() {
    let one = TokenSigner::es256("1");
    let failures = [Err(0), Err(500), Err(302), Ok(json!("no set")), Ok(json!({"keys": "none"}))];
    let answers = [set(&[&one])].into_iter().chain(failures).collect();
    let (keys, script) = keys(Some("https://k.example"), answers);
    assert_eq!(code(&keys, "1", 0).await, None);
    let day = 24 * 60 * 60;
    for seconds in [301, 400, 500, 600, 700, day - 1] {
        assert_eq!(code(&keys, "1", seconds).await, None, "{seconds}");
        // The fetch in the background ends before the next one may begin.
        while keys.state().fetch.as_ref().is_some_and(|fetch| fetch.has_changed().is_ok()) {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(script.asked.lock().unwrap().len(), 7);
    assert_eq!(code(&keys, "1", day).await, Some(Code::IssuerUnavailable));
    assert_eq!(keys.version(at(day)), None);
}

#[tokio::test]
async fn without_any_keys_nobody_is_let_in_and_the_next_fetch_is_soon() {
    let one = TokenSigner::es256("1");
    let (keys, script) = keys(Some("https://k.example"), vec![Err(0), set(&[&one])]);
    assert_eq!(code(&keys, "1", 0).await, Some(Code::IssuerUnavailable));
    assert_eq!(code(&keys, "1", 4).await, Some(Code::IssuerUnavailable));
    assert_eq!(script.asked.lock().unwrap().len(), 1);
    assert_eq!(code(&keys, "1", 5).await, None);
}

#[tokio::test]
async fn a_withdrawn_key_is_refused_after_the_set_was_fetched_again() {
    let (one, two) = (TokenSigner::es256("1"), TokenSigner::es256("2"));
    let (keys, _) = keys(Some("https://k.example"), vec![set(&[&one, &two]), set(&[&two])]);
    assert_eq!(code(&keys, "1", 0).await, None);
    let before = keys.version(at(0));
    // The first use after five minutes fetches the set in the background.
    assert_eq!(keys.refreshed(at(300)), before);
    while keys.version(at(300)) == before {
        tokio::task::yield_now().await;
    }
    assert_eq!(code(&keys, "1", 301).await, Some(Code::TokenInvalid));
    assert_eq!(code(&keys, "2", 301).await, None);
}

#[tokio::test]
async fn the_address_of_the_keys_is_that_of_the_issuers_own_metadata() {
    let one = TokenSigner::es256("1");
    let metadata = |issuer: &str| Ok(json!({"issuer": issuer, "jwks_uri": "https://k.example/set"}));
    let (found, script) = keys(None, vec![Err(404), metadata("https://login.example.com"), set(&[&one])]);
    assert_eq!(code(&found, "1", 0).await, None);
    assert_eq!(
        *script.asked.lock().unwrap(),
        [
            "https://login.example.com/.well-known/openid-configuration",
            "https://login.example.com/.well-known/oauth-authorization-server",
            "https://k.example/set",
        ]
    );
    let (foreign, script) = keys(None, vec![metadata("https://evil.example"), set(&[&one])]);
    assert_eq!(code(&foreign, "1", 0).await, Some(Code::IssuerUnavailable));
    assert_eq!(script.asked.lock().unwrap().len(), 1, "its keys are not even fetched");
}
