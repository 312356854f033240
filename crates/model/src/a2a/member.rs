//! Members of messages. The peers read ProtoJSON, in which `taskId` and `task_id` are the same member: whatever the gate
//! decides about one spelling holds for all of them.

use serde_json::{Map, Value};

/// A name without what spellings differ in.
pub fn plain(name: &str) -> String {
    name.chars().filter(|letter| *letter != '_').map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Whether a member has this plain name.
pub fn is(name: &str, plain_name: &str) -> bool {
    let mut letters = name.chars().filter(|letter| *letter != '_').map(|letter| letter.to_ascii_lowercase());
    let mut wanted = plain_name.chars();
    loop {
        match (letters.next(), wanted.next()) {
            (None, None) => return true,
            (letter, wanted) if letter == wanted => {}
            _ => return false,
        }
    }
}

/// The values of a member, however it is spelled, that are not null.
pub fn all<'a>(object: &'a Map<String, Value>, plain_name: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    object
        .iter()
        .filter(move |(name, value)| is(name, plain_name) && !value.is_null())
        .map(|(name, value)| (name.as_str(), value))
}

/// The value of a member, however it is spelled.
pub fn find<'a>(value: &'a Value, plain_name: &'a str) -> Option<&'a Value> {
    all(value.as_object()?, plain_name).next().map(|(_, value)| value)
}

/// The same in place.
pub fn find_mut<'a>(value: &'a mut Value, plain_name: &str) -> Option<&'a mut Value> {
    let members = value.as_object_mut()?;
    members.iter_mut().find(|(name, value)| is(name, plain_name) && !value.is_null()).map(|(_, value)| value)
}
