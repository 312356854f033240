//! For every text that an agent can send, the request stays where its template says.

use proptest::prelude::*;

use super::*;

const BASE: &str = "http://127.0.0.1:8080/api/v2";

/// Ordinary texts, and such as are made of the characters that addresses, proxies and file systems trip over.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("."),
        Just(".."),
        Just("/"),
        Just("\\"),
        Just("%"),
        Just("%2e"),
        Just("%2F"),
        Just("%25"),
        Just("2e"),
        Just(";"),
        Just("?"),
        Just("#"),
        Just("@"),
        Just(":"),
        Just("\0"),
        Just("\r\n"),
        Just("\t"),
        Just(" "),
        Just("//evil.com"),
        Just("&"),
        Just("="),
        Just("+"),
        Just("["),
        Just("]"),
        Just("\u{ff0f}"),
        Just("\u{2024}"),
        Just("a"),
        Just("http://"),
    ];
    prop_oneof![any::<String>(), prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())]
}

/// What somebody sees who decodes once too often.
fn decoded_again(segment: &str) -> String {
    let mut text = segment.to_owned();
    for _ in 0..16 {
        // Read as a form a plus would become a blank; that is not what is asked here.
        let form = text.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
        text =
            url::form_urlencoded::parse(form.as_bytes()).map(|(name, _)| name.into_owned()).next().unwrap_or_default();
    }
    text
}

proptest! {
    #[test]
    fn a_rendered_address_keeps_its_origin_and_its_segments(
        first in hostile(), second in hostile(), name in hostile(), value in hostile(),
    ) {
        let http = json!({"method": "GET", "path": "/items/{first}/parts/{second}.json"});
        let mut parameters = map(json!({"first": first, "second": second}));
        parameters.insert(name, Value::from(value));
        let base = BaseUrl::parse(BASE).unwrap();
        let Ok(request) = mapping(&http).render(&base, &parameters) else { return Ok(()) };
        let url = Url::parse(request.url.as_str()).unwrap();
        prop_assert_eq!(url.scheme(), "http");
        prop_assert_eq!(url.host_str(), Some("127.0.0.1"));
        prop_assert_eq!(url.port(), Some(8080));
        prop_assert_eq!((url.username(), url.password(), url.fragment()), ("", None, None));
        let segments: Vec<&str> = url.path_segments().unwrap().collect();
        prop_assert_eq!(segments.len(), 6, "{}", url);
        prop_assert_eq!((segments[0], segments[1], segments[2], segments[4]), ("api", "v2", "items", "parts"));
        for segment in segments {
            let plain = decoded_again(segment);
            prop_assert!(!plain.contains(['/', '\\', '\0', '\r', '\n']), "{}", url);
            prop_assert!(!matches!(plain.trim(), "" | "." | ".."), "{}", url);
        }
    }

    #[test]
    fn what_is_rendered_is_what_was_sent(id in "[a-zA-Z0-9 ._~?#&=+@:;!ü-]{1,20}", query in any::<String>()) {
        let http = json!({"method": "GET", "path": "/items/{id}"});
        let Ok(request) = render(&http, json!({"id": id, "q": query})) else { return Ok(()) };
        let last = request.url.path_segments().unwrap().next_back().unwrap();
        prop_assert_eq!(decoded_again(last), id);
        let pairs: Vec<_> = request.url.query_pairs().into_owned().collect();
        prop_assert_eq!(pairs, vec![("q".to_owned(), query)]);
    }

    #[test]
    fn no_header_has_a_second_line(value in hostile()) {
        let http = json!({"method": "GET", "path": "/", "parameters": {"p": {"in": "header", "name": "X-P"}}});
        let Ok(request) = render(&http, json!({"p": value})) else { return Ok(()) };
        prop_assert!(request.headers.iter().all(|(_, value)| value.bytes().all(|byte| (0x20..0x7f).contains(&byte))));
    }

    #[test]
    fn a_body_holds_exactly_the_parameters(names in prop::collection::btree_map(hostile(), hostile(), 0..5)) {
        let parameters = names.into_iter().map(|(name, value)| (name, Value::from(value)));
        let parameters: Map<String, Value> = parameters.collect();
        let request = mapping(&json!({"method": "POST", "path": "/"})).render(&base(), &parameters).unwrap();
        let sent: Value = serde_json::from_slice(&request.body.unwrap().bytes).unwrap();
        prop_assert_eq!(sent, Value::Object(parameters));
    }
}
