//! What a hook must not allow, case by case.

use serde_json::json;
use toolgate_gate::call::UnknownTools;
use toolgate_model::descriptor::ToolId;
use toolgate_model::guard::VerdictKind;
use toolgate_model::principal_scope::HeldScopes;
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::office::{Office, SECRET, definition};

/// An agent with a grant on `pay.pay`, on an open or a closed credential.
async fn office(fixture: &LedgerFixture, allowlist: Option<&[&str]>, opens: bool) -> Office {
    let office = Office::open(fixture, |agent| {
        agent.tool_allowlist = allowlist.map(|ids| ids.iter().map(|id| ToolId::parse(id).unwrap()).collect());
    })
    .await;
    office.service(&definition("pay", "1", &["pay", "refund"])).await;
    let credential = office.credential("pay", &["pay", "refund"], json!({}), opens).await;
    office
        .grant(&credential, |grant| grant.authority.scopes = toolgate_testkit::ledger_fixture::scopes(&["pay"]))
        .await;
    office
}

#[tokio::test]
async fn a_hook_follows_the_allowlist_of_the_agent() {
    let fixture = LedgerFixture::sqlite().await;
    for (allowlist, expected) in [
        (None, VerdictKind::Allow),
        (Some(&["connector:pay.pay"] as &[&str]), VerdictKind::Allow),
        (Some(&["connector:mail.send"]), VerdictKind::Deny),
        (Some(&[]), VerdictKind::Deny),
    ] {
        let office = office(&fixture, allowlist, true).await;
        assert_eq!(office.asks("pay.pay", json!({})).await, expected, "{allowlist:?}");
        assert_eq!(office.invoke_refuses("pay.pay", &json!({})).await, expected == VerdictKind::Deny);
        let foreign = office.ask(office.question("browser.search", &json!({}), UnknownTools::Judge)).await;
        let is_listed = allowlist.is_none();
        assert_eq!(foreign.kind == VerdictKind::Allow, is_listed, "a tool that only the runtime knows: {allowlist:?}");
    }
    let office = office(&fixture, Some(&["x-host-browser:search"]), true).await;
    let foreign = office.ask(office.question("browser.search", &json!({}), UnknownTools::Judge)).await;
    assert_eq!(foreign.kind, VerdictKind::Allow, "which a list can name too");
}

#[tokio::test]
async fn a_tool_that_only_a_credential_defines_is_governed() {
    let fixture = LedgerFixture::sqlite().await;
    let office = office(&fixture, None, true).await;
    let metadata =
        json!({"base_url": "https://crm.example", "endpoints": {"find": {"method": "GET", "path": "/find"}}});
    let credential = office.credential("crm", &["merge"], metadata, true).await;
    for tool in ["crm.find", "crm.merge", "crm.nothing", "crm", "find", "merge", "CRM.find", " crm.find"] {
        let answer = office.ask(office.question(tool, &json!({}), UnknownTools::Judge)).await;
        assert_eq!(answer.kind, VerdictKind::Deny, "{tool}: {}", answer.reason);
    }
    office.grant(&credential, |_| {}).await;
    assert_eq!(office.asks("crm.merge", json!({})).await, VerdictKind::Allow);
}

#[tokio::test]
async fn a_name_of_the_gate_is_none_of_a_runtimes_however_it_is_spelled() {
    let fixture = LedgerFixture::sqlite().await;
    let office = office(&fixture, None, true).await;
    for tool in [
        "pay.refund",
        "PAY.refund",
        " pay.refund",
        "pay.refund ",
        "Pay.Refund",
        "pay\u{200b}.refund",
        "\u{ff50}ay.refund",
        "connector:pay.refund",
        "CONNECTOR:pay.refund",
        "x-host-pay:refund",
        "mcp:pay.refund",
        "PAY.pay",
        " pay.pay",
        "refund",
        "Refund",
        "openwop:http.fetch",
        "OpenWOP:http.fetch",
        "toolgate-workspace.Bash",
        "Toolgate-Workspace.bash",
    ] {
        let answer = office.ask(office.question(tool, &json!({}), UnknownTools::Judge)).await;
        assert_eq!(answer.kind, VerdictKind::Deny, "{tool}");
        assert!(office.invoke_refuses(tool, &json!({})).await, "{tool}");
        let message = office.ask(office.message(tool, &json!({}))).await;
        let is_qualified = !tool.eq_ignore_ascii_case("refund");
        assert_eq!(message.kind == VerdictKind::Deny, is_qualified, "{tool} as a message of MCP");
    }
    for tool in ["pay.pay", "connector:pay.pay", "pay"] {
        assert_eq!(office.asks(tool, json!({})).await, VerdictKind::Allow, "{tool}");
    }
    assert_eq!(office.ask(office.message("pay.pay", &json!({}))).await.kind, VerdictKind::Allow);
}

