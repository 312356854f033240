//! Approval gates (RFC 0051): who has no right releases nothing, and whoever overrides says why.

use serde_json::json;

use super::{Checks, Host};

pub(super) fn approval_gate(host: &Host, checks: &Checks) {
    let overseer = json!({"id": "overseer", "kind": "user", "permissions": ["approvals.decide"]});
    host.shop.admin.post("/api/v1/agents", &overseer).created();
    let decide = |scenario: &str, principal: &str, reason: Option<&str>| {
        let body = json!({"scenario": scenario, "principal": principal, "reason": reason});
        host.seam("governance/approval-gate", &body)
    };
    for principal in ["conformance-unprivileged", "billing"] {
        let refused = decide("unauthorized-grant", principal, None);
        checks.same(&refused["released"], &json!(false), "who may not decide releases nothing");
        checks.same(&refused["event"]["type"], "approval.cancelled", "and decides nothing");
    }
    let overridden = decide("override", "overseer", Some("the shop is down"));
    checks.same(&overridden["released"], &json!(true), "the call was made");
    checks.same(&overridden["event"]["type"], "approval.overridden", "by an override");
    let payload = &overridden["event"]["payload"];
    checks.same(&payload["reason"], "the shop is down", "that says why");
    checks.same(&payload["principal"], "overseer", "and by whom");
    checks.same(payload.as_object().unwrap().len(), 3, "and is closed");
    let granted = decide("grant", "overseer", None);
    checks.same(&granted["released"], &json!(false), "one of two is not enough");
    let rejected = decide("reject", "overseer", Some("not today"));
    checks.same(&rejected["released"], &json!(false), "a no is a no");
    checks.same(&rejected["event"]["type"], "approval.rejected", "and is told as one");
    let path = "/v1/host/sample/governance/approval-gate";
    let wordless = json!({"scenario": "override", "principal": "overseer"});
    checks.envelope(&host.suite.post(path, &wordless), &[400]);
    checks.envelope(&host.suite.post(path, &json!({"scenario": "other", "principal": "overseer"})), &[400]);
}
