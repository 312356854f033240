//! What is replaced, what stays, and that nothing of a secret is left; one rule a test.

mod cost;
mod oracle;
mod properties;

use crate::secret::{Material, Secret};
use serde_json::{Value, json};

use super::Redactor;
use oracle::{forms, surviving};

/// Needs escaping in every encoding there is, and has both special characters in its base64.
const SECRET: &str = "sk>live/\"Ké\\y 42?+&~~~\u{1f511}z";
const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2\n\
    OF/2NxApJCzGCEDdfSp6VQO30hyhRANCAAQRWz+jn65BtOMvdyHKcvjBeBSDZH2r\n\
    1RTwjmYSi9R/zpBnuQ4EiMnCqfMPWiZqB4QdbAd0E7oH50VpuZ1P087G\n\
    -----END PRIVATE KEY-----\n";

fn redactor(secrets: &[&str]) -> Redactor {
    let mut redactor = Redactor::new(&Material::new());
    secrets.iter().for_each(|secret| redactor.add(&Secret::new((*secret).to_owned())));
    redactor
}

fn redacted(secrets: &[&str], text: &str) -> String {
    let mut text = text.to_owned();
    redactor(secrets).redact_text(&mut text);
    text
}

fn redacted_json(secrets: &[&str], mut value: Value) -> Value {
    redactor(secrets).redact_json(&mut value);
    value
}

#[test]
fn every_form_is_replaced_in_bodies_headers_and_errors() {
    let redactor = redactor(&[SECRET]);
    let places = [
        ("{\"echo\":\"", "\"}"),
        ("Authorization: Bearer ", ""),
        ("https://api.example.com/v1?key=", "&page=2"),
        ("upstream said: invalid key '", "'."),
        ("", ""),
    ];
    for (name, form) in forms(SECRET) {
        for (before, after) in places {
            let mut body = [before.as_bytes(), &form, after.as_bytes()].concat();
            assert!(redactor.redact_bytes(&mut body), "{name} is found");
            let body = String::from_utf8(body).unwrap();
            let rest = body.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)).expect(name);
            assert_eq!(rest.replace("%3D", "=").trim_end_matches('='), "[REDACTED]", "{name}");
        }
    }
}

#[test]
fn hidden_characters_between_those_of_a_secret_hide_nothing() {
    let secret = "sk-live-4242424242abc";
    for hidden in ["\u{200b}", "\u{ad}", "\u{202e}", "\u{feff}", "\u{e0061}", "\u{1b}", "\u{200b}\u{2060}"] {
        let parts: Vec<String> = secret.chars().map(String::from).collect();
        let split = parts.join(hidden);
        assert_eq!(redacted(&[secret], &format!("key {split}, é")), "key [REDACTED], é", "{hidden:?}");
        let value = redacted_json(&[secret], json!({split.clone(): [split.clone()], "a": {"b": split}}));
        assert_eq!(value, json!({"[REDACTED]": ["[REDACTED]"], "a": {"b": "[REDACTED]"}}), "{hidden:?}");
        let mut body = format!("<p>{split}</p>").into_bytes();
        assert!(redactor(&[secret]).redact_bytes(&mut body));
        assert_eq!(body, b"<p>[REDACTED]</p>");
        assert!(redactor(&[secret]).hides(&split));
    }
    let encoded = "c2stbGl2ZS00\u{200b}MjQyNDI0MjQyYWJj";
    assert_eq!(redacted(&[secret], encoded), "[REDACTED]");
    // Where there is no secret, what is hidden stays for the rule of the mount.
    assert_eq!(redacted(&[secret], "a\u{200b}b"), "a\u{200b}b");
    assert_eq!(redacted(&[secret], &format!("{secret}\u{200b}b")), "[REDACTED]\u{200b}b");
    // An argument is shown with what is hidden in it.
    let argument = json!(secret.replace('4', "4\u{200b}"));
    assert_eq!(*redactor(&[secret]).arguments(&argument), argument);
}

#[test]
fn a_text_without_the_secret_stays_as_it_is() {
    let text = r#"{"author":"monkey","token_count":7,"keywords":["api_key","password"],
        "Authority":"A%20b\n\u0041 &amp; c+d=="}"#;
    let redactor = redactor(&[SECRET, "hunter2!", KEY]);
    let mut body = text.as_bytes().to_vec();
    assert!(!redactor.redact_bytes(&mut body));
    assert_eq!(body, text.as_bytes());
    let mut value: Value = serde_json::from_str(text).unwrap();
    assert!(!redactor.redact_json(&mut value));
    assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
}

