//! What a caller is shown of its own arguments and their hash. The log has both without the credential's secret, so
//! either would reveal whether a guess was redacted. A keyed hash that includes the call reveals nothing: it is never
//! equal for two calls. Arguments are shown only if they are too short to be compared with a secret.

use aws_lc_rs::hmac;
use serde_json::{Map, Value};

use crate::arguments::MIN_SECRET;
use crate::checkpoint::SigningKey;

/// The replacement for an argument, or a name, that may contain a secret.
const WITHHELD: &str = "[withheld]";

/// Members of events with a hash of arguments.
const HASHES: [&str; 4] = ["argsHash", "arguments_hash", "hash_before", "request_fingerprint"];
/// Members of events with arguments, or that reveal whether something was redacted in them.
const ARGUMENTS: [&str; 5] = ["effective", "hash_after", "inputs", "parameters", "parameters_summary"];
/// Members of events with the id of the call.
const CALLS: [&str; 2] = ["callId", "invocation_id"];

/// The recorded parameters as their caller sees them, under the names that the tool declares. Another name may be a
/// guess itself: all of those are replaced by one marker.
pub fn short_parameters(parameters: &Map<String, Value>, is_declared: impl Fn(&str) -> bool) -> Map<String, Value> {
    let shown = |value: &Value| match value {
        Value::Null | Value::Bool(_) => value.clone(),
        Value::Number(number) if number.to_string().len() < MIN_SECRET => value.clone(),
        Value::String(text) if text.len() < MIN_SECRET => value.clone(),
        _ => Value::from(WITHHELD),
    };
    let seen = |(name, value): (&String, &Value)| match is_declared(name) {
        true => (name.clone(), shown(value)),
        false => (WITHHELD.to_owned(), Value::from(WITHHELD)),
    };
    parameters.iter().map(seen).collect()
}

/// Replaces hashes of arguments for readers who may not read the log.
///
/// INVARIANT: implements none of `Debug`, `Clone`, `Serialize`; no caller has its key.
pub struct Blinding(hmac::Key);

impl Blinding {
    /// Derives the key from the one that signs the log, so that all replicas show the same.
    pub fn new(key: &SigningKey) -> Self {
        let root = hmac::Key::new(hmac::HMAC_SHA256, key.expose_seed());
        let derived = hmac::sign(&root, b"toolgate: hashes of arguments as callers see them");
        Self(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()))
    }

    /// The hash under this name of this call, as its caller sees it.
    pub fn hash(&self, call: &str, name: &str, hash: &str) -> String {
        let tag = hmac::sign(&self.0, format!("{call}\n{name}\n{hash}").as_bytes());
        tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Blinds the hashes of an event's payload and removes the arguments from it.
    pub fn apply(&self, event_id: &str, payload: &mut Value) {
        let Some(members) = payload.as_object_mut() else { return };
        ARGUMENTS.iter().for_each(|name| drop(members.remove(*name)));
        let named = CALLS.iter().find_map(|name| members.get(*name)?.as_str());
        let call = named.unwrap_or(event_id).to_owned();
        for name in HASHES {
            if let Some(Value::String(hash)) = members.get_mut(name) {
                *hash = self.hash(&call, name, hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn blinding(seed: u8) -> Blinding {
        Blinding::new(&SigningKey::from_seed(&[seed; 32]).unwrap())
    }

    #[test]
    fn equal_hashes_of_two_calls_or_names_are_not_equal_any_more() {
        let one = blinding(1);
        let hash = one.hash("inv_1", "argsHash", "ab");
        assert_eq!(hash.len(), 64);
        assert_eq!(hash, blinding(1).hash("inv_1", "argsHash", "ab"));
        for other in [
            one.hash("inv_2", "argsHash", "ab"),
            one.hash("inv_1", "hash_before", "ab"),
            one.hash("inv_1", "argsHash", "cd"),
            blinding(2).hash("inv_1", "argsHash", "ab"),
        ] {
            assert_ne!(hash, other);
        }
    }

    #[test]
    fn what_is_shown_of_arguments_does_not_depend_on_what_was_redacted() {
        let sent = |guess: &str, number: u64| json!({"note": guess, "list": [guess], "pin": number, guess: 1, "n": 25});
        let shown = |arguments: Value| {
            let kept = crate::arguments::without(&arguments, &[b"hunter2hunter2", b"12345678"]).into_owned();
            short_parameters(kept.as_object().unwrap(), |name| ["note", "list", "pin", "n"].contains(&name))
        };
        let expected = json!({"note": WITHHELD, "list": WITHHELD, "pin": WITHHELD, "n": 25, WITHHELD: WITHHELD});
        for (guess, number) in [("hunter2hunter2", 12_345_678), ("hunter2hunter3", 12_345_679)] {
            assert_eq!(Value::Object(shown(sent(guess, number))), expected);
        }
        let short = json!({"note": "usd", "pin": 2500, "n": null});
        assert_eq!(Value::Object(shown(short.clone())), short);
    }

    #[test]
    fn an_event_keeps_its_members_and_loses_its_arguments() {
        let mut payload = json!({"callId": "inv_1", "argsHash": "ab", "inputs": {"a": 1}, "toolName": "s.t"});
        let one = blinding(1);
        one.apply("evt_1", &mut payload);
        let hash = one.hash("inv_1", "argsHash", "ab");
        assert_eq!(payload, json!({"callId": "inv_1", "argsHash": hash, "toolName": "s.t"}));
        // A rule that redacts the credential changes the arguments that hold it, and no others.
        let decided = |more: Value| {
            let mut payload = json!({"invocation_id": "inv_1", "hash_before": "ab", "hook": "tool_call_request"});
            payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            one.apply("evt_1", &mut payload);
            payload
        };
        let changed = decided(json!({"effective": "modify", "hash_after": "cd"}));
        assert_eq!(changed, decided(json!({"effective": "allow"})));
    }
}
