//! Policies: applied ones are active at once on every replica, every version is kept, and no call is admitted on the
//! decision of another version.

use std::sync::Arc;

use futures_util::future::join;
use serde_json::json;
use toolgate_gate::ports::ledger::{Admission, ApplyPolicies, ApplyService, Freshness, PageRequest, PolicyChange};
use toolgate_gate::refusal::Code;
use toolgate_model::canonical::to_canonical;
use toolgate_model::guard::{PolicyFile, PolicySetVersion};
use toolgate_model::merkle::sha256;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

use super::services::definition;
use super::support::calls::{Caller, another};
use super::support::guarding::{application, apply, files, policies};
use super::support::{detail, number, refused, run};

contract!(
    without_any_there_is_no_version,
    a_set_is_active_once_it_is_applied,
    every_version_stays_as_it_was_applied,
    versions_are_listed_newest_first,
    every_change_of_policies_is_recorded_with_its_reason,
    whoever_has_not_seen_the_active_version_changes_nothing,
    of_two_who_apply_at_once_on_the_same_version_one_does,
    all_that_is_applied_at_once_gets_a_number_of_its_own,
    another_replica_tells_a_set_that_was_just_applied,
    what_did_not_change_is_the_same_in_memory,
    policies_and_services_count_apart,
    the_policies_of_a_tenant_are_its_own,
    a_call_that_older_policies_have_judged_is_stale,
    a_call_that_nothing_has_judged_is_stale_once_there_are_policies,
    an_active_version_whose_text_is_gone_closes_the_gate,
);

async fn version(tenant: &TestTenant, number: u64) -> Option<PolicySetVersion> {
    tenant.ledger.policy_version(&tenant.id, number).await.unwrap()
}

async fn without_any_there_is_no_version(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let found = policies(&tenant).await;
    assert_eq!((found.revision, found.active.is_none()), (0, true));
    assert_eq!((version(&tenant, 0).await, version(&tenant, 1).await), (None, None));
}

async fn a_set_is_active_once_it_is_applied(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    for number in 1..=3 {
        tenant.wait(5);
        let note = Some(format!("the {number}. try, mit Umlauten: äöü"));
        let text = format!("forbid (principal, action, resource); // {number}\u{0}\n");
        let command = ApplyPolicies { note, ..application(&tenant, &text) };

        let made = tenant.ledger.apply_policies(command.clone()).await.unwrap();

        let canonical = to_canonical(&json!([{"name": "main.cedar", "text": text}]));
        let expected = PolicySetVersion {
            version: number,
            files: command.files,
            digest: sha256(&canonical).to_hex(),
            note: command.note,
            applied_by: tenant.administrator.clone(),
            created_at: tenant.now(),
        };
        assert_eq!(made, expected);
        let found = policies(&tenant).await;
        assert_eq!((found.revision, found.active.as_deref()), (number, Some(&expected)));
    }
}

async fn every_version_stays_as_it_was_applied(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let first = apply(&tenant, "one").await;
    tenant.wait(5);
    let empty = ApplyPolicies { files: Vec::new(), ..application(&tenant, "") };
    let second = tenant.ledger.apply_policies(empty).await.unwrap();
    let many = ["b.cedar", "a.cedar"].map(|name| PolicyFile { name: name.to_owned(), text: name.to_owned() });
    let third = ApplyPolicies { files: many.to_vec(), ..application(&tenant, "") };
    let third = tenant.ledger.apply_policies(third).await.unwrap();
    assert_eq!(third.files, many, "in the order in which they were given");
    let again = ApplyPolicies { change: PolicyChange::RolledBack { to: 1 }, ..application(&tenant, "one") };
    let fourth = tenant.ledger.apply_policies(again).await.unwrap();
    assert_eq!((fourth.version, &fourth.digest), (4, &first.digest), "the same text is a version of its own");
    for made in [first, second, third, fourth] {
        assert_eq!(version(&tenant, made.version).await, Some(made));
    }
}

async fn versions_are_listed_newest_first(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    for number in 1..=12 {
        apply(&tenant, &number.to_string()).await;
    }
    let mut page = PageRequest::first(5);
    let mut listed = Vec::new();
    loop {
        let found = tenant.ledger.policy_versions(&tenant.id, page).await.unwrap();
        listed.extend(found.items.into_iter().map(|set| (set.version, set.files)));
        let Some(next) = found.next else { break };
        page = PageRequest { after: Some(next), limit: 5 };
    }
    let expected: Vec<_> = (1..=12).rev().map(|number| (number, files(&number.to_string()))).collect();
    assert_eq!(listed, expected);
    let foreign = PageRequest { after: Some("the last one".to_owned()), limit: 5 };
    refused(&tenant, Code::InvalidCursor, tenant.ledger.policy_versions(&tenant.id, foreign)).await;
}

