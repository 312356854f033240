//! Changes of principals: each is one transaction, counted, recorded and visible at once; and unknown tools in an
//! allowlist.

use futures_util::future::join;
use serde_json::{Value, json};
use toolgate_gate::ports::ledger::{CreatePrincipal, Freshness, UpdatePrincipal};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::descriptor::ToolId;
use toolgate_model::key::digest_of;
use toolgate_model::merkle::sha256;
use toolgate_model::permission::{Permission, PermissionSet};
use toolgate_model::principal::{Principal, PrincipalChanges, PrincipalId, PrincipalKind};
use toolgate_model::principal_scope::{HeldScopes, PrincipalScope};
use toolgate_model::text::{Label, Line};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal};

use super::support::{number, refused};

contract!(
    a_change_is_stored_counted_and_recorded,
    what_is_not_named_stays_as_it_was,
    the_same_again_is_no_change,
    what_was_changed_meanwhile_is_not_changed,
    of_two_changes_at_once_one_is_made,
    who_is_removed_is_not_changed,
    a_change_is_seen_by_whoever_identifies_next,
    what_an_allowlist_names_in_vain_is_recorded_with_it,
    a_stored_scope_that_is_none_any_more_leaves_its_principal_readable,
);

fn scopes(texts: &[&str]) -> HeldScopes {
    texts.iter().map(|text| PrincipalScope::parse(text).unwrap()).collect()
}

fn tool(id: &str) -> ToolId {
    ToolId::parse(id).unwrap()
}

async fn read(tenant: &TestTenant, id: &PrincipalId) -> Principal {
    tenant.ledger.principal(&tenant.id, id).await.unwrap().unwrap()
}

fn command(tenant: &TestTenant, id: &PrincipalId, revision: u64, changes: PrincipalChanges) -> UpdatePrincipal {
    let (audit, id) = (tenant.audit(), id.clone());
    UpdatePrincipal { audit, id, expected_revision: revision, changes, unresolved: Vec::new() }
}

async fn change(
    tenant: &TestTenant,
    id: &PrincipalId,
    revision: u64,
    changes: PrincipalChanges,
) -> Result<Principal, Refusal> {
    tenant.ledger.update_principal(command(tenant, id, revision, changes)).await
}

fn renamed(name: &str) -> PrincipalChanges {
    PrincipalChanges { name: Some(Some(Line::parse(name).unwrap())), ..PrincipalChanges::default() }
}

fn everything() -> PrincipalChanges {
    PrincipalChanges {
        name: Some(Some(Line::parse("Billing").unwrap())),
        scopes: Some(scopes(&["tools:*", "http:fetch"])),
        permissions: Some([Permission::DelegateTools].into_iter().collect()),
        rate_limits: Some(serde_json::from_value(json!({"*": {"requests": 5, "per_seconds": 1}})).unwrap()),
        tool_allowlist: Some(Some([tool("openwop:http.fetch")].into())),
        labels: Some([Label::parse("team:payments").unwrap(), Label::parse("trusted").unwrap()].into()),
        detach_calls: Some(true),
        progressive_discovery: Some(true),
        budget: Some(serde_json::from_value(json!({"calls_per_day": 5})).unwrap()),
        stopped: None,
    }
}

async fn a_change_is_stored_counted_and_recorded(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = tenant.agent("billing").await;
    tenant.wait(5);

    let changed = change(&tenant, &agent, 1, everything()).await.unwrap();

    let mut expected = tenant.new_principal(&agent);
    expected.created_at = changed.created_at;
    everything().apply(&mut expected);
    assert_eq!(changed, expected);
    assert_eq!(read(&tenant, &agent).await, expected);
    assert_eq!(changed.revision, 2);
    let event = tenant.events().await.pop().unwrap();
    assert_eq!((&event["type"], &event["agent_id"]), (&json!("agent.updated"), &json!("billing")));
    assert_eq!((&event["actor"], &event["timestamp"]), (&json!(tenant.administrator), &json!(tenant.now())));
    let data = json!({
        "agent_id": "billing", "revision": 2, "permissions": ["tools.delegate"], "scopes": ["http:fetch", "tools:*"],
        "changed": [
            "name", "scopes", "permissions", "rate_limits", "tool_allowlist", "labels", "detach_calls",
            "progressive_discovery", "budget"
        ],
        "budget": {"calls_per_day": 5, "warn_at_percent": 80}
    });
    assert_eq!(event["data"], data);
}

async fn what_is_not_named_stays_as_it_was(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = tenant.agent("billing").await;
    let before = change(&tenant, &agent, 1, everything()).await.unwrap();

    let after = change(&tenant, &agent, 2, PrincipalChanges { name: Some(None), ..Default::default() }).await.unwrap();

    assert_eq!(after, Principal { name: None, revision: 3, ..before });
    assert_eq!(read(&tenant, &agent).await, after);
    let event = tenant.events().await.pop().unwrap();
    assert_eq!(event["data"], json!({"agent_id": "billing", "revision": 3, "changed": ["name"]}));
}

async fn the_same_again_is_no_change(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = tenant.agent("billing").await;
    let first = change(&tenant, &agent, 1, everything()).await.unwrap();
    let events = tenant.events().await.len();

    let again = UpdatePrincipal {
        unresolved: vec![tool("connector:a.b")],
        ..command(&tenant, &agent, first.revision, everything())
    };
    let second = tenant.ledger.update_principal(again).await.unwrap();

    assert_eq!(second, first);
    assert_eq!(tenant.events().await.len(), events);
}

