//! The examples of the specification, as they stand there.

use super::*;

const REQUEST: &str = include_str!("examples/request.json");
const DENY: &str = include_str!("examples/deny.json");
const MODIFY: &str = include_str!("examples/modify.json");

const ID: &str = "13fa8d6f-8f9f-4d01-ba6b-db99d84d77de";

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn changed() -> Content<'static> {
    arguments(json!({
        "subject": "Refund request for order 12345", "body": "[REDACTED-PII] reported the item never arrived.",
    }))
}

#[test]
fn the_request_is_read() {
    let Incoming::Single(Message::Hook(question)) = read(REQUEST.as_bytes(), now()).unwrap() else { panic!("a hook") };
    assert_eq!(question.id, Id::Text(ID.to_owned()));
    assert_eq!((question.dialect, question.agent_named), (Dialect::Joch, true));
    assert_eq!(
        question.event,
        HookEvent {
            hook: Hook::ToolCallRequest,
            agent: AgentRef { id: "support-triage".into(), name: Some("Support Triage".into()) },
            tool: Some("c264f381-10cf-4403-bd11-383014c0fcc6".into()),
            execution: Some("69dbf4c3-be33-4694-a9f0-8d3a824c5d5b".into()),
            session: Some("84c36ebb-83aa-4bc9-8670-7aba4cedc70f".into()),
            turn: Some("69ef57b8-3993-440d-9493-523914f3f149".into()),
            step: Some("9263448a-186a-4c3b-abcf-443feb44a01e".into()),
            user: None,
            method: None,
            reasoning: Some("Customer is eligible for refund. I will create a Zendesk ticket.".into()),
            time: now(),
            content: arguments(json!({
                "subject": "Refund request for order 12345", "body": "Customer reports the item never arrived.",
            })),
        }
    );
}

#[test]
fn our_answers_hold_all_of_the_examples() {
    let question = question(&parsed(REQUEST));
    let policy = PolicyRef { id: "external-send-requires-approval".to_owned(), version: "v3".to_owned() };
    let reason = "external_write requires approval; approval not granted";
    let deny = write(&question, &Response { policy: Some(&policy), ..plain(VerdictKind::Deny, reason) });
    let changed = changed();
    let modify = write(
        &question,
        &Response {
            content: Some(&changed),
            form: ModifiedForm::Fragment,
            ..plain(VerdictKind::Modify, "redacted PII in tool argument")
        },
    );
    for (mut ours, example) in [(deny, parsed(DENY)), (modify, parsed(MODIFY))] {
        // AOS demands `message`, Joch has `reason`: we write both.
        assert_eq!(ours["result"]["message"], example["result"]["reason"]);
        ours["result"] = without(&ours["result"], &["message", "reasoning"]);
        assert_eq!(ours, example);
    }
}

#[test]
fn the_answers_are_read() {
    let event = question(&parsed(REQUEST)).event;
    let deny = read_response(DENY.as_bytes(), ID, &event).unwrap();
    let policy = PolicyRef { id: "external-send-requires-approval".to_owned(), version: "v3".to_owned() };
    assert_eq!(deny.decision, GuardianDecision::Deny);
    assert_eq!(deny.reason.as_deref(), Some("external_write requires approval; approval not granted"));
    assert_eq!(deny.policy, Some(policy));
    let modify = read_response(MODIFY.as_bytes(), ID, &event).unwrap();
    assert_eq!(modify.decision, GuardianDecision::Modify(changed()));
    assert_eq!(modify.reason.as_deref(), Some("redacted PII in tool argument"));
}

#[test]
fn our_question_holds_all_of_the_example() {
    let example = parsed(REQUEST);
    let mut event = question(&example).event;
    event.time = Timestamp::parse("2026-05-10T10:34:55.123Z").unwrap();
    let mut asked = ask(&event, ID, Dialect::Joch).unwrap();
    let mut expected = example;
    let agent = &mut expected["params"]["context"]["agent"];
    *agent = without(agent, &["version", "provider"]);
    expected["params"]["context"]["timestamp"] = json!("2026-05-10T10:34:55.123+00:00");
    // Inputs are an object in the model: their order on the wire is of no meaning.
    let sorted = |value: &mut Value| {
        let inputs = value["params"]["toolCallRequest"]["inputs"].as_array_mut().unwrap();
        inputs.sort_by_key(|input| input["name"].as_str().unwrap().to_owned());
    };
    sorted(&mut asked);
    sorted(&mut expected);
    assert_eq!(asked, expected);
}
