//! For every text that an agent can send, the request stays where its template says.

use proptest::prelude::*;

use super::*;
use crate::constraint::Constraints;
use crate::parameter_name::FoldedName;
use crate::service::ToolDefinition;

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

/// Names that are few enough to meet each other, and spellings that services take for them.
fn close_names() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "amt", "A", "a[]", "a[0]", "Amt", "amt[]", " b", "c"]).prop_map(str::to_owned)
}

/// Mappings that send parameters under other names.
fn renaming() -> impl Strategy<Value = HttpMapping> {
    let place = prop::sample::select(vec!["body", "query"]);
    let placements = prop::collection::btree_map(close_names(), (place, close_names()), 0..4);
    let method = prop::sample::select(vec!["POST", "DELETE"]);
    (placements, method, prop::sample::select(vec!["form", "json"])).prop_filter_map(
        "two parameters must not be mapped to one name",
        |(placements, method, body)| {
            let placement = |(name, (place, sent))| (name, json!({"in": place, "name": sent}));
            let parameters: Map<String, Value> = placements.into_iter().map(placement).collect();
            let http = json!({"method": method, "path": "/x", "body": body, "parameters": parameters});
            HttpMapping::from_json(&http, "http").ok()
        },
    )
}

/// What a request carries, as its service sees it: place, name and value.
fn carried(request: &RenderedRequest) -> Vec<(Place, String, String)> {
    let query = request.url.query_pairs().map(|(name, value)| (Place::Query, name.into_owned(), value.into_owned()));
    let mut carried: Vec<_> = query.collect();
    if let Some(body) = &request.body {
        if body.content_type == BodyFormat::Form.content_type() {
            let pairs = url::form_urlencoded::parse(&body.bytes);
            carried.extend(pairs.map(|(name, value)| (Place::Body, name.into_owned(), value.into_owned())));
        } else {
            let members: Map<String, Value> = serde_json::from_slice(&body.bytes).unwrap();
            carried.extend(members.into_iter().map(|(name, value)| (Place::Body, name, value.to_string())));
        }
    }
    carried
}

proptest! {
    #[test]
    fn every_value_is_sent_under_the_name_that_its_own_parameter_is_mapped_to(
        http in renaming(), names in prop::collection::btree_set(close_names(), 0..5),
    ) {
        let parameters: Map<String, Value> =
            names.iter().enumerate().map(|(number, name)| (name.clone(), json!(number))).collect();
        let Ok(request) = http.render(&base(), &parameters) else { return Ok(()) };
        let carried = carried(&request);
        prop_assert_eq!(carried.len(), parameters.len());
        for (place, sent, value) in carried {
            let (parameter, _) = parameters.iter().find(|(_, given)| given.to_string() == value).unwrap();
            match http.placements.get(parameter) {
                Some(placement) => prop_assert_eq!((placement.place, &placement.name), (place, &sent)),
                None => {
                    prop_assert_eq!(parameter, &sent);
                    let is_target = |placement: &Placement| placement.place == place && placement.name == sent;
                    prop_assert!(!http.placements.values().any(is_target), "{} stands for another parameter", sent);
                }
            }
        }
    }

    #[test]
    fn no_value_reaches_a_service_under_any_spelling_of_a_limited_name_without_that_limit(
        http in renaming(), given in prop::collection::btree_map(close_names(), 0_u64..20, 0..5),
    ) {
        let parameters: Map<String, Value> = given.into_iter().map(|(name, value)| (name, json!(value))).collect();
        let limit = Constraints::from_json(&json!({"a_max": 10})).unwrap();
        let mut tool = ToolDefinition::of_scope(crate::scope::Scope::parse("x").unwrap());
        tool.http = Some(http.clone());
        let value = Value::Object(parameters.clone());
        let checked = tool.check_sent_names(&value).is_ok() && limit.check_parameters(&value, None).is_ok();
        let Ok(request) = http.render(&base(), &parameters) else { return Ok(()) };
        if !checked {
            return Ok(());
        }
        let (place, limited) = match http.placements.get("a") {
            Some(placement) => (placement.place, placement.name.as_str()),
            None => (Place::Body, "a"),
        };
        // What the definition itself maps to such a name is a parameter of its own, which the limit is not about.
        let is_other = |at: Place, sent: &str| {
            let goes = |placement: &Placement| placement.place == at && placement.name == sent;
            http.placements.iter().any(|(parameter, placement)| parameter != "a" && goes(placement))
        };
        for (at, sent, value) in carried(&request) {
            let is_read_as_it = FoldedName::of(&sent).may_be(&FoldedName::of(limited));
            if at == place && is_read_as_it && !is_other(at, &sent) {
                prop_assert!(value.parse::<u64>().unwrap() <= 10, "{}={} passed a limit on a ({})", sent, value, limited);
            }
        }
    }

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
