//! Applies a guardian's modification to content that the guardian saw redacted. Unchanged parts keep the original,
//! changed parts take the guardian's value.

use serde_json::{Map, Value};

/// The original with the differences between what was shown and what was returned; `None` if their meaning for the
/// redacted parts is ambiguous.
pub(super) fn merged(original: &Value, shown: &Value, returned: &Value) -> Option<Value> {
    if returned == shown {
        return Some(original.clone());
    }
    if shown == original {
        return Some(returned.clone());
    }
    match (original, shown, returned) {
        (Value::Object(original), Value::Object(shown), Value::Object(returned)) => {
            members(original, shown, returned).map(Value::Object)
        }
        (Value::Array(original), Value::Array(shown), Value::Array(returned)) => {
            items(original, shown, returned).map(Value::Array)
        }
        _ => Some(returned.clone()),
    }
}

fn members(
    original: &Map<String, Value>,
    shown: &Map<String, Value>,
    returned: &Map<String, Value>,
) -> Option<Map<String, Value>> {
    // Names can be redacted too, and markers cannot be matched to them: either all of them stay, or they were removed.
    let markers: Vec<_> = shown.iter().filter(|(name, _)| !original.contains_key(*name)).collect();
    let all_stay = markers.iter().all(|(name, value)| returned.get(*name) == Some(*value));
    if !all_stay && markers.iter().any(|(name, _)| returned.contains_key(*name)) {
        return None;
    }
    let mut merged = Map::new();
    for (name, value) in returned {
        match (original.get(name), shown.get(name)) {
            (Some(original), Some(shown)) => merged.insert(name.clone(), self::merged(original, shown, value)?),
            // A new member with the name of a redacted one.
            (Some(_), None) => return None,
            (None, Some(_)) => continue,
            (None, None) => merged.insert(name.clone(), value.clone()),
        };
    }
    if all_stay {
        let hidden = original.iter().filter(|(name, _)| !shown.contains_key(*name));
        merged.extend(hidden.map(|(name, value)| (name.clone(), value.clone())));
    }
    Some(merged)
}

fn items(original: &[Value], shown: &[Value], returned: &[Value]) -> Option<Vec<Value>> {
    if original.len() != shown.len() {
        return None;
    }
    let mut pairs = original.iter().zip(shown);
    if shown.len() == returned.len() {
        return pairs.zip(returned).map(|((original, shown), returned)| merged(original, shown, returned)).collect();
    }
    // Items were removed. If others were changed or added as well, they cannot be matched.
    returned.iter().map(|item| pairs.find(|(_, shown)| *shown == item).map(|(original, _)| original.clone())).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_not_touched_keeps_its_original_value() {
        let original = json!({"to": "ann@x.org", "note": "a", "list": [{"mail": "b@x.org", "n": 1}, 2]});
        let shown = json!({"to": "[E]", "note": "a", "list": [{"mail": "[E]", "n": 1}, 2]});
        for (returned, expected) in [
            (shown.clone(), original.clone()),
            (
                json!({"to": "[E]", "note": "b", "list": [{"mail": "[E]", "n": 1}, 2]}),
                json!({"to": "ann@x.org", "note": "b", "list": [{"mail": "b@x.org", "n": 1}, 2]}),
            ),
            (
                json!({"to": "nobody", "list": [{"mail": "[E]", "n": 5, "m": 6}, 3], "new": true}),
                json!({"to": "nobody", "list": [{"mail": "b@x.org", "n": 5, "m": 6}, 3], "new": true}),
            ),
            (json!({"list": [2]}), json!({"list": [2]})),
            (json!({"list": [{"mail": "[E]", "n": 1}]}), json!({"list": [{"mail": "b@x.org", "n": 1}]})),
            (json!({"list": "none"}), json!({"list": "none"})),
        ] {
            assert_eq!(merged(&original, &shown, &returned), Some(expected), "{returned}");
        }
    }

    #[test]
    fn what_cannot_be_told_apart_is_no_change_at_all() {
        let original = json!([{"mail": "b@x.org"}, 2]);
        let shown = json!([{"mail": "[E]"}, 2]);
        for returned in
            [json!([{"mail": "[E]", "n": 1}]), json!([1, {"mail": "[E]"}, 2]), json!([2, {"mail": "[E]"}, 2])]
        {
            assert_eq!(merged(&original, &shown, &returned), None, "{returned}");
        }
    }

    #[test]
    fn a_hidden_member_stays_with_its_marker_and_goes_with_it() {
        let original = json!({"tgk_secret": 1, "other": 2});
        let shown = json!({"[redacted]": "[redacted]", "other": 2});
        for (returned, expected) in [
            (json!({"[redacted]": "[redacted]", "other": 3}), Some(json!({"tgk_secret": 1, "other": 3}))),
            (json!({"other": 2}), Some(json!({"other": 2}))),
            (json!({"[redacted]": "x", "other": 2}), None),
            (json!({"[redacted]": "[redacted]", "tgk_secret": 5, "other": 2}), None),
        ] {
            assert_eq!(merged(&original, &shown, &returned), expected, "{returned}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof!["[a-c]{0,2}".prop_map(Value::from), any::<bool>().prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn with_hidden_texts(value: &Value) -> Value {
        match value {
            Value::String(text) if text.contains('a') => Value::from("[E]"),
            Value::Array(items) => items.iter().map(with_hidden_texts).collect(),
            Value::Object(members) => {
                members.iter().map(|(name, value)| (name.clone(), with_hidden_texts(value))).collect()
            }
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn a_change_of_what_was_shown_as_it_is_is_taken_as_it_is(original in values(), returned in values()) {
            prop_assert_eq!(merged(&original, &original, &returned), Some(returned));
        }

        #[test]
        fn what_is_answered_unchanged_is_the_original(original in values()) {
            let shown = with_hidden_texts(&original);
            prop_assert_eq!(merged(&original, &shown, &shown), Some(original));
        }

        #[test]
        fn a_member_that_is_put_in_brings_no_marker_into_the_rest(original in values()) {
            let original = json!({"rest": original});
            let shown = with_hidden_texts(&original);
            let mut returned = shown.clone();
            returned["new"] = json!(1);
            let mut expected = original.clone();
            expected["new"] = json!(1);
            prop_assert_eq!(merged(&original, &shown, &returned), Some(expected));
        }
    }
}