#[test]
fn all_secret_fields_of_the_material_are_hidden_and_the_public_ones_are_not() {
    let mut material = Material::new();
    for (name, text) in [
        ("username", "ann@example.com"),
        ("client_id", "client-7"),
        ("token_type", "Bearer"),
        ("access_expires_at", "2030-01-01T00:00:00.000+00:00"),
        ("password", "correct horse"),
        ("refresh_token", "rt-9f8e7d"),
        ("anything_else", "unheard-of"),
    ] {
        assert!(material.insert(name.to_owned(), Secret::new(text.to_owned())));
    }
    let mut text = "ann@example.com client-7 Bearer 2030-01-01T00:00:00.000+00:00; \
                    correct+horse rt-9f8e7d unheard-of YW5uQGV4YW1wbGUuY29tOmNvcnJlY3QgaG9yc2U="
        .to_owned();
    assert!(Redactor::new(&material).redact_text(&mut text));
    assert_eq!(
        text,
        "ann@example.com client-7 Bearer 2030-01-01T00:00:00.000+00:00; \
         [REDACTED] [REDACTED] [REDACTED] YW5uQGV4YW1wbGUuY29tO[REDACTED]"
    );
}

#[test]
fn a_secret_added_during_the_call_is_hidden_as_well() {
    let mut redactor = redactor(&["old-token"]);
    assert!(!redactor.hides("new-token"));
    redactor.add(&Secret::new("new-token".to_owned()));
    assert!(redactor.hides("new-token") && redactor.hides("old-token"));
}

#[test]
fn characters_may_be_escaped_in_any_mixture_and_repeatedly() {
    for text in [
        "s%65cr\\u0065t-\\x31",
        "\\u0073ecret-1",
        "%2573ecret-1",
        "%252573ecret-1",
        "\\\\\\\\u0073ecret&#45;1",
        "&amp;#x73;ecret-1",
        "%5Cu0073ecret-1",
        "%u0073ecret-1",
        "\\u{73}ecret\\-1",
        "\\U00000073ecret-1",
    ] {
        assert_eq!(redacted(&["secret-1"], &format!("<{text}>")), "<[REDACTED]>", "{text}");
    }
}

#[test]
fn an_escape_is_seen_through_whatever_part_of_it_is_escaped() {
    for text in [
        // The digits of an escape are escaped too, once and again.
        "%25%37%33ecret_1",
        "%25%32%35%25%33%37%25%33%33ecret_1",
        "&#x26;#x37;&#x33;ecret_1".replace("&#x26;#x37;&#x33;", "&#38;#x7&#51;").as_str(),
        "%5Cu00%37%33ecret_1",
        "%5C%75%30%30%37%33ecret_1",
        "\\u005cu0073ecret_1",
        // Names, also in capitals, and the names of what introduces an escape.
        "secret&lowbar;1",
        "secret&UnderBar;1",
        "&AMP;#115;ecret_1",
        "&amp;amp;#115;ecret_1",
        "&percnt;73ecret_1",
        "&bsol;x73ecret_1",
        "&num;secret_1".trim_start_matches("&num;"),
        // Without a semicolon, and with more digits than a character has.
        "secret&#95_1".replace("_1", "1").as_str(),
        "secre&#116_1",
        "secret&#x5f;1",
        "secret&#00000000095;1",
        "secret&#x00000000005F;1",
        "secret\\u{00000000005f}1",
        "\\163ecret_1",
    ] {
        assert_eq!(redacted(&["secret_1"], &format!("<{text}>")), "<[REDACTED]>", "{text}");
    }
}

#[test]
fn a_secret_in_utf_16_is_found_in_either_order_and_encoded() {
    use base64::Engine;
    for secret in ["secret-1", "sécret-1 €🔑"] {
        for bytes_of in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes: Vec<u8> = format!("<{secret}>").encode_utf16().flat_map(bytes_of).collect();
            let mut body = bytes.clone();
            assert!(redactor(&[secret]).redact_bytes(&mut body), "{secret}");
            body.retain(|byte| *byte != 0);
            assert_eq!(body, b"<[REDACTED]>", "{secret}");
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(redactor(&[secret]).hides(&hex), "{secret}");
            assert!(redactor(&[secret]).hides(&base64::engine::general_purpose::STANDARD.encode(&bytes)), "{secret}");
        }
    }
}

