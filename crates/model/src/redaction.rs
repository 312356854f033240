//! Redaction by value: the secret of a call is replaced wherever and in whatever spelling it occurs, in responses of a
//! service and in the arguments as they are recorded and shown. Names of fields and headers play no role, so ordinary
//! data stays unchanged, byte for byte.
//!
//! Finds the secret itself, also with any of its characters escaped for JSON, URLs, forms or HTML, repeatedly and in
//! any mixture (see `redaction/readings.rs`), and in UTF-16; its base64 in either alphabet, at any alignment inside a
//! longer text and wrapped into lines; and its hex. Of multi-line secrets, such as private keys, also each longer line
//! on its own. Hidden characters in between, which nobody sees, hide nothing. A secret of fewer than four bytes is found
//! only as a separate word, and in no encoding.
//!
//! Other transformations (compressed, encrypted, reversed, split) are not found: bodies are decompressed before. They
//! are also complete: a chunk boundary cannot hide anything.

mod entities;
mod forms;
mod json;
mod pattern;
pub(crate) mod readings;
mod secrets;
mod steps;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;
use zeroize::Zeroizing;

pub use self::readings::{Decoded, decoded};

use self::forms::Forms;
use self::pattern::is_cut_escape;
use self::readings::{Readings, is_introducer};
use self::secrets::Secrets;
use crate::arguments::REDACTED;
use crate::credential::is_public_field;
use crate::hidden_text::revealed;
use crate::secret::{Material, Secret};
use crate::service::HiddenCharacters;

/// The replacements for a secret; the first one that does not contain the secret itself is used.
const MARKERS: [&str; 3] = ["[REDACTED]", "[***]", ""];
/// The same in arguments.
const ARGUMENT_MARKERS: [&str; 3] = [REDACTED, "[***]", ""];
/// A text with fewer escape introducers than this is never ambiguous.
const FEWEST_SIGNS: usize = 128;
/// A replacement can put the last character of a marker before the rest of a secret, so the result is searched again.
const PASSES: usize = 8;

/// Finds and replaces the secrets of one call. Built from the unsealed material, dropped with it.
///
/// INVARIANT: implements none of `Debug`, `Clone`, `Serialize`, and all its forms are wiped on drop.
pub struct Redactor {
    secrets: Secrets,
    marker: &'static str,
}

/// How a text is searched.
#[derive(Clone, Copy)]
struct Search<'a> {
    secrets: &'a Secrets,
    /// Whether it is an argument of a call, in which shorter values are not searched.
    ///
    /// INVARIANT: what is shorter stays unchanged, so that it can be shown to its caller, see [`crate::blinding`].
    in_arguments: bool,
    marker: &'static str,
}

impl Redactor {
    /// Redacts every field of the material, except those that are names or descriptions rather than secrets.
    pub fn new(material: &Material) -> Self {
        let secrets = material.iter().filter(|(name, secret)| !is_public_field(name, secret));
        Self::of(secrets.map(|(_, secret)| secret.expose()))
    }

