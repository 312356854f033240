//! Every encoding in whole answers: successes, failures of all kinds, other types than JSON, compressed.

use serde_json::{Value, json};

use super::{assert_kept, echoing, kinds, talkative_world};
use crate::tool_user::ToolUser;

#[test]
fn an_echo_of_any_kind_of_credential_gives_nothing_away() {
    let world = talkative_world();
    let kinds = kinds::all();
    let mut answers = Vec::new();
    for kind in &kinds {
        let upstream = echoing(kind);
        let user = ToolUser::of(&world, kind.credential(&upstream));
        let reply = user.calls("any", json!({"note": "ordinary"}));
        let answer = reply.ok();
        // The rest of the echo is there, so that this looked at something.
        let result = &answer["result"];
        assert_eq!((&result["method"], answer["status"].as_str()), (&json!("POST"), Some("success")), "{}", kind.name);
        assert!(result["body"].as_str().unwrap().contains("ordinary"), "{}: {result}", kind.name);
        assert!(result.to_string().contains("[REDACTED]"), "{}: {result}", kind.name);
        // And the service was not told the key that the agent has at the gate.
        let received = upstream.received();
        let sent: Vec<&String> =
            received.iter().flat_map(|request| request.headers.iter().map(|(_, value)| value)).collect();
        assert!(sent.iter().all(|value| !value.contains(&user.agent.key)), "{}", kind.name);
        answers.push(reply);
        for status in [301, 302, 307, 400, 401, 403, 404, 409, 422, 429, 500, 502, 503] {
            let reply = user.calls("any", json!({"status": status}));
            assert_eq!(reply.status(), 502, "{}: {}", kind.name, reply.answer.text());
            assert_eq!(reply.json()["error"]["http_status"], status);
            answers.push(reply);
        }
    }
    assert_kept(world, &kinds, &answers);
}

#[test]
fn an_echo_in_any_type_of_answer_gives_nothing_away() {
    let world = talkative_world();
    let kinds = kinds::all();
    let mut answers = Vec::new();
    let ways: [Value; 8] = [
        json!({"gzip": true}),
        json!({"gzip": true, "status": 500}),
        json!({"content_type": "text/plain"}),
        json!({"content_type": "text/html", "gzip": true}),
        json!({"content_type": "application/xml", "status": 403}),
        json!({"binary": true, "content_type": "application/octet-stream"}),
        json!({"binary": true, "status": 500}),
        json!({"binary": true, "gzip": true}),
    ];
    for kind in &kinds {
        // A header of the answer cannot hold every secret.
        let is_ascii = kind.secrets.iter().all(|(_, secret)| secret.is_ascii());
        let upstream = echoing(kind);
        let user = ToolUser::of(&world, kind.credential(&upstream));
        for way in ways.iter().filter(|way| is_ascii || way.get("content_type").is_none()) {
            let reply = user.calls("any", way.clone());
            let result = &reply.json()["result"];
            let shown = result.get("base64").or(result.get("raw")).or(result.get("method"));
            assert!(shown.is_some(), "{}, {way}: {}", kind.name, reply.answer.text());
            if let Some(encoded) = result["base64"].as_str() {
                assert_clean_bytes(encoded, kind);
            }
            answers.push(reply);
        }
    }
    assert_kept(world, &kinds, &answers);
}

#[test]
fn a_password_too_short_to_be_searched_for_does_not_come_back_in_the_header_that_carried_it() {
    let world = talkative_world();
    let upstream = toolgate_testkit::upstream::Upstream::start(toolgate_testkit::upstream::Reply::echo);
    let metadata = json!({"base_url": upstream.url()});
    let material = json!({"username": "ann", "password": "xyz"});
    let user = ToolUser::of(&world, json!({"auth_type": "basic_auth", "material": material, "metadata": metadata}));
    let reply = user.calls("any", json!({}));
    reply.ok();
    assert_eq!(upstream.received()[0].header("authorization"), Some("Basic YW5uOnh5eg=="));
    for form in ["YW5uOnh5e", "ann:xyz", "616e6e3a78797a"] {
        assert!(!reply.answer.text().contains(form), "{}", reply.answer.text());
    }
}

/// Binary answers come in base64, which hides what is in them from a search.
fn assert_clean_bytes(encoded: &str, kind: &kinds::Kind) {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded.replace("[REDACTED]", "")).unwrap_or_default();
    assert!(!bytes.is_empty(), "{}: the answer is base64", kind.name);
    let secrets = kind.secrets.iter().map(|(name, secret)| (name.as_str(), secret.as_str()));
    crate::secrets::needles::Needles::of(secrets).assert_absent("a binary answer", &bytes);
}
