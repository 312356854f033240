//! Streams of each API: byte-equal where nothing concerns them, held until a decision, ended by a denial, and modified in
//! every copy.

use super::*;
use crate::step::{StepStream, StreamEvent, StreamMode};

fn event(name: Option<&str>, data: Value) -> StreamEvent {
    StreamEvent { name: name.map(str::to_owned), data: data.to_string() }
}

fn chunk(delta: Value, finish: Option<&str>) -> StreamEvent {
    event(
        None,
        json!({"id": "c", "object": "chat.completion.chunk", "model": "m-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}),
    )
}

fn done() -> StreamEvent {
    StreamEvent { name: None, data: "[DONE]".to_owned() }
}

fn chat_usage() -> StreamEvent {
    event(
        None,
        json!({"id": "c", "model": "m-1", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}),
    )
}

fn chat() -> Vec<StreamEvent> {
    let call = |index: u64, function: Value, id: Option<&str>| {
        chunk(json!({"tool_calls": [{"index": index, "id": id, "function": function}]}), None)
    };
    vec![
        chunk(json!({"role": "assistant", "content": ""}), None),
        chunk(json!({"content": "Write to "}), None),
        chunk(json!({"content": "ann@example.org."}), None),
        chunk(json!({"content": " Then wait"}), None),
        call(0, json!({"name": "look", "arguments": ""}), Some("c1")),
        call(0, json!({"arguments": "{\"at\":"}), None),
        call(1, json!({"name": "run", "arguments": "{}"}), Some("c2")),
        call(0, json!({"arguments": "\"ann@example.org\"}"}), None),
        chunk(json!({}), Some("tool_calls")),
        chat_usage(),
        done(),
    ]
}

fn messages() -> Vec<StreamEvent> {
    let typed = |data: Value| {
        let name = data["type"].as_str().unwrap().to_owned();
        event(Some(&name), data)
    };
    let start = |index: u64, block: Value| {
        typed(json!({"type": "content_block_start", "index": index, "content_block": block}))
    };
    let delta =
        |index: u64, delta: Value| typed(json!({"type": "content_block_delta", "index": index, "delta": delta}));
    let stop = |index: u64| typed(json!({"type": "content_block_stop", "index": index}));
    vec![
        typed(json!({"type": "message_start", "message": {"id": "m", "model": "m-1", "content": [],
            "usage": {"input_tokens": 9, "output_tokens": 1}}})),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Hm."})),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        stop(0),
        typed(json!({"type": "ping"})),
        start(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "Write to "})),
        delta(1, json!({"type": "text_delta", "text": "ann@example.org."})),
        delta(1, json!({"type": "text_delta", "text": " Then wait"})),
        stop(1),
        start(2, json!({"type": "tool_use", "id": "c1", "name": "look", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"at\":"})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "\"ann@example.org\"}"})),
        stop(2),
        start(3, json!({"type": "tool_use", "id": "c2", "name": "run", "input": {}})),
        stop(3),
        typed(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}})),
        typed(json!({"type": "message_stop"})),
    ]
}

fn responses() -> Vec<StreamEvent> {
    let mut sequence = 0;
    let mut typed = |mut data: Value| {
        data["sequence_number"] = json!(sequence);
        sequence += 1;
        let name = data["type"].as_str().unwrap().to_owned();
        event(Some(&name), data)
    };
    let text = "Write to ann@example.org. Then wait";
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    let message = |content: Value| json!({"type": "message", "id": "i0", "role": "assistant", "content": content});
    let arguments = "{\"at\":\"ann@example.org\"}";
    let call = |arguments: &str| json!({"type": "function_call", "id": "i1", "call_id": "c1", "name": "look", "arguments": arguments});
    let run =
        |input: &str| json!({"type": "custom_tool_call", "id": "i2", "call_id": "c2", "name": "run", "input": input});
    let response = |output: Value, usage: Value| json!({"id": "r", "model": "m-1", "output": output, "usage": usage});
    let delta = |text: &str| json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text});
    vec![
        typed(json!({"type": "response.created", "response": response(json!([]), Value::Null)})),
        typed(json!({"type": "response.output_item.added", "output_index": 0, "item": message(json!([]))})),
        typed(json!({"type": "response.content_part.added", "output_index": 0, "content_index": 0, "part": part("")})),
        typed(delta("Write to ")),
        typed(delta("ann@example.org.")),
        typed(delta(" Then wait")),
        typed(json!({"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": text})),
        typed(json!({"type": "response.content_part.done", "output_index": 0, "content_index": 0, "part": part(text)})),
        typed(json!({"type": "response.output_item.done", "output_index": 0, "item": message(json!([part(text)]))})),
        typed(json!({"type": "response.output_item.added", "output_index": 1, "item": call("")})),
        typed(json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{\"at\":"})),
        typed(
            json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "\"ann@example.org\"}"}),
        ),
        typed(json!({"type": "response.function_call_arguments.done", "output_index": 1, "arguments": arguments})),
        typed(json!({"type": "response.output_item.done", "output_index": 1, "item": call(arguments)})),
        typed(json!({"type": "response.output_item.added", "output_index": 2, "item": run("")})),
        typed(json!({"type": "response.custom_tool_call_input.delta", "output_index": 2, "delta": "ls"})),
        typed(json!({"type": "response.custom_tool_call_input.done", "output_index": 2, "input": "ls"})),
        typed(json!({"type": "response.output_item.done", "output_index": 2, "item": run("ls")})),
        typed(json!({"type": "response.completed", "response": response(
            json!([message(json!([part(text)])), call(arguments), run("ls")]),
            json!({"input_tokens": 9, "output_tokens": 4}))})),
    ]
}

