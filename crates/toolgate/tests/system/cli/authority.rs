//! Tenants, agents, keys, vaults, credentials and grants by command.

use serde_json::json;

use super::{Person, rows, setup};

/// Long enough to be looked for in everything that is printed.
const SECRET: &str = "sk_live_never_to_be_seen_again";

#[test]
fn tenants_are_made_and_listed() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    let text = person.reads(&["tenant", "create", "acme", "--name", "Acme Ltd"]);
    assert!(text.contains("acme") && text.contains("tgk_"), "{text}");
    let made = person.gets(&["tenant", "create", "other"]);
    assert!(made["administrator"]["key"].as_str().unwrap().starts_with("tgk_"));
    let list = person.reads(&["tenant", "list"]);
    let ids: Vec<&str> = rows(&list).iter().map(|row| row[0]).collect();
    assert_eq!(ids, ["acme", "default", "other"]);
    assert!(!list.contains("tgk_"), "{list}");
    let page = person.gets(&["tenant", "list", "--limit", "2"]);
    assert_eq!(page["tenants"].as_array().unwrap().len(), 2);
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = person.reads(&["tenant", "list", "--limit", "2", "--cursor", cursor]);
    assert_eq!(rows(&rest)[0][0], "other");
    let first = person.says(&["tenant", "list", "--limit", "1"]);
    assert!(first.stderr.contains("--cursor") && !first.stdout.contains("--cursor"), "{}", first.all());
    assert_eq!(person.gets(&["tenant", "list", "--limit", "1", "--all"])["tenants"].as_array().unwrap().len(), 3);

    let other = Person { gate: &gate, key: made["administrator"]["key"].as_str().unwrap() };
    assert_eq!(other.gets(&["agent", "show", "admin"])["tenant_id"], "other");
}

#[test]
fn agents_and_keys_live_and_end() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    let text = person.reads(&["agent", "create", "billing", "--name", "Billing", "--permission", "tools.delegate"]);
    assert!(text.contains("toolgate key create billing"), "{text}");
    let made = person.gets(&["agent", "create", "robot", "--kind", "service", "--scope", "a", "--scope", "b"]);
    assert_eq!((&made["kind"], &made["scopes"]), (&json!("service"), &json!(["a", "b"])));
    assert_eq!(person.gets(&["agent", "list"])["agents"].as_array().unwrap().len(), 3);
    assert!(person.reads(&["agent", "list"]).contains("Billing"));
    assert!(person.reads(&["agent", "show", "billing"]).contains("tools.delegate"));

    let key = person.gets(&["key", "create", "billing", "--label", "laptop", "--expires", "2100-01-01T00:00:00Z"]);
    let secret = key["key"].as_str().unwrap();
    assert_eq!(gate.request_as(secret, "GET", "/api/v1/whoami", None).0, 200);
    assert!(person.reads(&["key", "create", "billing"]).contains("tgk_"));
    let list = person.reads(&["key", "list", "billing"]);
    assert!(list.contains("laptop") && !list.contains(secret), "{list}");
    assert_eq!(person.gets(&["key", "list", "billing"])["keys"].as_array().unwrap().len(), 2);
    let id = key["id"].as_str().unwrap();
    assert!(person.reads(&["key", "revoke", id]).contains("revoked"));
    assert_eq!(person.gets(&["key", "revoke", id])["status"], "revoked");
    assert_eq!(gate.request_as(secret, "GET", "/api/v1/whoami", None).0, 401);

    assert!(person.reads(&["agent", "remove", "billing", "--yes"]).contains("billing was removed"));
    assert_eq!(person.gets(&["agent", "remove", "robot", "--yes"])["status"], "removed");
    assert_eq!(person.says(&["agent", "show", "billing"]).code, 1);
}

