//! For any versions of a service, any grants on them and any calls: what was judged is byte for byte what is executed, and
//! nothing is executed that needs an approver where there is none.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate_gate::call::{Admitted, Target};
use toolgate_gate::ports::guardian::{Guardian, Hooked, PolicyBasis, Ruling};
use toolgate_gate::ports::source::{Access, Execution, ServiceAnswer, Source};
use toolgate_gate::refusal::Refusal;
use toolgate_model::descriptor::ApprovalNeed;
use toolgate_model::guard::{Content, Denial, DenialCause, Hook, Verdict};
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::office::Office;

const CASES: u32 = 48;

/// One version of the service, with a credential that is pinned to it and a grant on that.
#[derive(Debug, Clone)]
struct Version {
    approval: bool,
    forbidden: bool,
    /// How the one parameter is sent.
    renamed: bool,
    per_hour: Option<u64>,
}

/// What was judged, and what was executed: definition and arguments, as texts.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Judged { definition: String, arguments: String },
    Executed { definition: String, arguments: String, body: Value, approval: bool },
}

#[derive(Clone, Default)]
struct Witness(Arc<Mutex<Vec<Seen>>>);

impl Witness {
    fn saw(&self, seen: Seen) {
        self.0.lock().unwrap().push(seen);
    }
}

#[async_trait]
impl Guardian for Witness {
    async fn judge(&self, hooked: &Hooked<'_>) -> Result<Ruling, Refusal> {
        let basis = PolicyBasis::default();
        let ruling = |verdict| Ok(Ruling { verdict, decision: None, basis, lacks_secrets: false });
        let (Some(tool), Content::Arguments(arguments), Hook::ToolCallRequest) =
            (&hooked.tool, &hooked.event.content, hooked.event.hook)
        else {
            return ruling(Verdict::allow());
        };
        if tool.definition.labels.iter().any(|label| label.as_str() == "forbidden") {
            let reason = "it is forbidden".to_owned();
            return ruling(Verdict::Deny(Denial { cause: DenialCause::Policy, reason, policy: None }));
        }
        let mut changed: Map<String, Value> = arguments.clone().into_owned();
        let is_odd = changed.get("amount").and_then(Value::as_u64).is_some_and(|amount| amount % 2 == 1);
        if is_odd {
            changed.insert("amount".to_owned(), json!(0));
        }
        self.saw(Seen::Judged {
            definition: tool.definition.to_json().to_string(),
            arguments: Value::Object(changed.clone()).to_string(),
        });
        let content = is_odd.then(|| Box::new(Content::Arguments(Cow::Owned(changed))));
        ruling(Verdict::Pass { content, asks: Vec::new() })
    }

    async fn rehearse(&self, _: &Hooked<'_>) -> Result<(Verdict, Vec<String>), Refusal> {
        Ok((Verdict::allow(), Vec::new()))
    }
}

#[async_trait]
impl Source for Witness {
    async fn execute(&self, admitted: &Admitted, _: Option<Access<'_>>) -> Execution {
        let body = match admitted.target() {
            Some(Target::Connector { request, .. }) => request.body.as_ref().map(|body| body.bytes.clone()),
            _ => None,
        };
        self.saw(Seen::Executed {
            definition: admitted.definition().to_json().to_string(),
            arguments: admitted.parameters().to_string(),
            body: serde_json::from_slice(&body.unwrap_or_default()).unwrap_or(Value::Null),
            approval: admitted.definition().approval == Some(ApprovalNeed::Always),
        });
        Ok(ServiceAnswer::said(json!({"done": true})))
    }
}

fn versions() -> impl Strategy<Value = Vec<Version>> {
    let version = (any::<bool>(), any::<bool>(), any::<bool>(), prop::option::of(1..3_u64));
    let version =
        version.prop_map(|(approval, forbidden, renamed, per_hour)| Version { approval, forbidden, renamed, per_hour });
    prop::collection::vec(version, 1..4)
}

fn definition(number: usize, version: &Version) -> Value {
    let mut http = json!({"method": "POST", "path": format!("/v{number}")});
    if version.renamed {
        http["parameters"] = json!({"amount": {"in": "body", "name": "amt"}});
    }
    let mut tool = json!({"http": http, "scope": "pay", "parameters": {"amount": {"type": "integer"}}});
    if version.approval {
        tool["approval"] = json!("always");
    }
    if version.forbidden {
        tool["labels"] = json!(["forbidden"]);
    }
    json!({
        "service": "pay", "version": number.to_string(), "base_url": "https://service.example", "tools": {"pay": tool}
    })
}

async fn holds(fixture: &LedgerFixture, versions: &[Version], amounts: &[u64]) {
    let witness = Witness::default();
    let (guardian, source) = (Arc::new(witness.clone()), Arc::new(witness.clone()));
    let office = Office::with(fixture, guardian, source).await;
    for (number, version) in versions.iter().enumerate() {
        office.service(&definition(number, version)).await;
        let pinned = json!({"service_version": number.to_string()});
        let credential = office.credential("pay", &["pay"], pinned, true).await;
        let limit = |grant: &mut toolgate_model::grant::Grant| {
            grant.authority.constraints.max_invocations_per_hour = version.per_hour;
        };
        office.grant(&credential, limit).await;
    }
    for amount in amounts {
        let before = witness.0.lock().unwrap().len();
        let refused = office.invoke_refuses("pay.pay", &json!({"amount": amount})).await;
        let seen = witness.0.lock().unwrap()[before..].to_vec();
        let executed = seen.iter().find_map(|one| match one {
            Seen::Executed { definition, arguments, body, approval } => Some((definition, arguments, body, approval)),
            Seen::Judged { .. } => None,
        });
        assert_eq!(refused, executed.is_none(), "{seen:?}");
        let Some((definition, arguments, body, approval)) = executed else { continue };
        let judged = Seen::Judged { definition: definition.clone(), arguments: arguments.clone() };
        assert!(seen.contains(&judged), "executed, and not what was judged: {seen:?}");
        assert!(!approval && !definition.contains("forbidden"), "{seen:?}");
        let sent = body.as_object().and_then(|body| body.values().next()).cloned();
        let meant: Value = serde_json::from_str(arguments).unwrap();
        assert_eq!(sent.as_ref(), meant.get("amount"), "{seen:?}");
    }
}

#[test]
fn what_was_judged_is_what_is_executed() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let fixture = runtime.block_on(LedgerFixture::sqlite());
    let config = ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let amounts = prop::collection::vec(0..4_u64, 1..5);
    let ran = runner.run(&(versions(), amounts), |(versions, amounts)| {
        runtime.block_on(holds(&fixture, &versions, &amounts));
        Ok(())
    });
    ran.unwrap();
}
