//! Guardians on what agents say to each other, in both directions: what they refuse does not arrive, and what they change
//! arrives changed.

use serde_json::{Value, json};

use super::network::{FORMS, Network};
use crate::guardians::third_party::ThirdParty;
use crate::world::{text, until};

const ADDRESS: &str = "ann@example.org";

fn send(what: &str, streaming: bool) -> Value {
    json!([{"do": "send", "text": what, "streaming": streaming}])
}

#[test]
fn what_a_guardian_denies_does_not_reach_the_other_side_and_its_reason_reaches_the_client() {
    let guardian = ThirdParty::start(json!([{"do": "deny", "reason": "not like this"}]));
    let network = Network::guarded(&guardian);
    for form in FORMS {
        for streaming in [false, true] {
            let came = network.through(&network.clerk, form, &send("hello you", streaming), &[]);
            assert!(text(&came[0], "/text").contains("not like this"), "{form:?}: {came:?}");
        }
    }
    assert!(network.peer.received().is_empty());
    let methods = ["message/send", "message/stream"].map(|method| guardian.asked_about(method).len());
    assert_eq!(methods, [3, 3]);
}

#[test]
fn an_answer_that_a_guardian_denies_does_not_reach_the_client() {
    let deny =
        |method: &str| json!({"do": "deny", "method": method, "contains": "you said", "reason": "not this answer"});
    let guardian = ThirdParty::start(json!([deny("message/send"), deny("message/stream"), deny("tasks/get")]));
    let network = Network::guarded(&guardian);
    for form in FORMS {
        let whole = network.through(&network.clerk, form, &send("hello you", false), &[]);
        assert!(text(&whole[0], "/text").contains("not this answer"), "{form:?}: {whole:?}");
        assert!(!whole[0].to_string().contains("you said"));
        let streamed = network.through(&network.clerk, form, &send("hello you", true), &[]);
        assert!(text(&streamed[0], "/text").contains("not this answer"), "{form:?}: {streamed:?}");
        assert!(!streamed[0]["events"].as_array().unwrap().is_empty(), "what came before the denial arrived");
        assert!(!streamed[0].to_string().contains("you said"));
    }
}

#[test]
fn what_a_guardian_changes_is_what_arrives() {
    let guardian = ThirdParty::start(json!([{"do": "modify"}]));
    let network = Network::guarded(&guardian);
    for form in FORMS {
        for streaming in [false, true] {
            let came = network.through(&network.clerk, form, &send(&format!("hello {ADDRESS}"), streaming), &[]);
            assert!(came[0].get("error").is_none(), "{form:?}: {came:?}");
            assert!(came[0].to_string().contains("you said [REDACTED-PII]"), "{form:?}: {came:?}");
        }
    }
    assert!(!network.peer.has_received(ADDRESS));
}

#[test]
fn a_stream_is_cut_by_what_two_pieces_spell_together_and_its_task_is_cancelled() {
    let rule = json!({"do": "deny", "method": "message/stream", "contains": "the password is", "reason": "no secrets"});
    let guardian = ThirdParty::start(json!([rule]));
    let network = Network::guarded(&guardian);
    for form in FORMS {
        let came = network.through(&network.clerk, form, &send("pieces so the pass|word is|xyzzy|end", true), &[]);
        let text = text(&came[0], "/text");
        assert!(text.contains("no secrets"), "{form:?}: {came:?}");
        let events = came[0]["events"].to_string();
        assert!(events.contains("so the pass") && !events.contains("\"word is\""), "{form:?}: {events}");
        until("the cancellation", || {
            let is_cancel = |request: &Value| {
                let request = request.to_string();
                request.contains("CancelTask") || request.contains("tasks/cancel") || request.contains(":cancel")
            };
            network.peer.received().iter().any(is_cancel).then_some(())
        });
    }
}

#[test]
fn queries_and_cancellations_are_asked_about_too() {
    let guardian = ThirdParty::start(json!([]));
    let network = Network::guarded(&guardian);
    let steps = json!([
        {"do": "send", "text": "hello you"},
        {"do": "get", "task": "$task"},
        {"do": "cancel", "task": "$task"},
        {"do": "subscribe", "task": "$task"},
        {"do": "list"},
    ]);
    network.through(&network.clerk, FORMS[0], &steps, &[]);
    for method in ["tasks/get", "tasks/cancel", "tasks/resubscribe", "tasks/list"] {
        let asked = guardian.asked_about(method);
        assert!(!asked.is_empty(), "{method}");
        assert!(asked[0]["body"]["params"]["payload"]["method"].is_string(), "{method}");
    }
    guardian.follow(&json!([{"do": "deny", "reason": "not now"}]));
    let before = network.peer.received().len();
    for came in network.through(&network.clerk, FORMS[0], &json!([{"do": "list"}]), &[]) {
        assert!(text(&came, "/text").contains("not now"), "{came}");
    }
    assert_eq!(network.peer.received().len(), before);
}
