//! Guardians of somebody else at the three points of memory and knowledge: what they deny, change and drop, seen where it
//! matters, in the store and at the agent.

use serde_json::{Value, json};
use toolgate_testkit::upstream::{Reply as Answer, Upstream};

use super::{Reader, Shelf, texts};
use crate::guardians::third_party::ThirdParty;
use crate::world::{World, block_on, id, setup};
use toolgate_testkit::postgres::TestDatabase;

/// A gate with one guardian, on either engine.
fn guarded(guardian: &ThirdParty, on_postgres: bool) -> World {
    let database = on_postgres.then(|| block_on(TestDatabase::migrated()));
    let setup = setup()
        .environment("TOOLGATE_EGRESS_ALLOW", "127.0.0.0/8")
        .environment("TOOLGATE_GUARDIANS_BUDGET_MILLISECONDS", "60000");
    let setup = match &database {
        Some(database) => setup.database(database.url()),
        None => setup,
    };
    let file = setup.home().join("guardians.toml");
    let toml = format!(
        "[[guardian]]\nname = \"security\"\nurl = \"{}\"\ndialect = \"aos\"\ntimeout_milliseconds = 20000\nmay_modify = true\n",
        guardian.url()
    );
    std::fs::write(&file, toml).unwrap();
    World::of(&setup.environment("TOOLGATE_GUARDIANS_FILE", &file), database)
}

fn rule(action: &str, hook: &str) -> Value {
    json!([{"do": action, "method": hook, "reason": "not here"}])
}

fn on_both(scenario: impl Fn(&World, &ThirdParty)) {
    for on_postgres in [false, true] {
        let guardian = ThirdParty::start(json!([]));
        scenario(&guarded(&guardian, on_postgres), &guardian);
    }
}

#[test]
fn a_guardian_decides_what_is_stored() {
    on_both(|world, guardian| {
        let shelf = Shelf::memory(world, "notes", json!({}));
        let writer = shelf.agent("writer");
        writer.put("allowed: ann@example.org");
        assert_eq!(guardian.asked_about("steps/memoryStore").len(), 1);
        let asked = &guardian.asked_about("steps/memoryStore")[0]["body"]["params"];
        assert_eq!(asked["memory"], json!(["allowed: ann@example.org"]));

        guardian.follow(&rule("deny", "steps/memoryStore"));
        let error = writer.call("put", json!({"text": "denied"})).refused(403, "GUARDIAN_DENIED");
        assert_eq!(error["guardian"], "security");
        assert_eq!(writer.list(), ["allowed: ann@example.org"], "nothing was written");

        guardian.follow(&rule("modify", "steps/memoryStore"));
        writer.put("changed: bob@example.org");
        assert_eq!(writer.list(), ["changed: [REDACTED-PII]", "allowed: ann@example.org"]);
        assert!(writer.search("bob").is_empty(), "what was taken out is not in the index");

        guardian.follow(&rule("garbage", "steps/memoryStore"));
        writer.call("put", json!({"text": "nobody decided"})).refused(503, "GUARDIAN_FAILED");
        assert_eq!(writer.list().len(), 2);
    });
}

#[test]
fn a_guardian_decides_what_of_a_memory_reaches_the_agent() {
    on_both(|world, guardian| {
        let shelf = Shelf::memory(world, "notes", json!({}));
        let writer = shelf.agent("writer");
        let put = writer.put("mail ann@example.org");
        writer.put("mail the poison");
        writer.put("mail nobody");
        let search = || writer.call("search", json!({"query": "mail"}));
        let all = ["mail nobody", "mail the poison", "mail ann@example.org"];
        let mut found = texts(&search().ok()["result"]["items"]);
        found.sort();
        let mut sorted = all.to_vec();
        sorted.sort_unstable();
        assert_eq!(found, sorted);

        let hook = "steps/memoryContextRetrieval";
        assert!(!guardian.asked_about(hook).is_empty());
        guardian.follow(&rule("deny", hook));
        search().refused_result();
        writer.call("get", json!({"id": put["id"]})).refused_result();
        writer.call("list", json!({})).refused_result();

        guardian.follow(&rule("modify", hook));
        assert_eq!(writer.list(), ["mail nobody", "mail the poison", "mail [REDACTED-PII]"]);
        let got = writer.call("get", json!({"id": put["id"]})).ok()["result"]["item"].clone();
        assert_eq!((&got["text"], &got["id"]), (&json!("mail [REDACTED-PII]"), &put["id"]));

        guardian.follow(&rule("drop", hook));
        assert_eq!(writer.list(), ["mail nobody", "mail ann@example.org"], "one entry was dropped");
        guardian.follow(&json!([]));
        assert_eq!(writer.list(), all, "the store has what was put");
    });
}