async fn what_was_changed_meanwhile_is_not_changed(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = tenant.agent("billing").await;
    let first = change(&tenant, &agent, 1, renamed("first")).await.unwrap();

    for revision in [0, 1, 3] {
        refused(&tenant, Code::VersionConflict, change(&tenant, &agent, revision, everything())).await;
    }

    assert_eq!(read(&tenant, &agent).await, first);
}

async fn of_two_changes_at_once_one_is_made(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let there = tenant.through(fixture.replica().await);
    let agent = tenant.agent("billing").await;

    let (one, other) =
        join(change(&tenant, &agent, 1, renamed("one")), change(&there, &agent, 1, renamed("other"))).await;

    let (made, lost) = match (one, other) {
        (Ok(made), Err(lost)) | (Err(lost), Ok(made)) => (made, lost),
        both => panic!("one must win: {both:?}"),
    };
    assert_eq!(lost.code(), Code::VersionConflict);
    assert_eq!(read(&tenant, &agent).await, made);
    assert_eq!(tenant.events_of("agent.updated").await.len(), 1);
}

async fn who_is_removed_is_not_changed(fixture: &LedgerFixture) {
    let (tenant, other) = (fixture.tenant().await, fixture.tenant().await);
    let agent = tenant.agent("billing").await;
    refused(&other, Code::AgentNotFound, change(&other, &agent, 1, everything())).await;
    tenant.remove(&agent).await.unwrap();
    let removed = read(&tenant, &agent).await;
    for id in [&agent, &principal("nobody")] {
        refused(&tenant, Code::AgentNotFound, change(&tenant, id, 1, everything())).await;
    }
    assert_eq!(read(&tenant, &agent).await, removed);
}

async fn a_change_is_seen_by_whoever_identifies_next(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let there = tenant.through(fixture.replica().await);
    let agent = tenant.agent("billing").await;
    tenant.key(&agent, "secret").await;
    let told = async |at: &TestTenant| {
        let found = at.ledger.identify(&digest_of("secret"), at.now(), Freshness::Newest).await.unwrap().unwrap();
        (found.0.revision, found.0.permissions.clone(), found.0.scopes.clone())
    };
    let before = (1, PermissionSet::of_an_agent(), HeldScopes::default());
    assert_eq!((told(&tenant).await, told(&there).await), (before.clone(), before));

    let changed = change(&tenant, &agent, 1, everything()).await.unwrap();

    let now = (2, changed.permissions, changed.scopes);
    assert_eq!((told(&tenant).await, told(&there).await), (now.clone(), now));
}

async fn what_an_allowlist_names_in_vain_is_recorded_with_it(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let missing = [tool("connector:stripe.charges.raed"), tool("openwop:http.get")];
    let forbidden = |agent: &str, tool: &ToolId| -> Value {
        let call = format!("forbidden:{}", sha256(tool.as_str().as_bytes()).to_hex());
        json!({"agentId": agent, "callId": call, "status": "forbidden", "toolName": tool})
    };
    let recorded = async || {
        let events = tenant.events_of("agent.toolReturned").await;
        events.into_iter().map(|event| (event["agent_id"].clone(), event["data"].clone())).collect::<Vec<_>>()
    };

    let agent = tenant.agent("billing").await;
    let given = PrincipalChanges { tool_allowlist: Some(Some(missing.clone().into())), ..Default::default() };
    let command = UpdatePrincipal { unresolved: missing.to_vec(), ..command(&tenant, &agent, 1, given) };
    tenant.ledger.update_principal(command).await.unwrap();
    let expected: Vec<_> = missing.iter().map(|tool| (json!("billing"), forbidden("billing", tool))).collect();
    assert_eq!(recorded().await, expected);

    let service = Principal { kind: PrincipalKind::Service, ..tenant.new_principal(&principal("nightly")) };
    let made = Principal { tool_allowlist: Some(missing.clone().into()), ..service };
    let command = CreatePrincipal { unresolved: vec![missing[0].clone()], ..tenant.registration(made) };
    tenant.ledger.create_principal(command).await.unwrap();
    let last = recorded().await.pop().unwrap();
    assert_eq!(last, (json!("nightly"), forbidden("core.system", &missing[0])));

    change(&tenant, &agent, 2, renamed("other")).await.unwrap();
    assert_eq!(recorded().await.len(), 3, "only what was just given is recorded");
}

async fn a_stored_scope_that_is_none_any_more_leaves_its_principal_readable(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let agent = tenant.agent("billing").await;
    let damage = r#"UPDATE principals SET attributes = '{"permissions":["tools.invoke"],"scopes":["user@mail","mail:*"]}'
        WHERE id = 'billing' RETURNING created_at"#;
    number(fixture, damage).await;

    let found = read(&tenant, &agent).await;
    assert_eq!(found.scopes.iter().collect::<Vec<_>>(), ["mail:*", "user@mail"]);
    assert_eq!(found.scopes.cover_all(["mail:send"]), Ok(()));
    assert!(found.scopes.cover_all(["files:read"]).unwrap_err().to_string().contains("`user@mail`"));

    let renamed = change(&tenant, &agent, 1, renamed("Billing")).await.unwrap();
    assert_eq!(renamed.scopes, found.scopes, "another change leaves it");
    let repaired = PrincipalChanges { scopes: Some(scopes(&["mail:*"])), ..Default::default() };
    assert_eq!(change(&tenant, &agent, 2, repaired).await.unwrap().scopes, scopes(&["mail:*"]));
}
