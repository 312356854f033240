//! Tokens that are not valid here, and what they cost.

use serde_json::{Value, json};
use toolgate_testkit::token_signer::{TokenSigner, unsigned};
use toolgate_testkit::upstream::TokenIssuer;

use super::{PUBLIC_URL, Trusting, trusting};
use crate::world::{World, send_from, setup, unused_source};

#[test]
fn tokens_that_are_not_valid_here_are_refused_with_the_reason() {
    let gate = Trusting::sqlite();
    gate.world.admin().post("/api/v1/agents", &json!({"id": "billing"})).created();
    gate.register("billing", "workload-1");
    let claims = gate.claims("workload-1");
    let with = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        gate.signer.token(&claims)
    };
    let ended = claims["iat"].as_i64().unwrap() - 60;
    let later = claims["exp"].as_i64().unwrap();
    let foreign = TokenSigner::es256("first");
    let mut tokens = vec![
        (with("aud", json!("https://other.example.com/mcp")), "TOKEN_INVALID", "not for this gate"),
        (with("aud", json!("workload-1")), "TOKEN_INVALID", "not for this gate"),
        (with("exp", json!(ended)), "TOKEN_EXPIRED", "expired"),
        (with("exp", Value::Null), "TOKEN_INVALID", "`exp`"),
        (with("nbf", json!(later)), "TOKEN_INVALID", "`nbf`"),
        (with("iss", json!("https://evil.example")), "TOKEN_INVALID", "issuer is not trusted"),
        (with("groups", json!(vec!["g"; 5000])), "TOKEN_INVALID", "exceeds"),
        (foreign.token(&claims), "TOKEN_INVALID", "signature"),
        (TokenSigner::es256("second").token(&claims), "TOKEN_INVALID", "no such key"),
        (format!("{}.", unsigned(&json!({"alg": "none"}), &claims)), "TOKEN_INVALID", "algorithm"),
    ];
    tokens.extend(gate.signer.confused(&claims).into_iter().map(|token| (token, "TOKEN_INVALID", "algorithm")));
    for (token, code, reason) in tokens {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str())];
        let reply = send_from(unused_source(), gate.world.address(), "GET", "/api/v1/whoami", &headers);
        let error = reply.refused(401, code);
        assert!(error["message"].as_str().unwrap().contains(reason), "{reason}: {error}");
        assert_eq!(reply.answer.header("www-authenticate"), Some("Bearer error=\"invalid_token\""), "{reason}");
    }
    assert_eq!(gate.bearer("workload-1").get("/api/v1/whoami").ok()["id"], "billing");
}

#[test]
fn invented_tokens_close_an_address_but_not_a_token_that_was_accepted() {
    let gate = Trusting::sqlite();
    gate.world.admin().post("/api/v1/agents", &json!({"id": "billing"})).created();
    gate.register("billing", "workload-1");
    let source = unused_source();
    let sends = |token: &str| {
        let bearer = format!("Bearer {token}");
        send_from(source, gate.world.address(), "GET", "/api/v1/whoami", &[("Authorization", &bearer)]).status()
    };
    let accepted = gate.bearer("workload-1").key;
    assert_eq!(sends(&accepted), 200);
    let claims = gate.claims("workload-1");
    let forger = TokenSigner::es256("first");
    let statuses: Vec<u16> =
        (0..30).map(|number| sends(&forger.token(&json!({"jti": number, "iss": claims["iss"]})))).collect();
    assert_eq!((statuses[0], statuses[29]), (401, 429));
    assert_eq!(sends(&accepted), 200);
    assert_eq!(sends(&gate.signer.token(&claims)), 429, "a token that is new here waits as a new key does");
    // Metadata and keys were fetched once, for the first token; invented ones fetch nothing.
    assert_eq!(gate.issuer.upstream().count(), 2);
}

#[test]
fn all_tokens_of_a_subject_share_one_limit() {
    let limited = [("TOOLGATE_RATE_LIMIT_REQUESTS", "10"), ("TOOLGATE_RATE_LIMIT_PER_SECONDS", "3600")];
    let setup = limited.iter().fold(setup(), |setup, (name, value)| setup.environment(name, value));
    let gate = Trusting::of(setup, None, "");
    gate.world.admin().post("/api/v1/agents", &json!({"id": "billing"})).created();
    gate.register("billing", "workload-1");
    let claims = gate.claims("workload-1");
    let statuses = |number: usize, requests: usize| -> Vec<u16> {
        let mut claims = claims.clone();
        claims["jti"] = json!(number);
        let bearer = gate.world.actor("billing", &gate.signer.token(&claims));
        (0..requests).map(|_| bearer.get("/api/v1/whoami").status()).collect()
    };
    assert_eq!(statuses(1, 6), [200; 6]);
    assert_eq!(statuses(2, 5), [200, 200, 200, 200, 429]);
}

#[test]
fn an_issuer_that_cannot_be_reached_lets_nobody_in_and_stops_nobody_with_a_key() {
    let signer = TokenSigner::es256("first");
    let issuer = TokenIssuer::start(&[&signer]);
    let url = issuer.url();
    drop(issuer);
    let world = World::of(&trusting(setup(), &url, PUBLIC_URL, ""), None);
    let admin = world.admin();
    let seconds = admin.time().as_millis() / 1000;
    let claims = json!({"iss": url, "aud": format!("{PUBLIC_URL}/mcp"), "sub": "a", "exp": seconds + 600});
    let token = signer.token(&claims);
    let reply = world.actor("a", &token).get("/api/v1/whoami");
    let error = reply.refused(503, "ISSUER_UNAVAILABLE");
    assert!(!error["message"].as_str().unwrap().contains("127.0.0.1"), "{error}");
    assert!(reply.answer.header("retry-after").is_some());
    assert_eq!(admin.get("/api/v1/whoami").status(), 200);
}

#[test]
fn keys_on_a_private_address_are_not_fetched_unless_the_operator_names_the_host() {
    let signer = TokenSigner::es256("first");
    let keys = TokenIssuer::start(&[&signer]);
    let setup = setup();
    let file = setup.home().join("identity.toml");
    // The issuer is public by its name, and its keys are said to be on this machine.
    let address = keys.url().replace("http:", "https:");
    let text = format!("[[issuers]]\nissuer = \"https://login.example.com\"\njwks_uri = \"{address}/keys\"\n");
    std::fs::write(&file, text).unwrap();
    let setup = setup.environment("TOOLGATE_IDENTITY_FILE", &file).environment("TOOLGATE_PUBLIC_URL", PUBLIC_URL);
    let world = World::of(&setup, None);
    let seconds = world.admin().time().as_millis() / 1000;
    let claims = json!({"iss": "https://login.example.com", "aud": PUBLIC_URL, "sub": "a", "exp": seconds + 600});
    world.actor("a", &signer.token(&claims)).get("/api/v1/whoami").refused(503, "ISSUER_UNAVAILABLE");
    assert_eq!(keys.upstream().connections(), 0);
}

#[test]
fn a_gate_that_does_not_know_its_own_url_does_not_start_with_an_issuer() {
    let setup = setup();
    let file = setup.home().join("identity.toml");
    std::fs::write(&file, "[[issuers]]\nissuer = \"https://login.example.com\"\n").unwrap();
    let ended = setup.environment("TOOLGATE_IDENTITY_FILE", &file).start_refused();
    assert!(ended.stderr.contains("set server.public_url"), "{}", ended.stderr);
}
