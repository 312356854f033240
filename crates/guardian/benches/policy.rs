//! What a verdict of the policy engine costs, with one rule, a hundred and ten thousand. Five of them concern the call,
//! where there are so many; the others are about other agents, labels, tools and services.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark may stop at the first surprise"
)]

use std::borrow::Cow;
use std::fmt::Write;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use toolgate_gate::ports::guardian::HookedTool;
use toolgate_gate::ports::ledger::History;
use toolgate_guardian::policy::{CompiledSet, Facts, Subject, judge};
use toolgate_model::credential::ServiceName;
use toolgate_model::guard::{AgentRef, Content, Dialect, Hook, HookEvent, PolicyFile, VerdictKind};
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::{Principal, PrincipalId, PrincipalKind, TenantId};
use toolgate_model::scope::Scope;
use toolgate_model::service::{ToolDefinition, ToolName};
use toolgate_model::text::Label;
use toolgate_model::time::Timestamp;

/// As in the program itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SAMPLES: usize = 200;
const PER_SAMPLE: u32 = 200;
/// Those that concern the call, each reading something else of it.
const CONCERNED: [&str; 5] = [
    r#"forbid(principal == Principal::"agent-7", action == Action::"call:bank.pay", resource)
         when { context.arguments.amount > 50000 || !(["EUR", "USD"].contains(context.arguments.currency)) };"#,
    r#"forbid(principal in Label::"untrusted", action in Action::"call", resource) when { context.time.hour < 8 };"#,
    r#"@remedy("ask") forbid(principal, action in Action::"call", resource in Service::"bank")
         when { context.arguments has note && context.arguments.note like "*urgent*" };"#,
    r#"forbid(principal, action in Action::"call", resource in Label::"money")
         when { context.marks.contains("private-data") && context.marks.contains("untrusted-text") };"#,
    r#"forbid(principal, action, resource) when { context.spent.today.greaterThan(decimal("100.00")) };"#,
];

fn main() {
    let world = World::new();
    println!("{:>8}  {:>12}  {:>12}  {:>14}", "policies", "minimum us", "median us", "compiled in ms");
    let mut least = Vec::new();
    for count in [1, 100, 10_000] {
        let file = PolicyFile { name: "rules.cedar".to_owned(), text: rules(count) };
        let started = Instant::now();
        let set = CompiledSet::compile(1, &[file]).unwrap_or_else(|problems| panic!("{problems:?}"));
        let compiled = started.elapsed();
        assert_eq!(set.rules().len(), count);
        let (minimum, median) = world.measure(&set);
        println!(
            "{count:>8}  {:>12.2}  {:>12.2}  {:>14.1}",
            micros(minimum),
            micros(median),
            compiled.as_secs_f64() * 1e3
        );
        least.push(minimum);
    }
    println!("10,000 cost {:.2} times what 100 cost", least[2].as_secs_f64() / least[1].as_secs_f64());
}

fn rules(count: usize) -> String {
    let mut text = CONCERNED.into_iter().take(count).collect::<Vec<_>>().join("\n");
    for number in CONCERNED.len()..count {
        let scope = match number % 4 {
            0 => format!("principal == Principal::\"other-{number}\", action, resource"),
            1 => format!("principal in Label::\"team-{number}\", action in Action::\"call\", resource"),
            2 => format!("principal, action in Action::\"call\", resource == Tool::\"other.tool-{number}\""),
            _ => format!("principal, action == Action::\"call:other.tool-{number}\", resource"),
        };
        writeln!(text, "\nforbid({scope}) when {{ context.time.hour < 8 || context.calls.today > {number} }};")
            .unwrap();
    }
    text
}

/// An agent that pays, with the whole of what is known about a payment.
struct World {
    agent: Principal,
    service: ServiceName,
    name: ToolName,
    definition: Arc<ToolDefinition>,
    history: History,
}

impl World {
    fn new() -> Self {
        let id = PrincipalId::parse("agent-7").unwrap();
        let permissions = PermissionSet::default();
        let mut agent =
            Principal::new(TenantId::default_tenant(), id, PrincipalKind::Agent, permissions, Timestamp::EPOCH);
        agent.labels = [Label::parse("untrusted").unwrap()].into();
        let parameters = json!({
            "type": "object",
            "properties": {
                "amount": {"type": "integer"}, "currency": {"type": "string"}, "note": {"type": "string"},
                "to": {"type": "string"}, "lines": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["amount", "currency"],
        });
        let definition = ToolDefinition {
            parameters: Some(parameters),
            labels: [Label::parse("money").unwrap()].into(),
            ..ToolDefinition::of_scope(Scope::parse("pay").unwrap())
        };
        Self {
            agent,
            service: ServiceName::parse("bank").unwrap(),
            name: ToolName::parse("pay").unwrap(),
            definition: Arc::new(definition),
            history: History { marks: ["private-data".to_owned()].into(), cost_today: 1_250_000, ..History::default() },
        }
    }

    /// The least and the median time of a verdict, from the event to the judgement.
    fn measure(&self, set: &CompiledSet) -> (Duration, Duration) {
        let arguments = json!({
            "amount": 4_000, "currency": "EUR", "note": "rent for May", "to": "landlord", "lines": ["rent", "heating"],
        });
        let event = HookEvent {
            hook: Hook::ToolCallRequest,
            agent: AgentRef { id: Cow::Borrowed("agent-7"), name: None },
            tool: Some(Cow::Borrowed("bank.pay")),
            execution: None,
            session: None,
            turn: None,
            step: None,
            user: None,
            method: None,
            reasoning: None,
            time: Timestamp::parse("2026-05-04T10:00:00Z").unwrap(),
            content: Content::Arguments(Cow::Borrowed(arguments.as_object().unwrap())),
        };
        let facts = Facts {
            event: &event,
            dialect: Dialect::Native,
            run: None,
            address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            history: Some(&self.history),
            arguments: None,
            secrets: &[],
        };
        let verdict = || {
            let subject = Subject {
                hook: Hook::ToolCallRequest,
                agent: &self.agent.id,
                principal: Some(&self.agent),
                actor: &self.agent,
                tool: Some(HookedTool {
                    service: &self.service,
                    name: &self.name,
                    definition: &self.definition,
                    external: false,
                    registry: Some(1),
                }),
            };
            judge(&set.slice(&subject), &facts)
        };
        let judgement = verdict();
        assert_eq!(judgement.verdict.kind(), VerdictKind::Allow, "{judgement:?}");
        let mut samples: Vec<Duration> = (0..SAMPLES)
            .map(|_| {
                let started = Instant::now();
                for _ in 0..PER_SAMPLE {
                    black_box(verdict());
                }
                started.elapsed() / PER_SAMPLE
            })
            .collect();
        samples.sort();
        (samples[0], samples[SAMPLES / 2])
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