fn stream(api: &str, mode: StreamMode) -> StepStream {
    let request = json!({"model": "m", "stream": true, "stream_options": {"include_usage": true}});
    step(api, json!({})).stream(&request, mode).unwrap()
}

/// What came of a stream: what was asked, and what was passed on until something was denied.
struct Outcome {
    asked: Vec<String>,
    passed: Vec<StreamEvent>,
}

/// Plays a stream to guardians who deny what contains this word and replace addresses in what may be modified.
fn play(stream: &mut StepStream, events: &[StreamEvent], denied: &str, masks: bool) -> Outcome {
    let mut outcome = Outcome { asked: Vec::new(), passed: Vec::new() };
    let mut release = |units: Vec<crate::step::Unit>, stream: &mut StepStream| {
        for mut unit in units {
            if let Some(question) = unit.question.clone() {
                let said = brief(&question);
                let is_denied = !denied.is_empty() && said.contains(denied);
                outcome.asked.push(said);
                if is_denied {
                    return false;
                }
                let shown = question.content.to_json().to_string();
                if masks && shown.contains("ann@example.org") {
                    let masked = serde_json::from_str(&shown.replace("ann@example.org", "[MASKED]")).unwrap();
                    stream.replace(&mut unit, question.content.with_json(masked).unwrap()).unwrap();
                }
            }
            outcome.passed.extend(stream.released(unit));
        }
        true
    };
    for event in events {
        let units = stream.take(event.clone()).unwrap();
        if !release(units, stream) {
            return outcome;
        }
    }
    let units = stream.end().unwrap();
    release(units, stream);
    outcome
}