    pub(crate) fn of<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let mut redactor = Self::none();
        secrets.for_each(|secret| redactor.secrets.add(secret));
        redactor.choose_marker();
        redactor
    }

    /// Redacts nothing: for calls without a secret.
    pub fn none() -> Self {
        Self { secrets: Secrets::none(), marker: "" }
    }

    /// Adds a secret, such as a token that was renewed during the call.
    pub fn add(&mut self, secret: &Secret) {
        self.secrets.add(secret.expose());
        self.choose_marker();
    }

    fn choose_marker(&mut self) {
        self.marker = marker(&self.secrets, false, MARKERS);
    }

    /// The arguments without these secrets, whatever they look like and wherever they occur.
    pub fn arguments<'a>(&self, arguments: &'a Value) -> Cow<'a, Value> {
        let marker = marker(&self.secrets, true, ARGUMENT_MARKERS);
        let search = Search { secrets: &self.secrets, in_arguments: true, marker };
        if !search.occurs_in(arguments) {
            return Cow::Borrowed(arguments);
        }
        let mut redacted = arguments.clone();
        search.redact_json(&mut redacted);
        Cow::Owned(redacted)
    }

    /// Whether arguments contain a text that cannot be searched, so that [`Redactor::arguments`] withholds it as a
    /// whole. A call with such arguments must be refused: otherwise its caller could hide what it does from approvers
    /// and from the record.
    pub fn withholds(&self, arguments: &Value) -> bool {
        let is_ambiguous = |text: &str| {
            let signs = text.bytes().filter(|byte| is_introducer(*byte)).count();
            signs >= FEWEST_SIGNS && Readings::of(text.as_bytes()).is_ambiguous()
        };
        !self.secrets.is_empty()
            && match arguments {
                Value::Null | Value::Bool(_) | Value::Number(_) => false,
                Value::String(text) => is_ambiguous(text),
                Value::Array(items) => items.iter().any(|item| self.withholds(item)),
                Value::Object(members) => {
                    members.iter().any(|(name, member)| is_ambiguous(name) || self.withholds(member))
                }
            }
    }

    fn search(&self) -> Search<'_> {
        Search { secrets: &self.secrets, in_arguments: false, marker: self.marker }
    }

    /// Replaces every form of every secret; returns whether there was any.
    pub fn redact_bytes(&self, bytes: &mut Vec<u8>) -> bool {
        match String::from_utf8(std::mem::take(bytes)) {
            Ok(mut text) => {
                let is_found = self.redact_text(&mut text);
                *bytes = text.into_bytes();
                is_found
            }
            Err(not_text) => {
                *bytes = not_text.into_bytes();
                self.search().redact_bytes(bytes)
            }
        }
    }

    /// Redacts truncated text, which may end with the beginning of a secret: that is removed too.
    ///
    /// Otherwise, a party that influences the position of the cut could read a secret except for its last character.
    pub fn redact_cut_off(&self, bytes: &mut Vec<u8>) {
        self.search().redact_cut_off(bytes);
    }

    /// Replaces every form of every secret; returns whether there was any.
    pub fn redact_text(&self, text: &mut String) -> bool {
        self.search().redact_text(text)
    }

    /// Replaces every form of every secret in all strings and names, and every number that spells a secret; returns
    /// whether there was any.
    pub fn redact_json(&self, value: &mut Value) -> bool {
        self.search().redact_json(value)
    }

    /// The length of the longest form of a secret, in bytes. Escaped, it may be longer.
    pub fn longest_form(&self) -> usize {
        self.secrets.longest()
    }

    /// Whether a text contains any form of a secret.
    pub fn hides(&self, text: &str) -> bool {
        self.search().hides(text)
    }

    pub fn occurs_in(&self, value: &Value) -> bool {
        self.search().occurs_in(value)
    }
}

