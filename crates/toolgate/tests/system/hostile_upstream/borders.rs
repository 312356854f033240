//! Where an answer is cut off because it is too long, the beginning of a secret is no more shown than all of it. Else
//! whoever chooses how much stands before it could read it piece by piece.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use toolgate_testkit::upstream::{Reply, Upstream};

use super::talkative_world;
use crate::tool_user::{TOKEN, ToolUser, bearer};

const LIMIT: usize = 1024 * 1024;

#[test]
fn a_secret_at_the_end_of_a_truncated_answer_is_not_shown_in_part() {
    let world = talkative_world();
    let forms = [
        TOKEN.to_owned(),
        STANDARD.encode(TOKEN),
        STANDARD.encode(format!("<{TOKEN}")),
        STANDARD.encode(format!("<>{TOKEN}")),
        TOKEN.bytes().map(|byte| format!("{byte:02x}")).collect(),
        TOKEN.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        TOKEN.bytes().map(|byte| format!("\\u{byte:04x}")).collect(),
        TOKEN.bytes().map(|byte| format!("&#{byte};")).collect(),
    ];
    let lengths: Vec<usize> = forms.iter().map(String::len).collect();
    let upstream = Upstream::start(move |request| {
        let asked = request.json();
        let number = |name: &str| usize::try_from(asked[name].as_u64().unwrap()).unwrap();
        let body = format!("{}{} and more", ".".repeat(LIMIT - number("shown")), forms[number("form")]);
        let reply = Reply::text(200, &body);
        if asked["gzip"] == true { reply.gzip() } else { reply }
    });
    let user = ToolUser::of(&world, bearer(&upstream));
    for (form, length) in lengths.into_iter().enumerate() {
        for shown in [length / 3, length / 2, length - 2, length - 1, length] {
            let answer = user.calls("any", json!({"form": form, "shown": shown, "gzip": shown % 2 == 0})).ok();
            assert_eq!(answer["truncated"], true);
            let raw = answer["result"]["raw"].as_str().unwrap_or_else(|| panic!("text, and got {}", answer["result"]));
            let rest = raw.trim_start_matches('.').replace("[REDACTED]", "");
            // Where base64 begins in the middle, one character of what stands before remains.
            assert!(rest.len() <= 3 && raw.len() >= LIMIT - 2 * length, "form {form}, {shown} shown: {rest}");
        }
    }
}

#[test]
fn an_answer_that_is_cut_inside_of_a_character_stays_text() {
    let world = talkative_world();
    let upstream = Upstream::start(|_| Reply::text(200, &format!(".{}", "é".repeat(LIMIT))));
    let answer = ToolUser::of(&world, bearer(&upstream)).calls("any", json!({})).ok();
    assert_eq!(answer["truncated"], true);
    let raw = answer["result"]["raw"].as_str().unwrap();
    assert!(raw.len() > LIMIT - 8 && raw.ends_with('é'));
}