#[tokio::test]
async fn tools_that_the_gate_does_not_know_follow_what_is_agreed_and_ask_by_default() {
    let fixture = LedgerFixture::sqlite().await;
    let office = office(&fixture, None, true).await;
    for (terms, code) in [
        (UnknownTools::default(), Some("approval_required")),
        (UnknownTools::Ask, Some("approval_required")),
        (UnknownTools::Judge, None),
        (UnknownTools::Deny, Some("tool_not_found")),
    ] {
        for tool in ["browser.search", "search", "pays.pay", "p.ay"] {
            let answer = office.ask(office.question(tool, &json!({"words": "x"}), terms)).await;
            assert_eq!(answer.code.as_deref(), code, "{tool} {terms:?}: {}", answer.reason);
        }
    }
}

#[tokio::test]
async fn a_call_whose_credential_cannot_be_opened_is_denied_and_leaves_no_argument() {
    let fixture = LedgerFixture::sqlite().await;
    let office = office(&fixture, None, false).await;
    let arguments = json!({"note": format!("the token is {SECRET}")});
    let answer = office.ask(office.question("pay.pay", &arguments, UnknownTools::Ask)).await;
    assert_eq!(answer.kind, VerdictKind::Deny, "{}", answer.reason);
    assert!(office.invoke_refuses("pay.pay", &arguments).await);
    let events = json!(office.tenant.events().await).to_string();
    assert!(!events.contains("green bottles"), "{events}");
    let invocations = office.tenant.ledger;
    let page = toolgate_gate::ports::ledger::PageRequest::first(10);
    let records = invocations.invocations(&office.tenant.id, Default::default(), page).await.unwrap();
    assert_eq!(records.items.len(), 2);
    for record in records.items {
        assert!(record.parameters.is_empty(), "{record:?}");
    }
}

#[tokio::test]
async fn a_builtin_tool_is_held_to_what_the_gate_would_check() {
    let fixture = LedgerFixture::sqlite().await;
    let office = Office::open(&fixture, |agent| {
        agent.scopes = HeldScopes::from_stored(["http:fetch".to_owned()]);
    })
    .await;
    let good = json!({"url": "https://example.org/", "method": "GET"});
    let bad = json!({"url": "ftp://example.org/", "method": "GET"});
    assert_eq!(office.asks("openwop:http.fetch", good).await, VerdictKind::Allow);
    assert!(office.invoke_refuses("openwop:http.fetch", &bad).await);
    assert_eq!(office.asks("openwop:http.fetch", bad).await, VerdictKind::Deny);
}

#[tokio::test]
async fn every_decision_is_on_record_whoever_was_concerned() {
    let fixture = LedgerFixture::sqlite().await;
    let office = office(&fixture, None, true).await;
    let mut expected = Vec::new();
    for (tool, terms, effective) in [
        ("pay.pay", UnknownTools::Ask, "allow"),
        ("pay.refund", UnknownTools::Ask, "deny"),
        ("browser.search", UnknownTools::Ask, "deny"),
        ("browser.search", UnknownTools::Judge, "allow"),
        ("browser.search", UnknownTools::Deny, "deny"),
    ] {
        office.ask(office.question(tool, &json!({"note": SECRET}), terms)).await;
        expected.push(("tool_call_request", tool, effective));
    }
    office.ask(office.message("lookup", &json!({}))).await;
    expected.push(("mcp_outbound", "lookup", "allow"));
    office.ask(office.message("pay.refund", &json!({}))).await;
    expected.push(("mcp_outbound", "pay.refund", "deny"));
    office.ask(office.result(Some("browser.search"), "e-1", "s-1")).await;
    expected.push(("tool_call_result", "browser.search", "allow"));
    let decided = office.decisions().await;
    let found: Vec<_> = decided
        .iter()
        .map(|one| (one["hook"].as_str().unwrap(), one["tool"].as_str().unwrap(), one["effective"].as_str().unwrap()))
        .collect();
    assert_eq!(found, expected);
    assert!(decided.iter().all(|one| one["dialect"] == "aos" && one["hash_before"].is_string()));
}
