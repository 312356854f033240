//! For any versions of a service, any grants on them and any calls: what was judged, and what an approver was shown, is byte
//! for byte what is executed, also where a definition is replaced while its call waits.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate_gate::Action;
use toolgate_gate::call::Admitted;
use toolgate_gate::ports::guardian::{Guardian, Hooked, PolicyBasis, Ruling};
use toolgate_gate::ports::source::{Access, Execution, ServiceResponse, Source};
use toolgate_gate::refusal::Refusal;
use toolgate_model::approval::{Approval, Decision};
use toolgate_model::descriptor::ApprovalNeed;
use toolgate_model::guard::{Content, Denial, DenialCause, Hook, Verdict};
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::office::{Office, register};
use super::person::Person;

const CASES: u32 = 64;

/// One version of the service, with a credential that is pinned to it and a grant on that.
#[derive(Debug, Clone)]
struct Version {
    approval: bool,
    forbidden: bool,
    /// How the one parameter is sent.
    renamed: bool,
    per_hour: Option<u64>,
    /// Whether its definition is replaced by another one while the first call waits for its approval.
    replaced: bool,
}

/// What happened, in order.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    /// A guardian let a call of this definition pass with these arguments.
    Judged { definition: String, arguments: String },
    /// An approver was shown this, and decided so.
    Shown { request: String, arguments: String, decision: Decision },
    /// This was executed.
    Executed { definition: String, request: String, arguments: String, body: Value, approval: bool },
}

#[derive(Clone, Default)]
struct Witness(Arc<Mutex<Vec<Seen>>>);

impl Witness {
    fn saw(&self, seen: Seen) {
        self.0.lock().unwrap().push(seen);
    }

    fn was_shown(&self, approval: &Approval, decision: Decision) {
        let action = approval.action.as_ref().expect("what is executed after a yes");
        let arguments = approval.arguments.as_ref().expect("the arguments are shown").to_string();
        self.saw(Seen::Shown { request: format!("{} {}", action.method, action.host), arguments, decision });
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

    async fn dry_run(&self, _: &Hooked<'_>) -> Result<(Verdict, Vec<String>), Refusal> {
        Ok((Verdict::allow(), Vec::new()))
    }
}

#[async_trait]
impl Source for Witness {
    fn executes(&self, action: Action) -> bool {
        action == Action::Http
    }

    async fn execute(&self, admitted: &Admitted, _: Option<Access<'_>>) -> Execution {
        let request = admitted.request().expect("a request to the service");
        let body = request.body.as_ref().map(|body| body.bytes.clone()).unwrap_or_default();
        self.saw(Seen::Executed {
            definition: admitted.definition().to_json().to_string(),
            request: format!("{} {}", request.method.as_str(), request.url.host_str().unwrap()),
            arguments: admitted.parameters().to_string(),
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
            approval: admitted.definition().approval == Some(ApprovalNeed::Always),
        });
        Ok(ServiceResponse::said(json!({"done": true})))
    }
}

fn versions() -> impl Strategy<Value = Vec<Version>> {
    let version = (any::<bool>(), prop::bool::weighted(0.2), any::<bool>(), prop::option::of(1..3_u64), any::<bool>());
    let version = version.prop_map(|(approval, forbidden, renamed, per_hour, replaced)| Version {
        approval,
        forbidden,
        renamed,
        per_hour,
        replaced,
    });
    prop::collection::vec(version, 1..4)
}

/// The definition of a version. Each has a host of its own, and so has what replaces it: an approver can tell them apart.
fn definition(number: usize, version: &Version, edition: &str) -> Value {
    let mut http = json!({"method": "POST", "path": "/pay"});
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
    let base = format!("https://{edition}-{number}.service.example");
    json!({"service": "pay", "version": number.to_string(), "base_url": base, "tools": {"pay": tool}})
}

/// Answers how many calls were executed after an approval.
async fn holds(fixture: &LedgerFixture, versions: &[Version], amounts: &[u64], decision: Decision) -> usize {
    let witness = Witness::default();
    let tenant = fixture.tenant().await;
    let replacements: Vec<Value> = versions
        .iter()
        .enumerate()
        .filter(|(_, version)| version.replaced)
        .map(|(number, version)| definition(number, version, "second"))
        .collect();
    let replacements = Arc::new(Mutex::new(replacements));
    let person = Person::new(&tenant, {
        let (witness, tenant) = (witness.clone(), tenant.clone());
        move |approval: Approval| {
            let (witness, tenant) = (witness.clone(), tenant.clone());
            let replacement = replacements.lock().unwrap().pop();
            Box::pin(async move {
                witness.was_shown(&approval, decision);
                if let Some(replacement) = replacement {
                    register(&tenant, &replacement, true).await;
                }
                decision
            })
        }
    });
    let office = Office::with(fixture, tenant, Arc::new(witness.clone()), witness.clone(), Arc::new(person)).await;
    for (number, version) in versions.iter().enumerate() {
        office.service(&definition(number, version, "first")).await;
        let pinned = json!({"service_version": number.to_string()});
        let credential = office.credential("pay", &["pay"], pinned, true).await;
        let limit = |grant: &mut toolgate_model::grant::Grant| {
            grant.authority.constraints.max_invocations_per_hour = version.per_hour;
        };
        office.grant(&credential, limit).await;
    }
    let mut approved = 0;
    for amount in amounts {
        let before = witness.0.lock().unwrap().len();
        let refused = office.invoke_refuses("pay.pay", &json!({"amount": amount})).await;
        let seen = witness.0.lock().unwrap()[before..].to_vec();
        let executed: Vec<&Seen> = seen.iter().filter(|one| matches!(one, Seen::Executed { .. })).collect();
        assert_eq!(executed.len(), usize::from(!refused), "{seen:?}");
        let [Seen::Executed { definition, request, arguments, body, approval }] = executed[..] else { continue };
        let judged = Seen::Judged { definition: definition.clone(), arguments: arguments.clone() };
        assert!(seen.contains(&judged), "executed, and not what was judged: {seen:?}");
        assert!(!definition.contains("forbidden"), "{seen:?}");
        let (request, arguments) = (request.clone(), arguments.clone());
        let meant: Value = serde_json::from_str(&arguments).unwrap();
        let shown = Seen::Shown { request, arguments, decision: Decision::Approve };
        assert!(!approval || seen.contains(&shown), "executed, and not what was shown: {seen:?}");
        let sent = body.as_object().and_then(|body| body.values().next()).cloned();
        assert_eq!(sent.as_ref(), meant.get("amount"), "{seen:?}");
        approved += usize::from(*approval);
    }
    approved
}

#[test]
fn what_was_judged_and_shown_is_what_is_executed() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let fixture = runtime.block_on(LedgerFixture::sqlite());
    let config = ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let amounts = prop::collection::vec(0..4_u64, 1..5);
    let decision = prop_oneof![4 => Just(Decision::Approve), 1 => Just(Decision::Deny)];
    let approved = AtomicUsize::new(0);
    let ran = runner.run(&(versions(), amounts, decision), |(versions, amounts, decision)| {
        approved.fetch_add(runtime.block_on(holds(&fixture, &versions, &amounts, decision)), Ordering::Relaxed);
        Ok(())
    });
    ran.unwrap();
    assert_ne!(approved.into_inner(), 0, "nothing was executed after an approval, so nothing was compared");
}