#[test]
fn the_cost_is_linear_whatever_the_text_is_made_of() {
    // Each of these took time in the square of its length, or more, when escapes were followed from every place anew.
    let redactor = redactor(&["se\\cret%&-1", "aaaaaaaa"]);
    for piece in ["\\", "%25", "&amp;", "&#48", "%5C", "&", "%", "\\u005c", "a", "a\0", "&#0", "%25%32%35"] {
        let mut body = piece.repeat(60_000 / piece.len()).into_bytes();
        redactor.redact_cut_off(&mut body);
        assert!(body.len() <= 60_000, "{piece}");
    }
}

#[test]
fn names_that_all_become_the_same_are_numbered_without_counting_from_the_start() {
    let spelled = |number: usize| -> String {
        (0..8).map(|place| ["a", "%61", "&#97;", "\\x61"][number >> (2 * place) & 3]).collect()
    };
    let names: serde_json::Map<String, Value> = (0..4_000).map(|number| (spelled(number), json!(number))).collect();
    let mut value = Value::Object(names);
    assert!(redactor(&["aaaaaaaa"]).redact_json(&mut value));
    let names = value.as_object().unwrap();
    assert_eq!((names.len(), names.contains_key("[REDACTED] 4000")), (4_000, true));
}

#[test]
fn of_several_ways_to_read_an_escape_the_longest_is_replaced() {
    assert_eq!(redacted(&["secret\\"], "<secret\\\\\\\\>"), "<[REDACTED]>");
    assert_eq!(redacted(&["secret%"], "<secret%2525>"), "<[REDACTED]>");
}

#[test]
fn json_inside_json_inside_json_is_seen_through() {
    let mut body = json!({"message": SECRET}).to_string();
    for _ in 0..2 {
        body = json!({"message": body}).to_string();
    }
    let body = redacted(&[SECRET], &body);
    assert_eq!(surviving(body.as_bytes(), SECRET), Vec::<&str>::new());
    assert!(body.contains("[REDACTED]"));
    assert!(serde_json::from_str::<Value>(&body).is_ok());
}

#[test]
fn base64_leaves_no_bits_at_its_borders() {
    use base64::Engine;
    for (before, after) in [("", ""), ("a", ""), ("ab", "c"), ("user:", "xyz"), ("", "zz")] {
        let text = base64::engine::general_purpose::STANDARD.encode(format!("{before}hunter2!{after}"));
        let text = redacted(&["hunter2!"], &text);
        let (left, right) = text.split_once("[REDACTED]").unwrap();
        assert!(left.len() * 6 <= before.len() * 8, "{text}");
        assert!(right.trim_end_matches('=').len() * 6 <= after.len() * 8 + 4, "{text}");
    }
}

#[test]
fn encodings_wrapped_into_lines_or_separated_are_found() {
    let redactor = redactor(&["correct-horse-battery-staple"]);
    for text in [
        "Y29ycmVjdC1ob3Jz\r\nZS1iYXR0ZXJ5LXN0YXBsZQ",
        "Y29ycmVjdC1ob3Jz%0D%0AZS1iYXR0ZXJ5LXN0YXBsZQ",
        "Y29ycmVjdC1ob3Jz\\nZS1iYXR0ZXJ5LXN0YXBsZQ",
        "63:6F:72:72:65:63:74:2D:68:6f:72:73:65:2d:62:61:74:74:65:72:79:2d:73:74:61:70:6c:65",
        "636f7272 6563742d 686f7273 652d6261 74746572 792d7374 61706c65",
    ] {
        assert!(redactor.hides(text), "{text}");
    }
}

#[test]
fn base64_whose_plus_signs_a_form_decoder_took_for_spaces_is_found() {
    assert_eq!(redacted(&["~~>~~>~~>"], "<fn4 fn4 fn4 >"), "<[REDACTED]>");
}

#[test]
fn a_key_is_found_whatever_stands_between_its_lines() {
    for separator in ["\n", "\r\n", " ", "", "\\n", "\\r\\n", "%0A", "+", "\n    ", "&#10;"] {
        let text = KEY.trim_end().replace('\n', separator);
        assert_eq!(redacted(&[KEY], &format!("<{text}>")), "<[REDACTED]>", "{separator:?}");
    }
}

