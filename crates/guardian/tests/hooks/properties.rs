//! For any catalog, any authority and any name: no hook allows what the same call through the gate would be refused.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate_gate::call::UnknownTools;
use toolgate_model::constraint::NetworkSet;
use toolgate_model::descriptor::{SourceKind, ToolId};
use toolgate_model::guard::VerdictKind;
use toolgate_testkit::ledger_fixture::{LedgerFixture, scopes};

use super::office::Office;

const SERVICES: [&str; 4] = ["pay", "Mail", "a.b", "crm"];
const TOOLS: [&str; 3] = ["pay", "send", "Read.all"];
const CASES: u32 = 48;

/// What there is of one service.
#[derive(Debug, Clone)]
struct Offered {
    service: &'static str,
    /// The versions that are registered, each with its tools.
    versions: Vec<Version>,
    credential: Option<Held>,
}

#[derive(Debug, Clone)]
struct Version {
    tools: BTreeSet<usize>,
    source: &'static str,
    /// Whether its tools take an amount, and nothing else.
    strict: bool,
    approval: bool,
    requires_scope: bool,
    label: bool,
}

/// A credential, and what the agent was granted of it.
#[derive(Debug, Clone)]
struct Held {
    opens: bool,
    has_address: bool,
    is_pinned: bool,
    grant: Option<Granted>,
}

#[derive(Debug, Clone)]
struct Granted {
    tools: BTreeSet<usize>,
    rate: Option<u64>,
    is_elsewhere: bool,
    is_bound: bool,
    is_suspended: bool,
}

#[derive(Debug, Clone)]
struct Catalog {
    offered: Vec<Offered>,
    /// Services and tools of the agent's allowlist.
    allowlist: Option<Vec<(usize, usize)>>,
    has_scope: bool,
    /// What the policies are about, and what they say.
    policy: Option<(usize, usize, &'static str)>,
}

#[derive(Debug, Clone)]
struct Named {
    service: usize,
    tool: usize,
    form: usize,
    spelling: usize,
}

fn tools() -> impl Strategy<Value = BTreeSet<usize>> {
    prop::collection::btree_set(0..TOOLS.len(), 2..=TOOLS.len())
}

fn versions() -> impl Strategy<Value = Vec<Version>> {
    let source = prop::sample::select(vec!["connector", "host-extension"]);
    let rarely = || prop::bool::weighted(0.08);
    let version = (tools(), source, rarely(), rarely(), rarely(), any::<bool>()).prop_map(
        |(tools, source, strict, approval, requires_scope, label)| Version {
            tools,
            source,
            strict,
            approval,
            requires_scope,
            label,
        },
    );
    prop::collection::vec(version, 0..3)
}

fn held() -> impl Strategy<Value = Held> {
    let rarely = || prop::bool::weighted(0.08);
    let rate = prop::option::weighted(0.2, prop::sample::select(vec![0, 1, 9]));
    let grant = (tools(), rate, rarely(), rarely(), rarely()).prop_map(
        |(tools, rate, is_elsewhere, is_bound, is_suspended)| Granted {
            tools,
            rate,
            is_elsewhere,
            is_bound,
            is_suspended,
        },
    );
    (prop::bool::weighted(0.9), prop::bool::weighted(0.7), rarely(), prop::option::weighted(0.8, grant))
        .prop_map(|(opens, has_address, is_pinned, grant)| Held { opens, has_address, is_pinned, grant })
}

fn catalogs() -> impl Strategy<Value = Catalog> {
    let offered = |service: &'static str| {
        (versions(), prop::option::weighted(0.8, held())).prop_map(move |(versions, credential)| Offered {
            service,
            versions,
            credential,
        })
    };
    let place = || (0..SERVICES.len(), 0..TOOLS.len());
    let policy = (0..SERVICES.len(), 0..TOOLS.len(), prop::sample::select(vec!["deny", "ask"]));
    (
        SERVICES.map(offered),
        prop::option::weighted(0.3, prop::collection::vec(place(), 0..12)),
        any::<bool>(),
        prop::option::weighted(0.4, policy),
    )
        .prop_map(|(offered, allowlist, has_scope, policy)| Catalog {
            offered: offered.to_vec(),
            allowlist,
            has_scope,
            policy,
        })
}

fn names() -> impl Strategy<Value = Named> {
    (0..SERVICES.len(), 0..TOOLS.len(), 0..6_usize, 0..12_usize).prop_map(|(service, tool, form, spelling)| Named {
        service,
        tool,
        form,
        spelling,
    })
}

fn arguments() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![json!({}), json!({"amount": 5}), json!({"amount": "much"}), json!({"other": [1]})])
}

impl Named {
    fn text(&self) -> String {
        let (service, tool) = (SERVICES[self.service], TOOLS[self.tool]);
        let plain = match self.form {
            0 | 1 => format!("{service}.{tool}"),
            2 => format!("connector:{}.{tool}", service.replace('.', "~")),
            3 => format!("x-host-{service}:{tool}"),
            4 => tool.to_owned(),
            _ => format!("{service}.nothing"),
        };
        match self.spelling {
            0 => plain.to_uppercase(),
            1 => format!(" {plain}"),
            2 => format!("{plain}\u{200b}"),
            3 => plain.replace('a', "\u{ff41}"),
            4 => plain.replace('.', " . "),
            _ => plain,
        }
    }

    fn is_bare(&self) -> bool {
        self.form == 4
    }
}

impl Catalog {
    /// Whether the gate has anything of this service.
    fn has(&self, service: usize) -> bool {
        let Offered { versions, credential, .. } = &self.offered[service];
        !versions.is_empty() || credential.is_some()
    }

