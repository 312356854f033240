//! Which tool a name resolves to, for an agent with certain grants.

use serde_json::{Map, json};
use toolgate_model::principal::PrincipalId;

use super::*;
use crate::call::CallRequest;
use crate::call::testing::{Bench, credential};

async fn resolve(bench: &Bench, tool: &str) -> Result<Resolved, Refusal> {
    bench.pipeline.resolve(&bench.call(tool, json!({})), Freshness::Newest).await
}

#[tokio::test]
async fn a_tool_is_found_by_every_name_that_it_has() {
    let bench = Bench::with_grant();
    for name in ["crm.read", "connector:crm.read", "read"] {
        let resolved = resolve(&bench, name).await.ok().unwrap();
        let names: Vec<_> =
            resolved.into_candidates().iter().map(|found| found.tool.qualified_name().to_owned()).collect();
        assert_eq!(names, ["crm.read"], "{name}");
    }
}

#[tokio::test]
async fn every_grant_on_the_service_is_a_candidate() {
    let bench = Bench::with_grant();
    bench.grant(&credential("crm", 2), |_| {});
    assert_eq!(resolve(&bench, "crm.read").await.ok().unwrap().into_candidates().len(), 2);
}

#[tokio::test]
async fn what_the_agent_has_no_grant_for_does_not_exist() {
    let bench = Bench::new();
    for name in ["crm.read", "read", "crm", "none.such"] {
        assert_eq!(resolve(&bench, name).await.err().unwrap().code(), Code::ToolNotFound, "{name}");
    }
}

#[tokio::test]
async fn a_tool_that_the_service_does_not_have_looks_like_one_beyond_the_grant() {
    let bench = Bench::with_grant();
    assert_eq!(resolve(&bench, "crm.delete").await.err().unwrap().code(), Code::GrantScopeInsufficient);
}

#[tokio::test]
async fn a_bare_name_of_two_services_must_be_qualified() {
    let bench = Bench::with_grant();
    bench.memory.register(&json!({"service": "mail", "version": "1", "tools": {"read": {}}}));
    bench.grant(&credential("mail", 2), |_| {});
    let refusal = resolve(&bench, "read").await.err().unwrap();
    assert_eq!(refusal.code(), Code::ToolAmbiguous);
    assert!(refusal.reason().contains("crm.read, mail.read"), "{}", refusal.reason());
    assert!(resolve(&bench, "mail.read").await.is_ok());
}

#[tokio::test]
async fn a_grant_of_another_agent_is_not_found() {
    let bench = Bench::new();
    let other = bench.grant(&credential("crm", 1), |grant| grant.agent = PrincipalId::parse("other").unwrap());
    let own = bench.grant(&credential("crm", 2), |_| {});
    let resolve = async |grant| {
        let call = bench.call("crm.read", json!({}));
        let request = CallRequest { grant: Some(grant), ..CallRequest::new(call.tool, Map::new(), call.address) };
        let resolved = bench.pipeline.resolve(&bench.begin(request), Freshness::Newest).await;
        resolved.map(|resolved| resolved.first().and_then(|found| found.grant()))
    };
    // The ledger lists only the agent's grants; here both are listed, to test the check itself.
    bench.memory.held_grants.lock().unwrap().rotate_left(1);
    assert_eq!(resolve(own).await.ok(), Some(Some(own)));
    let unlisted = bench.memory.held_grants.lock().unwrap().pop().unwrap();
    assert_eq!(unlisted.grant(), other);
    assert_eq!(resolve(other).await.err().map(|refusal| refusal.code()), Some(Code::GrantNotFound));
}