#[test]
fn a_key_kept_in_one_line_is_found_as_the_lines_it_stands_for() {
    let kept = KEY.replace('\n', "\\n");
    assert_eq!(redacted(&[&kept], &format!("<{}>", KEY.trim_end())), "<[REDACTED]>");
    assert_eq!(redacted(&[&kept], &format!("<{}>", kept.trim_end_matches("\\n"))), "<[REDACTED]>");
}

#[test]
fn each_longer_line_of_a_key_is_hidden_on_its_own_and_its_first_line_is_not() {
    let line = KEY.lines().nth(2).unwrap();
    assert_eq!(redacted(&[KEY], &format!("line 3: {line};")), "line 3: [REDACTED];");
    assert_eq!(redacted(&[KEY], "-----BEGIN PRIVATE KEY-----"), "-----BEGIN PRIVATE KEY-----");
}

#[test]
fn white_space_around_a_secret_is_no_part_of_it() {
    assert_eq!(redacted(&[" \tsecret-1\n"], "secret-1"), "[REDACTED]");
    assert_eq!(redacted(&["\n", "", "   "], "a\n   b"), "a\n   b");
}

#[test]
fn a_very_short_secret_is_hidden_only_as_a_word_of_its_own() {
    assert_eq!(redacted(&["77"], "pin=77 id=1777 a77 77%"), "pin=[REDACTED] id=1777 a77 [REDACTED]%");
    assert_eq!(redacted(&["abc"], "abcd YWJj 616263 abc."), "abcd YWJj 616263 [REDACTED].");
}

#[test]
fn the_value_after_a_scheme_is_hidden_without_it() {
    assert_eq!(redacted(&["Bearer tok-1234"], "token tok-1234 is expired"), "token [REDACTED] is expired");
    assert_eq!(redacted(&["tall horse"], "a horse"), "a horse");
}

#[test]
fn the_password_in_a_connection_string_is_hidden_on_its_own() {
    let secret = "postgres://ann:p%40ss:word@db.example.com:5432/app?sslmode=require";
    assert_eq!(
        redacted(&[secret], "no login with p@ss:word on db.example.com"),
        "no login with [REDACTED] on db.example.com"
    );
    assert_eq!(redacted(&[secret], "p%40ss:word"), "[REDACTED]");
    assert_eq!(redacted(&[secret], secret), "[REDACTED]");
}

#[test]
fn overlapping_secrets_leave_nothing_between_them() {
    assert_eq!(redacted(&["abcdef", "defghi", "cdef"], "-abcdefghi-cdef-"), "-[REDACTED]-[REDACTED]-");
    assert_eq!(redacted(&["abab"], "xababab"), "x[REDACTED]");
    assert_eq!(redacted(&["token-1"], "token-1token-1"), "[REDACTED]");
}

#[test]
fn the_replacement_never_makes_a_new_occurrence() {
    assert_eq!(redacted(&["REDACTED"], "<REDACTED>"), "<[***]>");
    assert_eq!(redacted(&["REDACTED", "[***]"], "<REDACTED>"), "<>");
    let text = redacted(&["D]tail"], "D]tailtail");
    assert!(!text.contains("D]tail") && !text.contains("tail"), "{text}");
    let text = redacted(&["TED]", "[***]", "abcd"], "ababcdcd");
    assert!(!text.contains("abcd"), "{text}");
}

#[test]
fn a_secret_cut_by_the_border_of_two_chunks_is_found_in_the_whole_body() {
    for cut in 1..SECRET.len() {
        let (first, second) = SECRET.as_bytes().split_at(cut);
        let mut body = [b"{\"a\":\"", first].concat();
        body.extend([second, b"\"}"].concat());
        assert!(redactor(&[SECRET]).redact_bytes(&mut body));
        assert_eq!(body, b"{\"a\":\"[REDACTED]\"}");
    }
}

#[test]
fn bytes_that_are_no_text_are_kept_around_the_secret() {
    let mut body = b"\xff\xfe\x00secret-1\xc3\x28%".to_vec();
    assert!(redactor(&["secret-1"]).redact_bytes(&mut body));
    assert_eq!(body, b"\xff\xfe\x00[REDACTED]\xc3\x28%");
}

