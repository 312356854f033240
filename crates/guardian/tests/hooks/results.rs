//! A result is judged as one of the tool that the call was of, and of no other.

use serde_json::json;
use toolgate_gate::call::UnknownTools;
use toolgate_model::guard::VerdictKind;
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::office::{Office, definition, in_execution};

const POLICIES: &str = r#"
@id("no-patients")
@reason("nothing of patients leaves")
forbid (principal, action == Action::"result:files.patients", resource);
@id("no-calls-at-night")
@reason("not now")
forbid (principal, action == Action::"call:files.night", resource);
"#;

const TOOLS: [&str; 3] = ["patients", "weather", "night"];

async fn office(fixture: &LedgerFixture) -> Office {
    let office = Office::open(fixture, |_| {}).await;
    office.service(&definition("files", "1", &TOOLS)).await;
    let credential = office.credential("files", &TOOLS, json!({}), true).await;
    office.grant(&credential, |_| {}).await;
    office.policies(POLICIES).await;
    office
}

async fn call(office: &Office, tool: &str, execution: &str, session: &str) -> VerdictKind {
    let question = office.question(tool, &json!({}), UnknownTools::Ask);
    office.ask(in_execution(question, execution, session)).await.kind
}

async fn result(office: &Office, tool: Option<&str>, execution: &str, session: &str) -> VerdictKind {
    office.ask(office.result(tool, execution, session)).await.kind
}

#[tokio::test]
async fn a_result_is_one_of_the_tool_that_its_execution_was_begun_with() {
    let fixture = LedgerFixture::sqlite().await;
    let office = office(&fixture).await;
    assert_eq!(call(&office, "files.patients", "e-1", "s-1").await, VerdictKind::Allow);
    assert_eq!(call(&office, "files.weather", "e-2", "s-1").await, VerdictKind::Allow);
    for tool in [None, Some("files.patients"), Some("patients"), Some("Files.patients")] {
        assert_eq!(result(&office, tool, "e-1", "s-1").await, VerdictKind::Deny, "{tool:?}");
    }
    for tool in [None, Some("files.weather"), Some("weather")] {
        assert_eq!(result(&office, tool, "e-2", "s-1").await, VerdictKind::Allow, "{tool:?}");
    }
}

#[tokio::test]
async fn another_request_with_the_same_execution_does_not_change_whose_result_it_is() {
    let fixture = LedgerFixture::sqlite().await;
    let office = office(&fixture).await;
    call(&office, "files.patients", "e-1", "s-1").await;
    // Of another session.
    assert_eq!(call(&office, "files.weather", "e-1", "s-2").await, VerdictKind::Allow);
    assert_eq!(result(&office, None, "e-1", "s-1").await, VerdictKind::Deny);
    assert_eq!(result(&office, None, "e-1", "s-2").await, VerdictKind::Allow);
    // One that is denied.
    assert_eq!(call(&office, "files.night", "e-1", "s-1").await, VerdictKind::Deny);
    assert_eq!(result(&office, None, "e-1", "s-1").await, VerdictKind::Deny);
    assert_eq!(call(&office, "files.night", "e-2", "s-1").await, VerdictKind::Deny);
    assert_eq!(result(&office, Some("files.patients"), "e-2", "s-1").await, VerdictKind::Deny);
    // One of the same session that is allowed.
    assert_eq!(call(&office, "files.weather", "e-1", "s-1").await, VerdictKind::Allow);
    for tool in [None, Some("files.patients")] {
        assert_eq!(result(&office, tool, "e-1", "s-1").await, VerdictKind::Deny, "{tool:?}");
    }
}

#[tokio::test]
async fn a_result_that_names_another_tool_than_its_execution_is_denied() {
    let fixture = LedgerFixture::sqlite().await;
    let office = office(&fixture).await;
    call(&office, "files.patients", "e-1", "s-1").await;
    for tool in ["files.weather", "browser.search", "files.nothing"] {
        let answer = office.ask(office.result(Some(tool), "e-1", "s-1")).await;
        assert_eq!(answer.kind, VerdictKind::Deny, "{tool}");
    }
}

#[tokio::test]
async fn a_request_that_is_denied_begins_no_execution() {
    let fixture = LedgerFixture::sqlite().await;
    let office = office(&fixture).await;
    for execution in ["e-1", "e-2"] {
        assert_eq!(call(&office, "files.night", execution, "s-1").await, VerdictKind::Deny);
    }
    // Its id is free for a call that is allowed, and says nothing about a result that names its tool.
    assert_eq!(call(&office, "files.weather", "e-1", "s-1").await, VerdictKind::Allow);
    for (tool, execution) in [(None, "e-1"), (Some("files.weather"), "e-1"), (Some("files.weather"), "e-2")] {
        assert_eq!(result(&office, tool, execution, "s-1").await, VerdictKind::Allow, "{tool:?} {execution}");
    }
}
