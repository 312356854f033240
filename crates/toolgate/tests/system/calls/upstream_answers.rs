//! What services answer and what becomes of it: JSON of any kind, text, nothing, bytes, errors, redirects, too much.

use serde_json::{Value, json};
use toolgate_testkit::upstream::{Reply as Answer, Upstream};

use super::shop::{Shop, TOKEN};
use crate::world::{World, names, on_both_engines, text};

on_both_engines! {
    any_json_is_a_result,
    what_is_not_json_is_wrapped,
    no_content_is_a_result,
    an_error_of_the_service_is_told_with_its_status_and_words,
    a_redirect_is_not_followed,
    an_answer_that_is_too_long_is_cut_off_and_says_so,
    success_is_what_the_definition_says,
    an_answer_that_breaks_off_or_is_none_is_a_failure_of_the_way,
    the_secret_does_not_come_back,
}

/// A shop whose service answers with what the parameter `n` picks from these.
fn answering(world: &World, answers: Vec<Answer>) -> Shop {
    let shop = Shop::answering(world, move |request| {
        let number = request.json()["n"].as_u64().unwrap();
        answers[usize::try_from(number).unwrap()].clone()
    });
    shop.grant(json!({}));
    shop
}

fn any_json_is_a_result(world: &World) {
    let texts = ["{\"a\":[1,2.5,null]}", "[1,[],{}]", "\"text\"", "42", "true", "null", "{}", "18446744073709551615"];
    let shop = answering(world, texts.iter().map(|text| Answer::json_text(200, text)).collect());
    for (number, text) in texts.iter().enumerate() {
        let answer = shop.send(json!({"n": number})).ok();
        assert_eq!(answer["result"], serde_json::from_str::<Value>(text).unwrap());
        assert_eq!((&answer["status"], answer.get("truncated")), (&json!("success"), None));
    }
}

fn what_is_not_json_is_wrapped(world: &World) {
    let shop = answering(
        world,
        vec![
            Answer::text(200, "plain words"),
            Answer::text(200, "{\"looks\": \"like JSON\"}"),
            Answer::bytes(200, "<html>").header("Content-Type", "text/html"),
            Answer::bytes(200, "{\"cut\": ").header("Content-Type", "application/json"),
            Answer::bytes(200, vec![0xff, 0xfe, 0x00]).header("Content-Type", "image/png"),
        ],
    );
    let result = |number: u8| shop.send(json!({"n": number})).ok()["result"].clone();
    assert_eq!(result(0), json!({"raw": "plain words", "content_type": "text/plain; charset=utf-8"}));
    assert_eq!(result(1)["raw"], "{\"looks\": \"like JSON\"}");
    assert_eq!(result(2), json!({"raw": "<html>", "content_type": "text/html"}));
    assert_eq!(result(3)["raw"], "{\"cut\": ");
    assert_eq!(result(4), json!({"base64": "//4A", "content_type": "image/png"}));
}

fn no_content_is_a_result(world: &World) {
    let shop = answering(world, vec![Answer::bytes(204, ""), Answer::json_text(200, ""), Answer::bytes(201, "")]);
    for (number, status) in [(0, 204), (1, 200), (2, 201)] {
        let answer = shop.send(json!({"n": number})).ok();
        assert_eq!((&answer["status"], &answer["result"]), (&json!("success"), &Value::Null));
        assert_eq!(shop.record(text(&answer, "/invocation_id"))["http_status"], status);
    }
}