#[test]
fn agents_are_limited_and_changed() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    let create = [
        "agent",
        "create",
        "billing",
        "--scope",
        "tools:mail:*",
        "--rate-limit",
        "*=100/60",
        "--rate-limit",
        "mail.send=1/60/3",
        "--allow-tool",
        "connector:mail.send",
        "--allow-tool",
        "openwop:http.fetch",
    ];
    let text = person.reads(&create);
    assert!(text.contains("These tools do not exist yet: connector:mail.send"), "{text}");
    let shown = person.gets(&["agent", "show", "billing"]);
    let limits = json!({
        "*": {"requests": 100, "per_seconds": 60}, "mail.send": {"requests": 1, "per_seconds": 60, "burst": 3}
    });
    assert_eq!((&shown["rate_limits"], &shown["scopes"]), (&limits, &json!(["tools:mail:*"])));
    assert_eq!(shown["tool_allowlist"], json!(["connector:mail.send", "openwop:http.fetch"]));
    assert!(person.reads(&["agent", "show", "billing"]).contains("rate_limits.mail.send.burst:"));
    assert!(person.reads(&["agent", "list"]).contains("connector:mail.send, openwop:http.fetch"));

    let text = person.reads(&["agent", "update", "billing", "--name", "Bills", "--permission", "tools.delegate"]);
    assert!(text.contains("billing is now at revision 2."), "{text}");
    let changed = person.gets(&["agent", "update", "billing", "--scope", "a", "--no-rate-limits", "--any-tool"]);
    assert_eq!((&changed["name"], &changed["permissions"]), (&json!("Bills"), &json!(["tools.delegate"])));
    assert_eq!((&changed["scopes"], &changed["rate_limits"]), (&json!(["a"]), &json!({})));
    assert_eq!(changed["tool_allowlist"], json!(null));
    let bare = person.gets(&["agent", "update", "billing", "--no-name", "--no-permissions", "--no-scopes"]);
    assert_eq!((&bare["name"], &bare["permissions"], &bare["scopes"]), (&json!(null), &json!([]), &json!([])));

    for (wrong, word) in [
        (&["--name", "A", "--no-name"][..], "--no-name"),
        (&["--rate-limit", "mail.send=1"], "REQUESTS/PERIOD"),
        (&["--rate-limit", "*=1/1", "--rate-limit", "*=2/1"], "twice"),
        (&[], "nothing to change"),
    ] {
        let said = person.says(&[&["agent", "update", "billing"], wrong].concat());
        assert_eq!(said.code, 2, "{wrong:?}: {}", said.all());
        assert!(said.stderr.contains(word), "{wrong:?}: {}", said.all());
    }
    assert_eq!(person.says(&["agent", "update", "nobody", "--name", "A"]).code, 1);
}

#[test]
fn vaults_are_made_shown_and_deleted() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    assert!(person.reads(&["vault", "create", "main"]).contains("vault_"));
    let id = person.makes(&["vault", "create", "other", "--owner", "admin"], "");
    assert_eq!(rows(&person.reads(&["vault", "list"])).len(), 2);
    assert_eq!(person.gets(&["vault", "list"])["vaults"][1]["name"], "other");
    assert!(person.reads(&["vault", "show", &id]).contains("other"));
    assert_eq!(person.gets(&["vault", "show", &id])["id"], json!(id));
    assert!(person.reads(&["vault", "delete", &id, "--yes"]).contains("deleted;"));
    assert_eq!(person.says(&["vault", "show", &id]).code, 1);
    let rest = person.gets(&["vault", "list"])["vaults"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(person.gets(&["vault", "delete", &rest, "--yes"])["status"], "deleted");
    assert_eq!(person.reads(&["vault", "list"]).trim(), "none");
}

#[test]
fn the_master_key_is_changed_and_the_status_says_so() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    let vault = person.makes(&["vault", "create", "main"], "");
    for number in 0..5 {
        person.makes(&["credential", "add", &vault, "stripe", &format!("number {number}")], SECRET);
    }
    let before = person.gets(&["vault", "status"]);
    assert_eq!((&before["remaining"], &before["keys"][0]["wraps"]), (&json!(0), &json!(5)));
    let after = person.gets(&["vault", "rekey"]);
    assert_ne!(before["current"], after["current"]);
    assert_eq!(after["remaining"], 0);
    assert!(person.reads(&["vault", "status"]).contains(after["current"].as_str().unwrap()));
    assert!(person.reads(&["vault", "rekey"]).contains("Data keys under other master keys: 0"));
    assert_ne!(person.gets(&["vault", "rekey", "--no-wait"])["current"], after["current"]);
}

