//! Several gates on one PostgreSQL: what one has answered, the others know at their very next read.

use serde_json::{Value, json};
use toolgate_model::audit_export;
use toolgate_model::checkpoint::PublicKey;
use toolgate_testkit::gate_process::{GateProcess, GateSetup};
use toolgate_testkit::postgres::TestDatabase;

#[tokio::test]
async fn a_permission_taken_away_at_one_gate_admits_no_later_call_at_another() {
    let database = TestDatabase::create().await;
    let setup = GateSetup::new(env!("CARGO_BIN_EXE_toolgate")).database(database.url());
    tokio::task::spawn_blocking(move || {
        // Given two gates, an agent that fetches for itself and a service that fetches for the agent.
        let gates = [setup.start(), setup.start()];
        made(&gates[0], "/api/v1/agents", json!({"id": "billing", "scopes": ["http:fetch"]}));
        let own = json!(["tools.invoke"]);
        let runner = json!({"id": "runner", "kind": "service", "permissions": ["tools.invoke", "agents.act_as"]});
        made(&gates[0], "/api/v1/agents", runner);
        let key = |of: &str| made(&gates[0], &format!("/api/v1/agents/{of}/keys"), json!({}))["key"].clone();
        let (billing, runner) = (key("billing"), key("runner"));
        let fetch =
            json!({"tool": "openwop:http.fetch", "agent_id": "billing", "parameters": {"url": "http://10.0.0.1/"}});
        let call = |gate: &GateProcess, key: &Value| {
            let (status, answer) = gate.request_as(key.as_str().unwrap(), "POST", "/api/v1/tools/invoke", Some(&fetch));
            (status, answer["error"]["code"].as_str().unwrap().to_owned())
        };
        let set = |gate: &GateProcess, who: &str, permissions: &Value| {
            let (status, answer) =
                gate.request("PATCH", &format!("/api/v1/agents/{who}"), Some(&json!({"permissions": permissions})));
            assert_eq!(status, 200, "{answer}");
        };
        let cases = [
            ("billing", &billing, json!([]), own),
            ("runner", &runner, json!(["tools.invoke"]), json!(["tools.invoke", "agents.act_as"])),
            ("runner", &runner, json!(["agents.act_as"]), json!(["tools.invoke", "agents.act_as"])),
        ];
        for round in 0..4 {
            let (one, other) = (&gates[round % 2], &gates[(round + 1) % 2]);
            for (who, key, less, all) in &cases {
                // When the other gate knows the caller, and the first one takes something away.
                assert_eq!(call(other, key), (502, "PROXY_ERROR".to_owned()), "admitted, and blocked on its way");
                set(one, who, less);
                // Then the other gate admits nothing from then on.
                assert_eq!(call(other, key), (403, "PERMISSION_DENIED".to_owned()), "round {round}: {who} {less}");
                set(one, who, all);
            }
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_revocation_by_one_gate_holds_at_the_next_read_of_another() {
    let database = TestDatabase::create().await;
    let setup = GateSetup::new(env!("CARGO_BIN_EXE_toolgate")).database(database.url());
    tokio::task::spawn_blocking(move || {
        // Given two gates that share database, master key and audit key.
        let gates = [setup.start(), setup.start()];
        let (_, vault) = gates[0].request("POST", "/api/v1/vaults", Some(&json!({"name": "shared"})));
        let body = json!({"vault_id": vault["id"], "service": "stripe", "label": "shared", "scopes_available": ["read"],
            "material": {"api_key": "sk_live_shared"}});
        let (_, credential) = gates[1].request("POST", "/api/v1/credentials", Some(&body));

        for round in 0..30 {
            let (one, other) = (&gates[round % 2], &gates[(round + 1) % 2]);
            let root = made(
                one,
                "/api/v1/grants",
                json!({"credential_id": credential["id"], "agent_id": "billing",
                "scopes": ["read"], "delegatable": true, "delegation_depth": 1}),
            );
            let path = format!("/api/v1/grants/{}/delegate", id(&root));
            let below = made(other, &path, json!({"target_agent_id": "worker", "scopes": ["read"]}));

            // When one revokes, then the other sees it at once, down to the grant that it made itself.
            let (status, revoked) = one.request("DELETE", &format!("/api/v1/grants/{}", id(&root)), None);
            assert_eq!((status, revoked["revoked_count"].as_u64()), (200, Some(2)), "{revoked}");
            let (_, seen) = other.request("GET", &format!("/api/v1/grants/{}", id(&below)), None);
            assert_eq!(seen["status"], "revoked", "round {round}: {seen}");
            assert!(seen["revision"].as_u64() >= revoked["revision"].as_u64(), "round {round}: {seen} {revoked}");
            let (status, refused) =
                other.request("POST", &path, Some(&json!({"target_agent_id": "w", "scopes": ["read"]})));
            assert_eq!((status, refused["error"]["code"].as_str()), (403, Some("GRANT_REVOKED")), "{refused}");
        }

        // And both opened one vault and wrote one log.
        for gate in &gates {
            let (status, _) = gate.request("POST", &format!("/api/v1/credentials/{}/verify", id(&credential)), None);
            assert_eq!(status, 200);
            let (_, head) = gate.request("GET", "/api/v1/audit/head", None);
            let key = PublicKey::parse(head["public_key"].as_str().unwrap()).unwrap();
            let export = gate.try_request_as(gate.token(), "GET", "/api/v1/audit/export", None).unwrap();
            let verified = audit_export::verify(export.body.as_slice(), &key).unwrap();
            assert!(verified.size > 30 * 4);
        }
    })
    .await
    .unwrap();
}

fn made(gate: &GateProcess, path: &str, body: Value) -> Value {
    let (status, answer) = gate.request("POST", path, Some(&body));
    assert_eq!(status, 201, "{answer}");
    answer
}

fn id(thing: &Value) -> &str {
    thing["id"].as_str().unwrap()
}
