//! The annotations of a rule: id, reason, remedy and mode. Unknown annotations are errors, so that a misspelt remedy is
//! not silently ignored.

use std::collections::BTreeMap;

use cedar_policy::Policy;
use toolgate_model::text::{check_identifier, check_line};

use super::problem::nearest;
use super::remedy::{Asking, Redaction, Remedy};
use crate::detector::{DetectorKind, Detectors, FieldSelector};

const KNOWN: [&str; 10] =
    ["id", "reason", "description", "mode", "remedy", "approvers", "quorum", "within", "fields", "detectors"];
const OF_ASK: [&str; 3] = ["approvers", "quorum", "within"];
const OF_REDACT: [&str; 2] = ["fields", "detectors"];
const REASON_LIMIT: usize = 512;
const DESCRIPTION_LIMIT: usize = 2_000;
const MAX_APPROVERS: u32 = 16;
const MAX_WAIT_SECONDS: u64 = 7 * 24 * 60 * 60;

/// The parsed annotations.
#[derive(Debug, Default)]
pub(super) struct Annotations {
    pub(super) id: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) description: Option<String>,
    pub(super) shadow: bool,
    pub(super) remedy: Option<Remedy>,
}

/// An error in an annotation, with a hint.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Annotations {
    /// Parses all annotations and reports all errors.
    pub(super) fn read(policy: &Policy) -> Result<Self, Vec<Fault>> {
        let given: BTreeMap<&str, &str> = policy.annotations().collect();
        let mut faults: Vec<Fault> =
            given.keys().filter(|name| !KNOWN.contains(name)).map(|name| unknown(name)).collect();
        let mut note = |message: String| faults.push(Fault { message, help: None });
        let mut read = Self::default();
        if let Some(id) = given.get("id") {
            check_identifier(id).unwrap_or_else(|error| note(format!("`@id` {error}")));
            read.id = Some((*id).to_owned());
        }
        for (name, limit, place) in
            [("reason", REASON_LIMIT, &mut read.reason), ("description", DESCRIPTION_LIMIT, &mut read.description)]
        {
            if let Some(text) = given.get(name) {
                check_line(text, limit).unwrap_or_else(|error| note(format!("`@{name}` {error}")));
                *place = Some((*text).to_owned());
            }
        }
        match given.get("mode") {
            None => {}
            Some(&"shadow") => read.shadow = true,
            Some(other) => note(format!("`@mode` must be shadow or absent, not `{other}`")),
        }
        let remedy = match given.get("remedy") {
            None => Ok(None),
            Some(&"ask") => asking(&given).map(|asking| Some(Remedy::Ask(asking))),
            Some(&"redact") => redaction(&given).map(|redaction| Some(Remedy::Redact(redaction))),
            Some(other) => Err(format!("`@remedy` must be ask or redact, not `{other}`")),
        };
        let named = given.get("remedy").copied();
        for (remedy, names) in [("ask", OF_ASK.as_slice()), ("redact", OF_REDACT.as_slice())] {
            for name in names.iter().filter(|name| given.contains_key(**name) && named != Some(remedy)) {
                note(format!("`@{name}` requires `@remedy(\"{remedy}\")`; add that, or remove `@{name}`"));
            }
        }
        match remedy {
            Ok(remedy) => read.remedy = remedy,
            Err(message) => note(message),
        }
        if faults.is_empty() { Ok(read) } else { Err(faults) }
    }
}

fn unknown(name: &str) -> Fault {
    let help = nearest(name, KNOWN.into_iter()).map(|known| format!("did you mean `@{known}`?"));
    Fault { message: format!("unknown annotation `@{name}`; use {}", KNOWN.join(", ")), help }
}

fn asking(given: &BTreeMap<&str, &str>) -> Result<Asking, String> {
    let groups = match given.get("approvers") {
        None => Vec::new(),
        Some(list) => list.split(',').map(|group| group_of(group.trim())).collect::<Result<_, _>>()?,
    };
    let quorum = match given.get("quorum") {
        None => 1,
        Some(count) => count
            .parse()
            .ok()
            .filter(|count| (1..=MAX_APPROVERS).contains(count))
            .ok_or_else(|| format!("`@quorum` must be a number from 1 to {MAX_APPROVERS}, not `{count}`"))?,
    };
    let within = given.get("within").map(|text| seconds(text)).transpose()?;
    Ok(Asking { groups, quorum, within })
}

fn group_of(name: &str) -> Result<String, String> {
    check_identifier(name).map_err(|error| {
        format!("invalid group in `@approvers`: it {error}; separate groups with commas, such as security,legal")
    })?;
    Ok(name.to_owned())
}

/// A duration like `90s`, `15m`, `2h` or `1d`.
fn seconds(text: &str) -> Result<u64, String> {
    let unit = match text.chars().last() {
        Some('s') => Some(1),
        Some('m') => Some(60),
        Some('h') => Some(60 * 60),
        Some('d') => Some(24 * 60 * 60),
        _ => None,
    };
    let count =
        text.strip_suffix(['s', 'm', 'h', 'd']).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let count = count.and_then(|digits| digits.parse::<u64>().ok());
    let seconds = count.zip(unit).and_then(|(count, unit)| count.checked_mul(unit));
    seconds.filter(|seconds| (1..=MAX_WAIT_SECONDS).contains(seconds)).ok_or_else(|| {
        format!("`@within` must be a duration such as 90s, 15m, 2h or 7d, at most seven days, not `{text}`")
    })
}

fn redaction(given: &BTreeMap<&str, &str>) -> Result<Redaction, String> {
    let fields = FieldSelector::parse(given.get("fields").copied().unwrap_or("*"));
    let fields = fields.map_err(|error| format!("`@fields`: {error}"))?;
    let detectors = match given.get("detectors") {
        None if fields == FieldSelector::All => {
            let advice = "set `@detectors` to what to look for, or `@fields` to the fields to replace";
            return Err(format!("`@remedy(\"redact\")` needs a target; {advice}"));
        }
        None => None,
        Some(list) => Some(detectors(list).map_err(|error| format!("`@detectors`: {error}"))?),
    };
    let list = given.get("detectors").copied().unwrap_or_default();
    Ok(Redaction {
        wanted: format!("{}|{list}", given.get("fields").copied().unwrap_or("*")),
        by_value: list.split(',').any(|name| name.trim() == "secret"),
        fields,
        detectors,
    })
}

/// A comma-separated list; an expression extends to the end, whatever it contains.
fn detectors(list: &str) -> Result<Detectors, String> {
    let mut kinds = Vec::new();
    let mut rest = Some(list);
    while let Some(list) = rest.map(str::trim_start) {
        let (item, others) = match list.split_once(',') {
            Some((item, others)) if !list.starts_with("regex:") => (item.trim(), Some(others)),
            _ if list.starts_with("regex:") => (list, None),
            _ => (list.trim(), None),
        };
        kinds.push(DetectorKind::parse(item).map_err(|error| error.to_string())?);
        rest = others;
    }
    Detectors::new(&kinds).map_err(|error| error.to_string())
}