#[test]
fn secrets_come_from_standard_input_and_are_never_printed() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    let vault = person.makes(&["vault", "create", "main"], "");
    let metadata = gate.setup().home().join("metadata.json");
    std::fs::write(&metadata, format!(r#"{{"base_url": "https://api.example.com", "client_id": "{SECRET}"}}"#))
        .unwrap();
    let metadata = metadata.to_str().unwrap();

    let add = ["credential", "add", &vault, "stripe", "Stripe live", "--scope", "read", "--scope", "write"];
    let mut printed = vec![person.says_with(&add, &format!("{SECRET}\n"))];
    let id = person.makes(&add, &format!("{SECRET}\n"));
    let fields = format!(r#"{{"username": "ann", "password": "{SECRET}"}}"#);
    let basic = ["credential", "add", &vault, "wiki", "Wiki", "--auth-type", "basic_auth", "--material-stdin"];
    printed.push(person.says_with(&basic, &fields));
    let oauth = ["credential", "add", &vault, "crm", "CRM", "--auth-type", "oauth2_client_credentials"];
    let lifted = [&oauth[..], &["--metadata", metadata, "--material-stdin", "--json"]].concat();
    printed.push(person.says_with(&lifted, &format!(r#"{{"client_secret": "{SECRET}"}}"#)));
    printed.push(person.says(&["credential", "add", &vault, "later", "Later", "--no-material"]));
    printed.push(person.says(&["credential", "list", &vault]));
    printed.push(person.says(&["credential", "list", &vault, "--json"]));
    printed.push(person.says(&["credential", "show", &id]));
    printed.push(person.says(&["credential", "show", &id, "--json"]));
    printed.push(person.says_with(&["credential", "rotate", &id, "--expires", "never"], &format!("{SECRET}_2")));
    printed.push(person.says_with(&["credential", "rotate", &id, "--json"], &format!("{SECRET}_3\r\n")));
    printed.push(person.says(&["credential", "verify", &id]));
    printed.push(person.says(&["credential", "verify", &id, "--json"]));
    printed.push(person.says(&["audit", "events", "--json"]));
    printed.push(person.says(&["audit", "export"]));
    for said in &printed {
        assert_eq!(said.code, 0, "{}", said.all());
        assert!(!said.all().contains(SECRET), "{}", said.all());
    }
    assert!(printed[2].stdout.contains("client_id"), "the lifted field is named: {}", printed[2].all());
    assert_eq!(printed[9].json()["version"], 3);
    assert!(printed[10].stdout.contains("intact"), "{}", printed[10].all());

    let refused = person.says_with(&basic, r#"{"username": "ann"}"#);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("`password`"), "{}", refused.all());
    assert_eq!(person.says_with(&basic, "not json").code, 1);
    assert_eq!(person.says_with(&basic[..7], "plain text").code, 2, "two fields cannot come as one text");
    assert_eq!(person.says_with(&add, "").code, 1, "no secret was entered");

    let text = person.reads(&["credential", "revoke", &id, "--reason", "leaked", "--yes"]);
    assert!(text.contains("revoked, with"), "{text}");
    assert_eq!(person.gets(&["credential", "show", &id])["status"], "revoked");
    let other = person.gets(&["credential", "list", &vault])["credentials"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(person.gets(&["credential", "revoke", &other, "--yes"])["status"], "revoked");

    let ended = gate.stop();
    assert!(!ended.stderr.contains(SECRET), "the log must not hold a secret");
}

#[test]
fn grants_are_made_delegated_paused_and_revoked() {
    let gate = setup().start();
    let person = Person::administrator(&gate);
    let vault = person.makes(&["vault", "create", "main"], "");
    let add = ["credential", "add", &vault, "stripe", "Stripe", "--scope", "read", "--scope", "write"];
    let credential = person.makes(&add, SECRET);
    for agent in ["boss", "clerk", "helper"] {
        person.reads(&["agent", "create", agent, "--permission", "tools.invoke", "--permission", "tools.delegate"]);
    }
    let constraints = gate.setup().home().join("constraints.json");
    std::fs::write(&constraints, r#"{"allowed_hosts": ["api.stripe.com"]}"#).unwrap();
    let grant = person.gets(&[
        "grant",
        "create",
        "boss",
        &credential,
        "--scope",
        "read",
        "--scope",
        "write",
        "--constraint",
        "max_invocations_per_hour=100",
        "--constraint",
        "amount_max=5000",
        "--constraints",
        constraints.to_str().unwrap(),
        "--delegatable",
        "--depth",
        "unlimited",
        "--intent",
        "intent-1",
        "--expires",
        "never",
    ]);
    let root = grant["id"].as_str().unwrap();
    assert_eq!(grant["constraints"]["max_invocations_per_hour"], 100);
    assert_eq!(grant["constraints"]["allowed_hosts"], json!(["api.stripe.com"]));
    assert_eq!((&grant["expires_at"], &grant["delegation_depth"]), (&json!(null), &json!(null)));
    assert_eq!(grant["context"], json!({"intent_id": "intent-1"}));
    let text = person.reads(&["grant", "create", "helper", &credential, "--scope", "read"]);
    assert!(text.contains("for helper; expires at"), "{text}");

    let delegate =
        ["grant", "delegate", root, "clerk", "--scope", "read", "--delegatable", "--expires", "2100-01-01T00:00:00Z"];
    let clerk = person.makes(&delegate, "");
    let text = person.reads(&["grant", "delegate", &clerk, "helper", "--scope", "read", "--task", "task-1"]);
    assert!(text.contains("for helper"), "{text}");
    let wider = person.says(&["grant", "delegate", &clerk, "helper", "--scope", "write"]);
    assert_eq!(wider.code, 1);
    assert!(wider.stderr.contains("[GRANT_SCOPE_INSUFFICIENT]"), "{}", wider.all());

    let tree = person.reads(&["grant", "tree", root]);
    let lines: Vec<&str> = tree.lines().collect();
    assert!(lines[0].starts_with(root) && lines[1].starts_with("└─ ") && lines[2].starts_with("   └─ "), "{tree}");
    assert_eq!(person.gets(&["grant", "tree", root])["count"], 2);
    assert_eq!(rows(&person.reads(&["grant", "list"])).len(), 4);
    assert_eq!(person.gets(&["grant", "list", "--agent", "helper"])["grants"].as_array().unwrap().len(), 2);
    let list =
        ["grant", "list", "--source", "delegated", "--source-grant", root, "--status", "active", "--service", "stripe"];
    assert_eq!(person.gets(&list)["grants"][0]["id"], json!(clerk));
    assert_eq!(person.gets(&["grant", "list", "--credential", &credential])["grants"].as_array().unwrap().len(), 4);

    assert!(person.reads(&["grant", "suspend", root, "--reason", "under review"]).contains("suspended"));
    assert_eq!(person.gets(&["grant", "show", &clerk])["effective_status"], "suspended");
    assert!(person.reads(&["grant", "show", &clerk]).contains(root));
    assert!(person.reads(&["grant", "resume", root]).contains("active"));
    assert_eq!(person.gets(&["grant", "suspend", root])["status"], "suspended");
    assert_eq!(person.gets(&["grant", "resume", root])["status"], "active");
    assert!(person.reads(&["grant", "revoke", &clerk, "--reason", "done"]).contains("2 grants were revoked"));
    assert_eq!(person.gets(&["grant", "revoke", root])["revoked_count"], 1);
}
