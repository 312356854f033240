//! Ordinary data stays as it is, whatever the names of its fields.

use serde_json::{Value, json};
use toolgate_testkit::upstream::{Reply, Upstream};

use crate::tool_user::{ToolUser, bearer};
use crate::world::{World, on_both_engines};

on_both_engines! {
    data_under_suspicious_names_is_answered_untouched,
}

fn data_under_suspicious_names_is_answered_untouched(world: &World) {
    let values = [
        json!({
            "password": "correct horse", "token": "t", "api_key": null, "secret": ["a", {"client_secret": 5}],
            "authorization": "Bearer of good news", "access_token": true, "refresh_token": {"token_type": "bearer"},
            "signing_secret": "", "private_key": "-----BEGIN PUBLIC KEY-----", "Set-Cookie": "a=b",
        }),
        json!({"big": 9_007_199_254_740_993_u64, "small": -1, "half": 0.5, "hash": "9f3a".repeat(16)}),
        json!({"text": "tok_live, and what is of the tool user; %2F \\u002f \"quoted\" é 😀\n", "base64": "dG9r"}),
        json!(["[REDACTED]", "", {}, [], null, false, 0]),
        json!("a text"),
        json!(17),
    ];
    let upstream = Upstream::start({
        let values = values.clone();
        move |request| match request.json()["number"].as_u64().map(|number| usize::try_from(number).unwrap()) {
            Some(number) => Reply::json(200, values[number].clone()),
            None => Reply::text(200, "password=correct horse; token: t"),
        }
    });
    let user = ToolUser::of(world, bearer(&upstream));
    for (number, value) in values.iter().enumerate() {
        assert_eq!(user.calls("any", json!({"number": number})).ok()["result"], *value);
    }
    let text = user.calls("any", json!({"number": null})).ok();
    assert_eq!(text["result"]["raw"], "password=correct horse; token: t");
    assert_eq!(text["result"]["content_type"], "text/plain; charset=utf-8");
    assert_eq!(text.get("truncated"), None::<&Value>);
}