async fn every_change_of_policies_is_recorded_with_its_reason(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let changes = [
        (PolicyChange::Applied, json!("applied"), json!(null)),
        (PolicyChange::RolledBack { to: 1 }, json!("rolled_back"), json!("1")),
        (PolicyChange::Promoted { policy: "no-sundays".to_owned() }, json!("promoted"), json!("no-sundays")),
    ];
    for (number, (change, word, subject)) in changes.into_iter().enumerate() {
        let command = ApplyPolicies { change, note: Some("why".to_owned()), ..application(&tenant, "text") };
        let made = tenant.ledger.apply_policies(command).await.unwrap();
        let event = tenant.events().await.pop().unwrap();
        assert_eq!((&event["type"], &event["actor"]), (&json!("policies.changed"), &json!("admin")));
        assert_eq!((&event["agent_id"], &event["timestamp"]), (&json!(null), &json!(tenant.now())));
        let data = json!({
            "version": number + 1, "change": word, "subject": subject, "rules": 2, "shadowed": 1,
            "digest": made.digest, "note": "why",
        });
        assert_eq!(event["data"], data);
    }
}

async fn whoever_has_not_seen_the_active_version_changes_nothing(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let on = |expected, text: &str| {
        let command = ApplyPolicies { expected: Some(expected), ..application(&tenant, text) };
        tenant.ledger.apply_policies(command)
    };
    refused(&tenant, Code::VersionConflict, on(1, "none is active")).await;
    on(0, "first").await.unwrap();
    on(1, "second").await.unwrap();
    for expected in [0, 1, 3] {
        let refusal = refused(&tenant, Code::VersionConflict, on(expected, "lost")).await;
        assert_eq!(detail(&refusal, "active_version"), json!(2));
        assert!(refusal.reason().contains("version 2"), "{refusal}");
    }
    let found = policies(&tenant).await;
    assert_eq!((found.revision, &found.active.as_ref().unwrap().files), (2, &files("second")), "not even counted");
    assert_eq!(version(&tenant, 3).await, None);
    assert_eq!(on(2, "third").await.unwrap().version, 3);
}

async fn of_two_who_apply_at_once_on_the_same_version_one_does(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let there = tenant.through(fixture.replica().await);
    for active in 0..8 {
        let on = |at: &TestTenant, text: &str| {
            let ledger = Arc::clone(&at.ledger);
            let command = ApplyPolicies { expected: Some(active), ..application(at, text) };
            async move { ledger.apply_policies(command).await }
        };
        let (made, lost) = match join(on(&tenant, "here"), on(&there, "there")).await {
            (Ok(made), Err(lost)) | (Err(lost), Ok(made)) => (made, lost),
            both => panic!("one must win: {both:?}"),
        };
        assert_eq!(lost.code(), Code::VersionConflict, "{lost}");
        for at in [&tenant, &there] {
            assert_eq!(policies(at).await.active.as_deref(), Some(&made));
        }
    }
    assert_eq!(tenant.events_of("policies.changed").await.len(), 8);
}

async fn all_that_is_applied_at_once_gets_a_number_of_its_own(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let replicas = [tenant.clone(), tenant.through(fixture.replica().await)];
    let applied = (0..24).map(|number| apply(&replicas[number % 2], "text"));
    let mut numbers: Vec<_> =
        futures_util::future::join_all(applied).await.into_iter().map(|made| made.version).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=24).collect::<Vec<_>>());
    for replica in &replicas {
        assert_eq!(policies(replica).await.revision, 24);
    }
}

async fn another_replica_tells_a_set_that_was_just_applied(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let there = tenant.through(fixture.replica().await);
    let told = async |at: &TestTenant, freshness| {
        at.ledger.policies(&at.id, at.now(), freshness).await.unwrap().active.as_ref().map(|set| set.files.clone())
    };
    assert_eq!((told(&tenant, Freshness::Recent).await, told(&there, Freshness::Recent).await), (None, None));
    for text in ["one", "two"] {
        apply(&tenant, text).await;
        assert_eq!(told(&tenant, Freshness::Recent).await, Some(files(text)), "whoever changed them knows");
        assert_eq!(told(&there, Freshness::Newest).await, Some(files(text)), "and whoever asks for the newest");
    }
    apply(&tenant, "three").await;
    tenant.wait(1);
    assert_eq!(told(&there, Freshness::Recent).await, Some(files("three")), "and everybody a second later");
}