fn all() -> [(&'static str, Vec<StreamEvent>); 3] {
    [("chat", chat()), ("messages", messages()), ("responses", responses())]
}

#[test]
fn a_stream_that_is_allowed_is_passed_on_byte_by_byte_in_every_mode() {
    for (api, events) in all() {
        for mode in [StreamMode::Off, StreamMode::Units, StreamMode::Whole] {
            let mut stream = stream(api, mode);
            let outcome = play(&mut stream, &events, "", false);
            assert_eq!(outcome.passed, events, "{api} {mode:?}");
            let usage = &stream.result()["usage"];
            let counts = ["prompt_tokens", "input_tokens"].iter().find_map(|name| usage[name].as_u64());
            assert_eq!((counts, stream.result()["model"].as_str()), (Some(9), Some("m-1")), "{api} {mode:?}");
            assert_eq!(outcome.asked.is_empty(), mode == StreamMode::Off);
        }
    }
}

#[test]
fn sentences_and_whole_calls_are_asked_about_in_order() {
    for (api, events) in all() {
        let mut asked = play(&mut stream(api, StreamMode::Units), &events, "", false).asked;
        asked.retain(|said| said != "agent_response: Hm.");
        let run = if api == "responses" { "{\"input\":\"ls\"}" } else { "{}" };
        assert_eq!(
            asked,
            [
                "agent_response: Write to ann@example.org.".to_owned(),
                "agent_response: Write to ann@example.org.| Then wait".to_owned(),
                "tool_call_request: look#c1 {\"at\":\"ann@example.org\"}".to_owned(),
                format!("tool_call_request: run#c2 {run}"),
            ],
            "{api}"
        );
    }
}

#[test]
fn nothing_of_a_denied_sentence_or_call_is_passed_on() {
    for (api, events) in all() {
        for mode in [StreamMode::Units, StreamMode::Whole] {
            let text = |events: &[StreamEvent]| events.iter().map(|event| event.data.clone()).collect::<String>();
            let sentence = text(&play(&mut stream(api, mode), &events, "Then wait", false).passed);
            assert!(!sentence.contains("Then"), "{api} {mode:?}: {sentence}");
            assert_eq!(sentence.contains("ann@"), mode == StreamMode::Units, "{api} {mode:?}: {sentence}");
            let call = text(&play(&mut stream(api, mode), &events, "look#c1", false).passed);
            assert!(!call.contains("look") && !call.contains("at\\\""), "{api} {mode:?}: {call}");
        }
    }
}

#[test]
fn what_is_modified_is_modified_in_every_copy() {
    for (api, events) in all() {
        for mode in [StreamMode::Units, StreamMode::Whole] {
            let passed = play(&mut stream(api, mode), &events, "", true).passed;
            assert_eq!(passed.len(), events.len());
            let text: String = passed.iter().map(|event| event.data.clone()).collect();
            assert!(!text.contains("ann@") && !text.contains("example.org"), "{api} {mode:?}: {text}");
            let copies = text.matches("[MASKED]").count();
            // Text and arguments once each, and in responses four and three times more.
            assert_eq!(copies, if api == "responses" { 9 } else { 2 }, "{api} {mode:?}: {text}");
            assert!(text.contains("Then wait"), "{api} {mode:?}");
            for event in passed.iter().filter(|event| event.data != "[DONE]") {
                let _: Value = serde_json::from_str(&event.data).unwrap();
            }
        }
    }
}

#[test]
fn the_usage_that_only_the_gate_has_asked_for_is_hidden() {
    let request = json!({"model": "m", "stream": true});
    for mode in [StreamMode::Off, StreamMode::Units] {
        let mut stream = step("chat", json!({})).stream(&request, mode).unwrap();
        let passed = play(&mut stream, &chat(), "", false).passed;
        assert_eq!(passed.len(), chat().len() - 1);
        assert!(!passed.contains(&chat_usage()));
        assert_eq!(stream.result()["usage"]["completion_tokens"], 4);
    }
}

#[test]
fn a_stream_that_breaks_off_is_an_error_at_whatever_event() {
    for (api, events) in all() {
        let complete = if api == "chat" { 3 } else { 1 };
        for length in 0..events.len() - complete {
            for mode in [StreamMode::Off, StreamMode::Units, StreamMode::Whole] {
                let mut stream = stream(api, mode);
                for event in &events[..length] {
                    stream.take(event.clone()).unwrap();
                }
                assert!(stream.end().is_err(), "{api} {mode:?} {length}");
            }
        }
    }
}

#[test]
fn what_cannot_be_read_ends_a_stream_that_somebody_wants_to_see() {
    let broken_call = [
        chunk(json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "look", "arguments": "{"}}]}), None),
        chunk(json!({}), Some("tool_calls")),
    ];
    let mut units = stream("chat", StreamMode::Units);
    units.take(broken_call[0].clone()).unwrap();
    assert!(units.take(broken_call[1].clone()).is_err());
    let garbage = StreamEvent { name: None, data: "{\"a\":1,\"a\":2}".to_owned() };
    assert!(stream("chat", StreamMode::Units).take(garbage.clone()).is_err());
    assert_eq!(stream("chat", StreamMode::Off).take(garbage).unwrap().len(), 1);
}

#[test]
fn a_whole_that_differs_from_what_was_streamed_does_not_pass() {
    let mut events = responses();
    let last = events.len() - 1;
    events[last].data = events[last].data.replace("Then wait", "Then run");
    let mut stream = stream("responses", StreamMode::Units);
    let mut taken = events.iter().map(|event| stream.take(event.clone()));
    assert!(taken.any(|taken| taken.is_err()));
}

#[test]
fn content_that_is_only_in_the_end_is_judged_there() {
    let mut events = responses();
    events.drain(1..events.len() - 1);
    let asked = play(&mut stream("responses", StreamMode::Units), &events, "", false).asked;
    assert_eq!(asked.len(), 3, "{asked:?}");
    let unknown = chunk(json!({"hologram": {"data": "x"}}), None);
    let asked = play(&mut stream("chat", StreamMode::Units), &[unknown, done()], "", false).asked;
    assert_eq!(asked, ["agent_response: <{\"data\":\"x\"}>"]);
}

#[test]
fn structured_output_and_several_answers_are_held_as_a_whole() {
    for more in [json!({"response_format": {"type": "json_schema"}}), json!({"n": 2})] {
        let mut request = json!({"model": "m", "stream": true});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut stream = step("chat", json!({})).stream(&request, StreamMode::Units).unwrap();
        for event in chat() {
            assert!(stream.take(event).unwrap().is_empty());
        }
        assert!(!stream.end().unwrap().is_empty());
    }
    assert_eq!(AGENT.as_str(), "agent_response");
}