/// The first marker in which no secret occurs. A character of a secret is at least one of the text.
fn marker(secrets: &Secrets, in_arguments: bool, markers: [&'static str; 3]) -> &'static str {
    let search = Search { secrets, in_arguments, marker: "" };
    let is_free = |marker: &&str| secrets.are_longer_than(marker, in_arguments) || !search.hides(marker);
    markers.into_iter().find(is_free).unwrap_or_default()
}

fn may_start(forms: &Forms, byte: u8) -> bool {
    is_introducer(byte) || forms.may_start_with(byte)
}

impl Search<'_> {
    fn redact_bytes(&self, bytes: &mut Vec<u8>) -> bool {
        for pass in 0..PASSES {
            let found = self.occurrences(bytes);
            if found.is_empty() {
                return pass > 0;
            }
            let redacted = self.without(bytes, &found);
            drop(Zeroizing::new(std::mem::replace(bytes, redacted)));
        }
        // No known text needs this many passes. If there is one, all of it is withheld.
        drop(Zeroizing::new(std::mem::replace(bytes, self.marker.as_bytes().to_vec())));
        true
    }

    fn redact_cut_off(&self, bytes: &mut Vec<u8>) {
        self.redact_bytes(bytes);
        // INVARIANT: redacted text is not ambiguous.
        let (readings, forms) = (Readings::of(bytes), self.secrets.forms());
        let first = |(at, &byte): (usize, &u8)| self.cut_off_at(forms, &readings, at, byte);
        if let Some(start) = bytes.iter().enumerate().find_map(first) {
            drop(Zeroizing::new(bytes.split_off(start)));
        }
    }

    fn redact_text(&self, text: &mut String) -> bool {
        let is_found = self.redact_spelled(text);
        let Some(joined) = self.joined(text) else { return is_found };
        drop(Zeroizing::new(std::mem::replace(text, joined)));
        self.redact_spelled(text)
    }

    fn redact_spelled(&self, text: &mut String) -> bool {
        if self.occurrences(text.as_bytes()).is_empty() {
            return false;
        }
        let mut bytes = std::mem::take(text).into_bytes();
        self.redact_bytes(&mut bytes);
        *text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        true
    }

    fn hides(&self, text: &str) -> bool {
        !self.occurrences(text.as_bytes()).is_empty() || self.joined(text).is_some()
    }

    /// The text without its hidden characters, if a secret occurs in it then: whoever reads such a text, or removes what is
    /// hidden from it, has the secret. Arguments are shown with what is hidden in them, and stay as they were sent.
    fn joined(&self, text: &str) -> Option<String> {
        if self.in_arguments || self.secrets.is_empty() {
            return None;
        }
        let joined = revealed(text, HiddenCharacters::Strip)?;
        let joined = Zeroizing::new(joined);
        (!self.occurrences(joined.as_bytes()).is_empty()).then(|| (*joined).clone())
    }

    /// The ranges of secrets in the text, from left to right, without overlaps.
    fn occurrences(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        if !self.secrets.may_occur_in(text) {
            return found;
        }
        let (readings, forms) = (Readings::of(text), self.secrets.forms());
        if readings.is_ambiguous() {
            // Its meaning is unknown, so all of it is withheld.
            found.push(0..text.len());
            return found;
        }
        steps::count(text.len());
        let mut previous = 0;
        for (at, &byte) in text.iter().enumerate() {
            if may_start(forms, byte) {
                self.find_at(forms, &readings, at, byte, &mut found);
                // An escape includes all backslashes before it, so it starts with the first of them.
                if is_introducer(byte) && (byte, previous) != (b'\\', b'\\') {
                    self.find_escaped_at(forms, &readings, at, &mut found);
                }
            }
            previous = byte;
        }
        found
    }

    /// Adds what is found here if the first character is escaped.
    fn find_escaped_at(&self, forms: &Forms, readings: &Readings<'_>, at: usize, found: &mut Vec<Range<usize>>) {
        // Many readings of an escape mean the same character.
        let mut tried = None;
        for first in readings.at(at).iter().map(|reading| reading.spelled().first().copied()) {
            if let Some(byte) = first.filter(|_| first != tried) {
                tried = first;
                self.find_at(forms, readings, at, byte, found);
            }
        }
    }

    /// Adds what the patterns that start with this byte find here.
    fn find_at(&self, forms: &Forms, readings: &Readings<'_>, at: usize, first: u8, found: &mut Vec<Range<usize>>) {
        let candidates = forms.starting_with(first, self.in_arguments);
        for range in candidates.filter_map(|pattern| pattern.find_at(readings, at)) {
            match found.last_mut() {
                // Nothing may remain between two adjacent ranges.
                Some(last) if range.start <= last.end => {
                    last.start = last.start.min(range.start);
                    last.end = last.end.max(range.end);
                }
                _ => found.push(range),
            }
        }
    }

    /// The start of a secret that the end of the text cuts off, if one may start here.
    fn cut_off_at(&self, forms: &Forms, readings: &Readings<'_>, at: usize, byte: u8) -> Option<usize> {
        if !may_start(forms, byte) {
            return None;
        }
        if is_cut_escape(readings.text, at) {
            return Some(at);
        }
        let starting_with = |first: u8| {
            let candidates = forms.starting_with(first, self.in_arguments);
            candidates.filter_map(|pattern| pattern.cut_off_at(readings, at)).min()
        };
        let escaped = readings.at(at).iter().filter_map(|reading| reading.spelled().first().copied());
        std::iter::once(byte).chain(escaped).filter_map(starting_with).min()
    }

    /// A copy of the text with the marker in place of each range.
    fn without(&self, text: &[u8], ranges: &[Range<usize>]) -> Vec<u8> {
        let mut copy = Vec::with_capacity(text.len() + ranges.len() * self.marker.len());
        let mut kept_from = 0;
        for range in ranges {
            copy.extend_from_slice(text.get(kept_from..range.start).unwrap_or_default());
            copy.extend_from_slice(self.marker.as_bytes());
            kept_from = range.end;
        }
        copy.extend_from_slice(text.get(kept_from..).unwrap_or_default());
        copy
    }
}