async fn what_did_not_change_is_the_same_in_memory(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    apply(&tenant, "one").await;
    let before = policies(&tenant).await;
    assert!(Arc::ptr_eq(&before, &policies(&tenant).await));

    tenant.agent("newcomer").await;
    tenant.wait(3600);

    let after = policies(&tenant).await;
    assert!(after.generation > before.generation, "another change came between");
    assert_eq!(after.generation, tenant.ledger.generation());
    assert!(Arc::ptr_eq(after.active.as_ref().unwrap(), before.active.as_ref().unwrap()), "not of the policies");
    apply(&tenant, "one").await;
    assert!(!Arc::ptr_eq(policies(&tenant).await.active.as_ref().unwrap(), before.active.as_ref().unwrap()));
}

async fn policies_and_services_count_apart(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let counted = async || {
        let registry = tenant.ledger.registry(&tenant.id, tenant.now(), Freshness::Newest).await.unwrap();
        (registry.revision, policies(&tenant).await.revision)
    };
    apply(&tenant, "one").await;
    assert_eq!(counted().await, (0, 1));
    let definition = definition("stripe", "1");
    tenant.ledger.apply_service(ApplyService { audit: tenant.audit(), definition, replace: true }).await.unwrap();
    assert_eq!(counted().await, (1, 1));
    apply(&tenant, "two").await;
    assert_eq!(counted().await, (1, 2));
}

async fn the_policies_of_a_tenant_are_its_own(fixture: &LedgerFixture) {
    let (tenant, other) = (fixture.tenant().await, fixture.tenant().await);
    apply(&tenant, "one").await;
    apply(&tenant, "two").await;
    assert_eq!(policies(&other).await.revision, 0);
    assert_eq!(version(&other, 1).await, None);
    assert!(other.ledger.policy_versions(&other.id, PageRequest::first(10)).await.unwrap().items.is_empty());
    assert_eq!(apply(&other, "theirs").await.version, 1);
    assert_eq!(version(&tenant, 1).await.unwrap().files, files("one"));
}

async fn a_call_that_older_policies_have_judged_is_stale(fixture: &LedgerFixture) {
    let here = Caller::new(fixture).await;
    let there = here.at_replica(fixture).await;
    let grant = here.grant(None).await;
    apply(&here.tenant, "one").await;
    let (judged, elsewhere) = (here.call(&grant).await, there.call(&grant).await);
    assert_eq!((judged.policies, elsewhere.policies), (1, 1));
    assert_eq!(here.send(another(&judged)).await, Admission::Admitted);

    apply(&here.tenant, "two").await;

    assert_eq!(here.send(another(&judged)).await, Admission::Stale);
    assert_eq!(there.send(elsewhere).await, Admission::Stale, "at every replica");
    let again = here.call(&grant).await;
    assert_eq!(again.policies, 2);
    assert_eq!(here.send(again.clone()).await, Admission::Admitted);
    let mut unread = another(&again);
    (unread.generation, unread.policies) = (0, 1);
    assert_eq!(here.send(unread).await, Admission::Stale, "whatever else is still so");
    assert_eq!(here.records().await.len(), 2, "what is stale leaves nothing");
    // The policies of others are not those of this call.
    apply(&fixture.tenant().await, "theirs").await;
    assert_eq!(here.send(another(&again)).await, Admission::Admitted);
}

async fn a_call_that_nothing_has_judged_is_stale_once_there_are_policies(fixture: &LedgerFixture) {
    let caller = Caller::new(fixture).await;
    let grant = caller.grant(None).await;
    let unjudged = caller.call(&grant).await;
    assert_eq!(unjudged.policies, 0);
    // The lock of an admission, so that nothing is applied between its read and its end.
    let sql = format!("SELECT COUNT(*) FROM registries WHERE tenant = '{}'", caller.tenant.id);
    assert_eq!(number(fixture, &sql).await, 1);

    apply(&caller.tenant, "first").await;

    assert_eq!(caller.send(unjudged).await, Admission::Stale);
}

async fn an_active_version_whose_text_is_gone_closes_the_gate(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    apply(&tenant, "one").await;
    run(fixture, "DELETE FROM policy_sets").await;
    let read = tenant.ledger.policies(&tenant.id, tenant.now(), Freshness::Newest);
    refused(&tenant, Code::Internal, async { read.await.map(drop) }).await;
}