#[test]
fn a_guardian_decides_what_of_a_collection_reaches_the_agent() {
    on_both(|world, guardian| {
        let shelf = Shelf::collection(world, "handbook", json!({}));
        shelf.ingest("ann", "text/plain", "Write to ann@example.org about refunds.");
        shelf.ingest("bad", "text/plain", "Refunds: this is the poison.");
        let reader = shelf.reader("reader", &["knowledge.search"]);
        walk(&reader, guardian, "/results", "/content", "search", "query");
        let asked = &guardian.asked_about("steps/knowledgeRetrieval")[0]["body"]["params"]["knowledgeStep"];
        assert_eq!(asked["query"], "refunds");
        assert_eq!(asked["results"].as_array().unwrap().len(), 2);
    });
}

#[test]
fn a_guardian_decides_what_of_an_external_retriever_reaches_the_agent() {
    let guardian = ThirdParty::start(json!([]));
    let world = guarded(&guardian, false);
    let search = Upstream::start(|_| {
        Answer::json(
            200,
            json!({"hits": [
                {"key": "1", "text": "Write to ann@example.org about refunds."}, {"key": "2", "text": "This is the poison."},
            ]}),
        )
    });
    let admin = world.admin();
    let step = json!({"kind": "knowledge", "query": "/q", "results": "/hits", "id": "/key", "content": "/text"});
    let definition = json!({"service": "web", "version": "1", "tools": {"search": {
        "parameters": {"q": {"type": "string", "required": true}},
        "http": {"method": "GET", "path": "/search", "parameters": {"q": {"in": "query"}}}, "safety_tier": "read", "step": step,
    }}});
    admin.post("/api/v1/services", &definition).created();
    let credential = json!({"service": "web", "label": "web", "auth_type": "api_key",
        "metadata": {"base_url": search.url(), "auth": {"location": "none"}}, "scopes_available": ["search"], "material": {}});
    let credential = id(&admin.post(&format!("/api/v1/vaults/{}/credentials", admin.vault()), &credential).created());
    let shelf = Shelf { world: &world, admin, store: "web".to_owned(), credential };
    let reader = shelf.reader("reader", &["search"]);
    walk(&reader, &guardian, "/hits", "/text", "search", "q");
}

/// Two results, of which one has an address and the other is to be dropped.
fn walk(reader: &Reader<'_>, guardian: &ThirdParty, results: &str, content: &str, tool: &str, query: &str) {
    let hook = "steps/knowledgeRetrieval";
    let search = || reader.call(tool, json!({query: "refunds"}));
    let contents = || -> Vec<String> {
        let found = search().ok()["result"].pointer(results).unwrap().clone();
        let mut found: Vec<String> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.pointer(content).unwrap().as_str().unwrap().to_owned())
            .collect();
        found.sort();
        found
    };
    assert_eq!(contents().len(), 2);
    guardian.follow(&rule("deny", hook));
    search().refused_result();
    guardian.follow(&rule("modify", hook));
    assert!(contents().contains(&"Write to [REDACTED-PII] about refunds.".to_owned()));
    guardian.follow(&rule("drop", hook));
    assert_eq!(contents(), ["Write to ann@example.org about refunds."]);
    guardian.follow(&rule("garbage", hook));
    search().refused_result();
    guardian.follow(&json!([]));
}

impl crate::world::Reply {
    /// A result that guardians have withheld.
    #[track_caller]
    fn refused_result(&self) {
        let body = self.json();
        let code = body["error"]["code"].as_str().unwrap_or_default();
        assert!(code.starts_with("GUARDIAN_"), "{body}");
        assert_eq!(body.get("result").cloned().unwrap_or_default(), Value::Null, "{body}");
    }
}