    async fn build(&self, fixture: &LedgerFixture) -> Office {
        let office = Office::open(fixture, |agent| {
            agent.tool_allowlist = self.allowlist.as_ref().map(|places| {
                let id = |(service, tool): &(usize, usize)| {
                    let (service, tool) = (SERVICES[*service].parse_service(), TOOLS[*tool].parse_tool());
                    let sources = [SourceKind::Connector, SourceKind::Mcp, SourceKind::HostExtension];
                    sources.map(|source| ToolId::of_service(source, &service, &tool).unwrap())
                };
                places.iter().flat_map(id).collect()
            });
            if self.has_scope {
                let held = ["special".to_owned()];
                agent.scopes = toolgate_model::principal_scope::HeldScopes::from_stored(held);
            }
        })
        .await;
        for offered in &self.offered {
            for (number, version) in offered.versions.iter().enumerate() {
                office.service(&version.definition(offered.service, number)).await;
            }
            if let Some(held) = &offered.credential {
                held.build(&office, offered).await;
            }
        }
        if let Some((service, tool, verdict)) = self.policy {
            let remedy = if verdict == "ask" { "@remedy(\"ask\")\n" } else { "" };
            let name = format!("{}.{}", SERVICES[service], TOOLS[tool]);
            office
                .policies(&format!(
                    "@id(\"rule\")\n@reason(\"no\")\n{remedy}forbid (principal, action in Action::\"call\", \
                     resource == Tool::\"{name}\");\n"
                ))
                .await;
        }
        office
    }
}

impl Version {
    fn definition(&self, service: &str, number: usize) -> Value {
        let tool = |index: &usize| {
            let name = TOOLS[*index];
            let mut tool = json!({"http": {"method": "POST", "path": "/do"}});
            if self.strict {
                tool["parameters"] = json!({"amount": {"type": "integer"}});
            }
            if self.approval {
                tool["approval"] = json!("always");
            }
            if self.requires_scope {
                tool["required_scopes"] = json!(["special"]);
            }
            if self.label {
                tool["labels"] = json!(["private-data"]);
            }
            (name.to_owned(), tool)
        };
        let tools: Map<String, Value> = self.tools.iter().map(tool).collect();
        json!({
            "service": service, "version": (number + 1).to_string(), "source": self.source,
            "base_url": "https://service.example", "tools": tools,
        })
    }
}

impl Held {
    async fn build(&self, office: &Office, offered: &Offered) {
        let mut metadata = json!({});
        if self.has_address {
            metadata["base_url"] = json!("https://service.example");
        }
        if self.is_pinned {
            metadata["service_version"] = json!("1");
        }
        let credential = office.credential(offered.service, &TOOLS, metadata, self.opens).await;
        let Some(granted) = &self.grant else { return };
        let grant = office
            .grant(&credential, |grant| {
                let held: Vec<&str> = granted.tools.iter().map(|tool| TOOLS[*tool]).collect();
                let authority = &mut grant.authority;
                authority.scopes = scopes(&held);
                authority.constraints.max_invocations_per_hour = granted.rate;
                if granted.is_elsewhere {
                    authority.constraints.ip_allowlist = Some(NetworkSet::parse(["10.0.0.0/8"]).unwrap());
                }
                if granted.is_bound {
                    authority.context.task_id = serde_json::from_value(json!("task-1")).unwrap();
                }
            })
            .await;
        if granted.is_suspended {
            office.tenant.suspend(grant.id).await.unwrap();
        }
    }
}

trait Names {
    fn parse_service(&self) -> toolgate_model::credential::ServiceName;
    fn parse_tool(&self) -> toolgate_model::service::ToolName;
}

impl Names for str {
    fn parse_service(&self) -> toolgate_model::credential::ServiceName {
        toolgate_model::credential::ServiceName::parse(self).unwrap()
    }

    fn parse_tool(&self) -> toolgate_model::service::ToolName {
        toolgate_model::service::ToolName::parse(self).unwrap()
    }
}

#[test]
fn no_hook_allows_what_the_same_call_through_the_gate_is_refused() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let fixture = runtime.block_on(LedgerFixture::sqlite());
    let calls = prop::collection::vec((names(), arguments()), 12);
    let allowed = AtomicU32::new(0);
    let config = ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let ran = runner.run(&(catalogs(), calls), |(catalog, calls)| {
        runtime.block_on(async {
            let office = catalog.build(&fixture).await;
            for (named, arguments) in &calls {
                let name = named.text();
                // The call first: what it uses up of a rate can only make the hook stricter.
                let is_refused = office.invoke_refuses(&name, arguments).await;
                let asked = office.ask(office.question(&name, arguments, UnknownTools::default())).await;
                prop_assert!(!is_refused || asked.kind == VerdictKind::Deny, "{name:?} {arguments}: {asked:?}");
                let message = office.ask(office.message(&name, arguments)).await;
                let judged = office.ask(office.question(&name, arguments, UnknownTools::Judge)).await;
                if is_refused && catalog.has(named.service) && !named.is_bare() {
                    // A name of the gate's own is never a tool that only the runtime knows.
                    prop_assert!(judged.kind == VerdictKind::Deny, "{name:?} {arguments}: {judged:?}");
                    // A message is not a call: the rate counts calls.
                    let is_late = asked.code.as_deref() == Some("grant_rate_limited");
                    prop_assert!(is_late || message.kind == VerdictKind::Deny, "{name:?} {arguments}: {message:?}");
                }
                allowed.fetch_add(u32::from(asked.kind == VerdictKind::Allow), Ordering::Relaxed);
            }
            Ok(())
        })
    });
    ran.unwrap();
    let allowed = allowed.into_inner();
    assert!(allowed > CASES / 8, "the catalogs must not be such that everything is refused: {allowed}");
}
