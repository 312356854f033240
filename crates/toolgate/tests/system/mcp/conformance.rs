//! The conformance kit of the protocol against the gate, with a fixture of ours mounted behind it. What fails must be what
//! `tests/node/expected-failures-REVISION.yaml` says: nothing else may fail, and nothing of it may pass.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use toolgate_testkit::key_proxy::KeyProxy;
use toolgate_testkit::mcp_conformance::ConformanceServer;
use toolgate_testkit::upstream::{Reply, Upstream};

use crate::mounts::accepted::Accepted;
use crate::node;
use crate::world::{Actor, World, setup, text};

/// What a scenario that says nothing of the kind must have done, besides passing: a refusal counts as a text for the kit.
const CALLED: [&str; 7] = [
    "simple_text",
    "image_content",
    "audio_content",
    "embedded_resource",
    "multiple_content_types",
    "tool_with_progress",
    "error_handling",
];

#[test]
fn the_conformance_kit_finds_what_is_expected_of_both_revisions_and_nothing_else() {
    let approver = Approver::default();
    let webhook = approver.webhook();
    let setup = setup()
        .reaching_loopback()
        .environment("TOOLGATE_APPROVALS_WEBHOOK_URL", webhook.url())
        .environment("TOOLGATE_APPROVALS_WEBHOOK_SECRET", "a secret of the webhook that is long enough");
    let world = World::of(&setup, None);
    let kits = [("2025-11-25", false), ("2026-07-28", true)].map(|(revision, modern)| {
        let admin = world.tenant(if modern { "modern" } else { "legacy" });
        Kit { revision, fixture: Fixture::mount(&admin, modern), admin, address: world.address() }
    });
    let [_, modern] = &kits;
    approver.approves(&modern.admin);
    std::thread::scope(|scope| {
        for handle in kits.each_ref().map(|kit| scope.spawn(|| kit.check())) {
            handle.join().unwrap();
        }
    });
}

/// Approves every call at once, so that those that ask become tasks that end.
#[derive(Clone, Default)]
struct Approver(Arc<OnceLock<Actor>>);

impl Approver {
    /// Where the gate tells of approvals.
    fn webhook(&self) -> Upstream {
        let Self(person) = self.clone();
        Upstream::start(move |request| {
            let told = request.json();
            if let (Some(person), true) = (person.get(), told["type"] == "approval.requested") {
                person.decides(text(&told, "/approval/id"), "approve", json!({}));
            }
            Reply::json(200, json!({}))
        })
    }

    fn approves(&self, admin: &Actor) {
        let person = json!({"id": "approver", "kind": "user", "permissions": ["approvals.decide"]});
        self.0.set(admin.registers_as(&person)).ok().unwrap();
        admin.ask("PUT", "/api/v1/policies", Some(&json!({"files": [{"name": "tasks.cedar", "text": TASKS}]}))).ok();
    }
}

/// The calls that become tasks.
const TASKS: &str = r#"
@id("tasks")
@remedy("ask")
forbid (
  principal,
  action in [Action::"call:slow.compute", Action::"call:failing.job", Action::"call:protocol.error_job"],
  resource
);
"#;

/// A check that does not pass.
#[derive(Debug)]
struct Failure {
    scenario: String,
    check: String,
    #[expect(dead_code, reason = "for the message of the test")]
    reason: String,
}

impl Failure {
    fn fits(&self, entry: &str) -> bool {
        match entry.split_once(':') {
            Some((scenario, check)) => (scenario, check) == (&self.scenario, &self.check),
            None => entry == self.scenario,
        }
    }
}

/// One run of the kit, in a tenant of its own.
struct Kit {
    revision: &'static str,
    fixture: Fixture,
    admin: Actor,
    address: std::net::SocketAddr,
}

/// The mounts of a tenant, and the agent that may use all of them.
struct Fixture {
    test: ConformanceServer,
    _others: [ConformanceServer; 2],
    agent: Actor,
}