#[test]
fn names_and_values_of_json_are_redacted_and_none_is_lost() {
    let value = json!({"a": ["x secret-1"], "secret-1": 1, "see secret-1": {"secret-1": null}, "c2VjcmV0LTE=.": 2});
    let expected =
        json!({"a": ["x [REDACTED]"], "[REDACTED]": 1, "see [REDACTED]": {"[REDACTED]": null}, "[REDACTED].": 2});
    assert_eq!(redacted_json(&["secret-1"], value), expected);
}

#[test]
fn names_that_become_the_same_keep_their_values() {
    let value = json!({"secret-1": 1, "secret%2D1": 2, "[REDACTED]": 3});
    let members = redacted_json(&["secret-1"], value);
    let members = members.as_object().unwrap();
    let mut names: Vec<_> = members.keys().collect();
    names.sort_unstable();
    assert_eq!(names, ["[REDACTED]", "[REDACTED] 2", "[REDACTED] 3"]);
    let mut values: Vec<_> = members.values().filter_map(Value::as_u64).collect();
    values.sort_unstable();
    assert_eq!(values, [1, 2, 3]);
}

#[test]
fn a_number_that_spells_a_secret_is_replaced_however_it_is_written() {
    for body in ["[123456]", "[123456.0]", "[1.23456e5]", "[9123456]", "[\"0123456\"]"] {
        let value = redacted_json(&["123456"], serde_json::from_str(body).unwrap());
        assert!(!value.to_string().contains("123456"), "{body}");
        assert!(value.to_string().contains("[REDACTED]"), "{body}");
    }
    assert_eq!(redacted_json(&["00123456"], json!([123_456])), json!(["[REDACTED]"]));
    assert_eq!(redacted_json(&["12345678901234567890123"], json!(1.234_567_890_123_456_8e22)), json!("[REDACTED]"));
    assert_eq!(
        redacted_json(&["123456"], json!([12345, 23456, 1.5, true, null])),
        json!([12345, 23456, 1.5, true, null])
    );
    assert_eq!(redacted_json(&["infinity", "nan"], json!([1, 0.5])), json!([1, 0.5]));
}

#[test]
fn text_that_is_cut_off_keeps_all_but_what_may_begin_a_secret() {
    let redactor = redactor(&["tok_live_42"]);
    for (text, kept) in [
        ("an answer", "an answer"),
        ("it is tok_live_42 and more", "it is [REDACTED] and more"),
        ("it is tok_live_4", "it is "),
        ("it is t", "it is "),
        ("it is tok_live_4 no more", "it is tok_live_4 no more"),
        ("it is %74%6f%6", "it is "),
        ("it is dG9rX2xpdmV", "it is "),
        ("it is 746f6b5f6c", "it is "),
        ("", ""),
    ] {
        let mut bytes = text.as_bytes().to_vec();
        redactor.redact_cut_off(&mut bytes);
        assert_eq!(String::from_utf8(bytes).unwrap(), kept, "{text}");
    }
}

#[test]
fn a_text_with_more_readings_than_can_be_followed_is_replaced_as_a_whole() {
    for piece in ["\\", r"\u005c", "%25", r"\x5c\x5c", "&amp;&#92;"] {
        let mut text = piece.repeat(200_000 / piece.len());
        let made_to_be_read = super::Readings::of(text.as_bytes());
        assert!(made_to_be_read.len() <= text.len() * 5 + 8192, "{piece}: {}", made_to_be_read.len());
        let is_ambiguous = made_to_be_read.is_ambiguous();
        let redactor = redactor(&["sk_live_4242424242"]);
        assert_eq!(redactor.redact_text(&mut text), is_ambiguous, "{piece}");
        assert_eq!(text == "[REDACTED]", is_ambiguous, "{piece}");
    }
    assert_eq!(redacted(&["sk_live_4242424242"], &"\\".repeat(200_000)), "[REDACTED]");
}

#[test]
fn a_long_text_that_is_escaped_throughout_stays() {
    let json = json!({"path": "C:\\temp\\new", "quoted": "\"a\" & \"b\" < 100 %"}).to_string();
    let twice = Value::from(Value::from(json.clone()).to_string()).to_string();
    let percent: String = "a text with spaces, über 100 %".bytes().map(|byte| format!("%{byte:02X}")).collect();
    let entities: String = "a text with spaces".chars().map(|c| format!("&#{};", u32::from(c))).collect();
    let units: String = "a text with spaces".encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    for text in [json, twice, percent, entities, units] {
        let long = text.repeat(2000);
        assert!(redacted(&["sk_live_4242424242"], &long) == long, "{text}");
    }
}
