//! The scenarios of the public conformance suite that are about tools, each written anew against the real binary with its
//! conformance endpoints on. A scenario that asserted nothing has shown nothing, and fails.

use std::cell::Cell;
use std::fmt::Debug;

use serde_json::{Value, json};
use toolgate_server::openwop;
use toolgate_testkit::gate_process::GateSetup;
use toolgate_testkit::postgres::TestDatabase;

use crate::calls::shop::{Shop, credential};
use crate::world::{Actor, Reply, World, block_on, names, send, send_from, setup, unused_source};

mod catalog;
mod discovery;
mod fetch;
mod governance;
mod hooks;
mod sessions;

/// A scenario, by the name that it has in the suite.
type Scenario = (&'static str, fn(&Host, &Checks));

const SCENARIOS: [Scenario; 21] = [
    ("discovery", discovery::document),
    ("auth", discovery::keys),
    ("errors", discovery::errors),
    ("tool-hooks-shape", hooks::shape),
    ("tool-hooks-content-free", hooks::content_free),
    ("tool-hooks-authorization-fail-closed", hooks::authorization_fails_closed),
    ("tool-hooks-rate-limit", hooks::rate_limit),
    ("tool-hooks-secret-redaction", hooks::secret_redaction),
    ("tool-hooks-failure-honesty", hooks::failure_honesty),
    ("tool-descriptor-shape", catalog::descriptor_shape),
    ("tool-catalog-projection", catalog::projection),
    ("tool-catalog-compact-projection", catalog::compact_projection),
    ("tool-session-lifecycle", sessions::lifecycle),
    ("authorization-roles-shape", discovery::roles_shape),
    ("authorization-fail-closed", discovery::authorization_fails_closed),
    ("approval-gate-flow", governance::approval_gate),
    ("http-client-ssrf", fetch::client_shape),
    ("safefetch-behavior", fetch::behaviour),
    ("safefetch-live-audit", fetch::live_audit),
    ("test-seam-unauthenticated", seams_need_a_key),
    ("rate-limit-envelope", rate_limit_envelope),
];

/// What a scenario runs against.
struct Host {
    world: World,
    shop: Shop,
    /// Whose key the suite is given.
    suite: Actor,
    /// A tool that only somebody else may use.
    of_another: &'static str,
}

impl Host {
    fn of(setup: GateSetup, database: Option<TestDatabase>) -> Self {
        let world = World::of(&setup.reaching_loopback().environment("TOOLGATE_SEAMS", "on"), database);
        let shop = Shop::open(&world);
        let suite = world.agent("suite", &["tools.invoke", "agents.act_as", "audit.read"]);
        shop.admin.patch("/api/v1/agents/suite", &json!({"scopes": ["http:fetch"]})).ok();
        shop.grant_to("suite", json!({}));
        // What the suite's key does not open, another principal has.
        let foreign = credential(&shop.admin, "ledgers", json!({"base_url": shop.upstream.url()}));
        shop.admin.grants(&foreign, "billing", json!({"scopes": ["anything"]}));
        Self { world, shop, suite, of_another: "connector:ledgers.anything" }
    }

    /// A request without any key.
    fn stranger(&self, method: &str, path: &str) -> Reply {
        send(self.world.gate.address(), method, path, &[], b"")
    }

    fn discovery(&self) -> Value {
        self.stranger("GET", "/.well-known/openwop").ok()
    }

    fn seam(&self, path: &str, body: &Value) -> Value {
        self.suite.post(&format!("/v1/host/sample/{path}"), body).ok()
    }

    /// The durable events of a run.
    fn events(&self, run: &str) -> Vec<Value> {
        super::events_of(&self.suite.get(&format!("/v1/host/sample/test/runs/{run}/events")).ok())
    }
}

/// Counts what a scenario asserts.
#[derive(Default)]
struct Checks(Cell<u32>);

impl Checks {
    #[track_caller]
    fn holds(&self, condition: bool, what: &str) {
        self.0.set(self.0.get() + 1);
        assert!(condition, "{what}");
    }

    #[track_caller]
    fn same<T: PartialEq<U> + Debug, U: Debug>(&self, found: T, expected: U, what: &str) {
        self.0.set(self.0.get() + 1);
        assert_eq!(found, expected, "{what}");
    }

    /// A refusal in the closed envelope.
    #[track_caller]
    fn envelope(&self, reply: &Reply, statuses: &[u16]) -> Value {
        let body = reply.json();
        self.holds(statuses.contains(&reply.status()), &format!("{}: {}", reply.asked, reply.answer.text()));
        let known = ["details", "error", "message"];
        self.holds(names(&body).iter().all(|name| known.contains(name)), &format!("closed: {body}"));
        self.holds(body["error"].is_string() && body["message"].is_string(), &format!("two texts: {body}"));
        body
    }

    /// Names that no descriptor and no event may have at its top.
    #[track_caller]
    fn without_secrets(&self, value: &Value) {
        let forbidden = ["secret", "credential", "credentials", "token", "apiKey", "password"];
        self.holds(!names(value).iter().any(|name| forbidden.contains(name)), &format!("no secret: {value}"));
    }
}

fn run_all(host: &Host) {
    for (name, scenario) in SCENARIOS {
        let checks = Checks::default();
        scenario(host, &checks);
        assert!(checks.0.get() > 0, "{name} asserted nothing");
    }
}

#[test]
fn every_scenario_of_the_suite_holds_and_asserts_something_on_sqlite() {
    run_all(&Host::of(setup(), None));
}

#[test]
fn every_scenario_of_the_suite_holds_and_asserts_something_on_postgresql() {
    let database = block_on(TestDatabase::create());
    run_all(&Host::of(setup().database(database.url()), Some(database)));
}

/// Every conformance endpoint at a path of its own.
fn seam_paths() -> Vec<(String, String)> {
    let paths = openwop::conformance_routes().into_iter();
    paths.map(|route| (route.method.to_string(), route.path.replace("{runId}", "__probe__"))).collect()
}

fn seams_need_a_key(host: &Host, checks: &Checks) {
    for (method, path) in seam_paths() {
        for method in ["GET", &method] {
            let reply = send_from(unused_source(), host.world.gate.address(), method, &path, &[]);
            checks.holds([401, 405].contains(&reply.status()), &format!("{}: {}", reply.asked, reply.status()));
        }
        let wrong = [("Authorization", "Bearer nobody")];
        let reply = send_from(unused_source(), host.world.gate.address(), &method, &path, &wrong);
        checks.envelope(&reply, &[401]);
    }
}

fn rate_limit_envelope(_: &Host, checks: &Checks) {
    let limit = "[server.rate_limit]\nrequests = 5\nper_seconds = 3600\n";
    let world = World::of(&setup().configuration(limit), None);
    let ask = || send(world.gate.address(), "GET", "/.well-known/openwop", &[], b"");
    let refused: Vec<Reply> = (0..50).map(|_| ask()).filter(|reply| reply.status() == 429).collect();
    checks.same(refused.len(), 45, "the limiter is on");
    for reply in refused {
        let body = checks.envelope(&reply, &[429]);
        checks.same(&body["error"], "rate_limited", "its word");
        let scope = body["details"]["scope"].as_str().unwrap_or_default();
        checks.holds(["tenant", "route", "global", "key"].contains(&scope), scope);
        let seconds: u64 = reply.answer.header("retry-after").unwrap().parse().unwrap();
        checks.same(&body["details"]["retryAfterMs"], &json!(seconds * 1000), "said twice, alike");
    }
}

#[test]
fn the_seams_are_not_there_unless_the_operator_says_so() {
    let world = World::sqlite();
    for (method, path) in seam_paths() {
        for actor in [world.admin(), world.actor("nobody", "")] {
            let reply = actor.ask(&method, &path, (method == "POST").then_some(&json!({})));
            reply.flat(404, "not_found");
        }
    }
    assert_eq!(seam_paths().len(), 8);
}

#[test]
fn a_seam_is_only_for_whoever_may_act_for_others() {
    let host = Host::of(setup(), None);
    let agent = &host.shop.agent;
    let before = host.shop.admin.events("").len();
    for (path, body) in [
        ("toolhooks/invoke", json!({"principal": "billing", "toolName": "web.search"})),
        ("tools/session-run", json!({})),
        ("http/safe-fetch", json!({"url": host.shop.upstream.url()})),
        ("http/safe-fetch-run", json!({"url": host.shop.upstream.url()})),
        ("governance/approval-gate", json!({"scenario": "override", "principal": "billing", "reason": "x"})),
        ("authorization/decide", json!({"principal": "suite", "action": "http:fetch", "resource": "x"})),
    ] {
        let refused = agent.post(&format!("/v1/host/sample/{path}"), &body).flat(403, "forbidden");
        assert_eq!(refused["details"]["requiredPermission"], "agents.act_as", "{path}");
        let unheard_of = json!({"unheardOf": 1});
        host.suite.post(&format!("/v1/host/sample/{path}"), &unheard_of).flat(400, "validation_error");
    }
    assert_eq!(host.shop.upstream.count(), 0);
    assert_eq!(host.shop.admin.events("").len(), before, "nothing was called");
    let events = agent.get("/v1/host/sample/test/runs/run-1/events").ok();
    assert_eq!(events, json!({"events": []}), "its own events are nobody else's business");
}