impl Fixture {
    fn mount(admin: &Actor, modern: bool) -> Self {
        let agent = admin.registers("kit", &["tools.invoke"]);
        let (test, schema, tasks) =
            (ConformanceServer::start(modern), ConformanceServer::schema(modern), ConformanceServer::tasks());
        Accepted::whole(admin, "test", Some(&test.url())).grant(&agent);
        Accepted::whole(admin, "json", Some(&schema.url())).grant(&agent);
        for (name, tool) in [("slow", "compute"), ("failing", "job"), ("protocol", "error_job")] {
            Accepted::of(admin, name, Some(&tasks.url()), &[tool]).grant(&agent);
        }
        Self { test, _others: [schema, tasks], agent }
    }
}

impl Kit {
    fn check(&self) {
        let (failures, expected, revision) = (self.failures(), expected(self.revision), self.revision);
        let unexpected: Vec<&Failure> =
            failures.iter().filter(|failure| !expected.iter().any(|entry| failure.fits(entry))).collect();
        assert!(unexpected.is_empty(), "{revision}: not expected to fail: {unexpected:#?}");
        let stale: Vec<&String> =
            expected.iter().filter(|entry| !failures.iter().any(|failure| failure.fits(entry))).collect();
        assert!(stale.is_empty(), "{revision}: passes now, remove it from the expected failures: {stale:?}");
        let calls = self.fixture.test.calls();
        for tool in CALLED {
            assert!(calls.contains_key(tool), "{revision}: {tool} was never called: {calls:?}");
        }
        let recorded = self.admin.get("/api/v1/invocations?agent_id=kit&limit=1000").ok();
        let succeeded: BTreeSet<&str> = recorded["invocations"]
            .as_array()
            .unwrap()
            .iter()
            // A tool that fails by itself is recorded as one that did.
            .filter(|call| call["status"] == "success" || call["tool"] == "error_handling")
            .map(|call| text(call, "/tool"))
            .collect();
        for tool in CALLED {
            assert!(succeeded.contains(tool), "{revision}: {tool} is not in the ledger: {succeeded:?}");
        }
    }

    /// The checks that do not pass.
    fn failures(&self) -> Vec<Failure> {
        let results = tempfile::tempdir().unwrap();
        let proxy = KeyProxy::start(self.address, &self.fixture.agent.key);
        let output = Command::new(node::node())
            .env_clear()
            .arg(node::package("@modelcontextprotocol/conformance/dist/index.js"))
            .args(["server", "--requirements", self.revision])
            .args(["--url", &format!("http://{}/mcp", proxy.address())])
            .arg("--output-dir")
            .arg(results.path())
            .output()
            .unwrap();
        let mut failures = Vec::new();
        let mut scenarios = 0;
        for entry in std::fs::read_dir(results.path()).unwrap() {
            let directory = entry.unwrap().path();
            let checks = std::fs::read_to_string(directory.join("checks.json")).unwrap();
            let checks: Value = serde_json::from_str(&checks).unwrap();
            scenarios += 1;
            let failed = |check: &&Value| check["status"] == "FAILURE" || check["status"] == "WARNING";
            failures.extend(checks.as_array().unwrap().iter().filter(failed).map(|check| Failure {
                scenario: scenario(&directory),
                check: text(check, "/id").to_owned(),
                reason: check["errorMessage"].as_str().unwrap_or_default().to_owned(),
            }));
        }
        let printed = String::from_utf8_lossy(&output.stdout);
        // Guards against a kit that ran nothing.
        let announced = printed.lines().find(|line| line.starts_with("Running requirements")).unwrap_or_default();
        assert!(announced.contains(&format!("({scenarios} scenarios)")), "{scenarios}: {announced}\n{output:?}");
        assert!(scenarios >= 30, "{announced}");
        failures
    }
}

/// `server-NAME-TIME`, as the kit names the directory of a scenario.
fn scenario(directory: &Path) -> String {
    const TIME: &str = "-2026-01-02T03-04-05-678Z";
    let name = directory.file_name().unwrap().to_str().unwrap().strip_prefix("server-").unwrap();
    name.split_at_checked(name.len() - TIME.len()).unwrap().0.to_owned()
}

/// What the file of a revision says will fail: a scenario, or `SCENARIO:CHECK`, after each `- `.
fn expected(revision: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/node/expected-failures-{revision}.yaml"));
    let text = std::fs::read_to_string(&file).unwrap();
    text.lines().filter_map(|line| line.trim().strip_prefix("- ")).map(|name| name.trim().to_owned()).collect()
}