fn an_error_of_the_service_is_told_with_its_status_and_words(world: &World) {
    let shop = answering(
        world,
        vec![
            Answer::json(404, json!({"error": {"code": "not_found"}})),
            Answer::text(500, "oops"),
            Answer::bytes(503, ""),
            Answer::json(429, json!([])).header("Retry-After", "7"),
            Answer::json(401, json!({"error": "bad key"})),
        ],
    );
    for (number, status, result) in [
        (0, 404, json!({"error": {"code": "not_found"}})),
        (1, 500, json!({"raw": "oops", "content_type": "text/plain; charset=utf-8"})),
        (2, 503, Value::Null),
        (3, 429, json!([])),
        (4, 401, json!({"error": "bad key"})),
    ] {
        let body = shop.failed(&shop.send(json!({"n": number})), 502, "SERVICE_ERROR");
        assert_eq!(body["error"]["http_status"], status);
        assert_eq!(body["error"]["grant_id"], body["grant_id"]);
        assert_eq!(body["result"], result);
        assert_eq!(body["message"], format!("the service returned status {status}"));
        let fields = [
            "cost",
            "duration_ms",
            "error",
            "grant_id",
            "invocation_id",
            "message",
            "result",
            "status",
            "timestamp",
            "tool_name",
        ];
        assert_eq!(names(&body), fields);
        let invocation = text(&body, "/invocation_id");
        let record = shop.record(invocation);
        assert_eq!((&record["http_status"], &record["result"]), (&json!(status), &Value::Null));
        assert_eq!(record["error"]["message"], body["message"], "never what the service said");
        let event = &shop.events_of(invocation)[0];
        assert_eq!((&event["type"], &event["data"]["status"]), (&json!("tool.invoked"), &json!("error")));
        assert_eq!(event["data"]["error_code"], "SERVICE_ERROR");
        assert_eq!(event["data"]["http_status"], status);
    }
}

fn a_redirect_is_not_followed(world: &World) {
    let elsewhere = Upstream::start(|_| Answer::json(200, json!({"stolen": true})));
    let shop = answering(
        world,
        vec![Answer::redirect(&elsewhere.url()), Answer::redirect("/v1/other"), Answer::redirect("file:///etc/passwd")],
    );
    for number in 0..3 {
        let body = shop.failed(&shop.send(json!({"n": number})), 502, "SERVICE_ERROR");
        assert_eq!(body["error"]["http_status"], 302);
    }
    assert_eq!((elsewhere.count(), shop.upstream.count()), (0, 3));
}

fn an_answer_that_is_too_long_is_cut_off_and_says_so(world: &World) {
    const LIMIT: usize = 1024 * 1024;
    let shop = answering(
        world,
        vec![Answer::text(200, &"x".repeat(LIMIT)), Answer::text(200, &"x".repeat(LIMIT + 1)), Answer::endless()],
    );
    let whole = shop.send(json!({"n": 0})).ok();
    assert_eq!((text(&whole, "/result/raw").len(), whole.get("truncated")), (LIMIT, None));
    for number in [1, 2] {
        let cut = shop.send(json!({"n": number})).ok();
        assert_eq!((text(&cut, "/result/raw").len(), &cut["truncated"]), (LIMIT, &json!(true)));
    }
}

fn success_is_what_the_definition_says(world: &World) {
    let shop = answering(world, vec![Answer::json(404, json!({"found": false})), Answer::json(200, json!({}))]);
    let definition = json!({
        "service": "payments", "version": "2031",
        "tools": {"anything": {"http": {"method": "POST", "path": "/v1/anything", "success": [404, "300-399"]}}}
    });
    shop.admin.post("/api/v1/services", &definition).created();
    let answer = shop.send(json!({"n": 0})).ok();
    assert_eq!((&answer["status"], &answer["result"]), (&json!("success"), &json!({"found": false})));
    let body = shop.failed(&shop.send(json!({"n": 1})), 502, "SERVICE_ERROR");
    assert_eq!(body["error"]["http_status"], 200);
}

fn an_answer_that_breaks_off_or_is_none_is_a_failure_of_the_way(world: &World) {
    let shop = answering(
        world,
        vec![
            Answer::Close,
            Answer::raw("this is no HTTP\r\n\r\n"),
            Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"cut\":"),
            Answer::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"),
            Answer::bytes(200, "not packed").header("Content-Encoding", "gzip"),
        ],
    );
    for number in 0..5 {
        let body = shop.failed(&shop.send(json!({"n": number})), 502, "PROXY_ERROR");
        assert_eq!((&body["result"], body["error"].get("http_status")), (&Value::Null, None), "{body}");
    }
    assert_eq!(shop.upstream.count(), 5, "nothing is tried again by itself");
}

fn the_secret_does_not_come_back(world: &World) {
    let shop = Shop::answering(world, Answer::echo);
    shop.grant(json!({}));
    let reply = shop.send(json!({"n": 0}));
    reply.ok();
    assert!(!reply.answer.text().contains(TOKEN), "{}", reply.answer.text());
    assert_eq!(shop.upstream.received()[0].bearer(), Some(TOKEN));
}
