//! The context of an event as Cedar values, converted only as far as the rules read it.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use cedar_policy::{Context, RestrictedExpression};
use serde_json::{Map, Value};
use toolgate_gate::ports::ledger::{Counts, History};
use toolgate_model::canonical::to_canonical_string;
use toolgate_model::guard::{Content, Dialect, Hook, HookEvent, Part, PartBody};
use toolgate_model::time::Timestamp;

use super::entities::{text, texts};
use super::reads::{Members, Reads};
use super::slice::Stage;
use super::value::express_members;
use crate::detector::{DetectorError, DetectorKind, Detectors};

/// The context attributes of every hook, of calls, of results and of all other hooks.
const CIRCUMSTANCES: [&str; 12] = [
    "reasoning",
    "session",
    "run",
    "user",
    "actor",
    "dialect",
    "marks",
    "detected",
    "spent",
    "calls",
    "time",
    "address",
];
const OF_CALL: [&str; 2] = ["arguments", "argumentsText"];
const OF_RESULT: [&str; 3] = ["arguments", "argumentsText", "result"];
const OF_HOOK: [&str; 3] = ["text", "method", "tool"];
pub(super) const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const MINUTE_MILLIS: i64 = 60 * 1000;
const DAY_MINUTES: i64 = 24 * 60;

/// An event with everything that is known about it.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    pub event: &'a HookEvent<'a>,
    /// The dialect in which the gate was asked.
    pub dialect: Dialect,
    /// The execution that the event belongs to.
    pub run: Option<&'a str>,
    /// The address of the caller.
    pub address: Option<IpAddr>,
    /// The earlier calls of the agent, if rules need them.
    pub history: Option<&'a History>,
    /// The arguments of the call, if the event is its result and rules need them.
    pub arguments: Option<&'a Map<String, Value>>,
    /// The secrets of the call, if they are known.
    pub secrets: &'a [&'a [u8]],
}

/// An attribute that rules read and that cannot be provided. Never contains the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnavailableFact {
    /// The attribute of `context`.
    pub(super) attribute: &'static str,
    pub(super) reason: String,
}

/// The last address as a Cedar value. Cedar parses the name of its function for each new value, which takes as long as
/// some rules; frequent callers use the same address.
#[derive(Debug, Default)]
pub(super) struct LastAddress(Mutex<Option<(IpAddr, RestrictedExpression)>>);

impl LastAddress {
    fn expressed(&self, address: IpAddr) -> RestrictedExpression {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, expressed)) if *known == address => expressed.clone(),
            _ => {
                let expressed = RestrictedExpression::new_ip(address.to_string());
                *last = Some((address, expressed.clone()));
                expressed
            }
        }
    }
}

/// A detector for each value that `context.detected` can contain.
#[derive(Debug, Clone, Default)]
pub(super) struct ContextDetectors(Arc<[(&'static str, Detectors)]>);

impl ContextDetectors {
    pub(super) fn new() -> Result<Self, DetectorError> {
        let kinds = [
            ("email", DetectorKind::Email),
            ("phone", DetectorKind::Phone),
            ("card", DetectorKind::Card),
            ("iban", DetectorKind::Iban),
            ("national-id", DetectorKind::NationalId),
            ("secret", DetectorKind::Secret),
        ];
        kinds.into_iter().map(|(name, kind)| Ok((name, Detectors::new(&[kind])?))).collect::<Result<_, _>>().map(Self)
    }
}

impl Facts<'_> {
    /// The attributes that are read, for an event with this content.
    pub(super) fn context(
        &self,
        stage: &Stage,
        reads: &Reads,
        content: &Content<'_>,
    ) -> Result<Context, UnavailableFact> {
        let own = match stage.hook {
            Hook::ToolCallRequest => OF_CALL.as_slice(),
            Hook::ToolCallResult => OF_RESULT.as_slice(),
            _ => OF_HOOK.as_slice(),
        };
        let mut pairs = Vec::new();
        for &name in own.iter().chain(&CIRCUMSTANCES) {
            if let Some(members) = reads.attribute(name) {
                let value = self.value(name, members, stage, content);
                let value = value.map_err(|reason| UnavailableFact { attribute: name, reason })?;
                pairs.extend(value.map(|value| (name.to_owned(), value)));
            }
        }
        // Cedar's message would contain the value.
        let refused = |_| UnavailableFact {
            attribute: "context",
            reason: "`context` has an attribute that Cedar cannot represent".to_owned(),
        };
        Context::from_pairs(pairs).map_err(refused)
    }

    fn value(
        &self,
        name: &str,
        members: &Members,
        stage: &Stage,
        content: &Content<'_>,
    ) -> Result<Option<RestrictedExpression>, String> {
        let event = self.event;
        let optional = |value: Option<&str>| Ok(value.map(text));
        match name {
            "arguments" => {
                let expressed = express_members(&stage.shape, self.arguments(content)?, members.names());
                expressed.map(Some).map_err(|problem| format!("argument {problem}"))
            }
            "argumentsText" => {
                let arguments = Value::Object(self.arguments(content)?.clone());
                Ok(Some(RestrictedExpression::new_string(to_canonical_string(&arguments))))
            }
            "result" => match content {
                Content::Result { value, is_error } => {
                    let is_error = || RestrictedExpression::new_bool(*is_error);
                    record(members, &[("text", &|| text(&plain(value))), ("isError", &is_error)])
                }
                _ => Err("there is no result".to_owned()),
            },
            "text" => Ok(Some(RestrictedExpression::new_string(all_text(content)))),
            "method" => optional(event.method.as_deref()),
            "tool" => optional(event.tool.as_deref()),
            "reasoning" => optional(event.reasoning.as_deref()),
            "session" => optional(event.session.as_deref()),
            "user" => optional(event.user.as_deref()),
            "run" => optional(self.run),
            "actor" => Ok(Some(RestrictedExpression::new_entity_uid(stage.actor.clone()))),
            "dialect" => optional(Some(self.dialect.as_str())),
            "detected" => {
                let json = content.to_json();
                let found =
                    stage.context_detectors.0.iter().filter(|(_, detectors)| detectors.redact_json(&json).is_some());
                Ok(Some(texts(found.map(|(name, _)| *name))))
            }
            "marks" => Ok(Some(texts(self.history()?.marks.iter().map(String::as_str)))),
            "spent" => {
                let Counts { cost_today, cost_in_run, .. } = &self.history()?.counts;
                record(members, &[("today", &|| decimal(*cost_today)), ("run", &|| decimal(*cost_in_run))])
            }
            "calls" => {
                let Counts { calls_today, calls_in_run, .. } = &self.history()?.counts;
                record(members, &[("today", &|| count(*calls_today)), ("run", &|| count(*calls_in_run))])
            }
            "time" => time(members, event.time),
            "address" => match self.address {
                Some(address) => Ok(Some(stage.last_address.expressed(address))),
                None => Err("the address is not known".to_owned()),
            },
            other => Err(format!("`{other}` is not known")),
        }
    }

    fn arguments<'b>(&'b self, content: &'b Content<'_>) -> Result<&'b Map<String, Value>, String> {
        match content {
            Content::Arguments(arguments) => Ok(arguments),
            _ => self.arguments.ok_or_else(|| "the arguments of the call are not known".to_owned()),
        }
    }

    fn history(&self) -> Result<&History, String> {
        self.history.ok_or_else(|| "what the agent did before is not known".to_owned())
    }
}

/// A member of a record, created only if it is read: a decimal or a time costs more than a whole rule.
type Field<'a> = (&'static str, &'a dyn Fn() -> RestrictedExpression);

fn record(members: &Members, fields: &[Field<'_>]) -> Result<Option<RestrictedExpression>, String> {
    let wanted = fields.iter().filter(|(name, _)| members.contains(name));
    let record = RestrictedExpression::new_record(wanted.map(|(name, value)| ((*name).to_owned(), value())));
    record.map(Some).map_err(|_| "a record has a duplicate member".to_owned())
}

/// Converts millionths to the four decimal places of Cedar, rounded up.
fn decimal(micros: u64) -> RestrictedExpression {
    let units = micros.div_ceil(100);
    RestrictedExpression::new_decimal(format!("{}.{:04}", units / 10_000, units % 10_000))
}

fn count(count: u64) -> RestrictedExpression {
    RestrictedExpression::new_long(i64::try_from(count).unwrap_or(i64::MAX))
}

/// The time in UTC.
fn time(members: &Members, time: Timestamp) -> Result<Option<RestrictedExpression>, String> {
    let minutes = time.as_millis().div_euclid(MINUTE_MILLIS);
    // 1970-01-01 was a Thursday.
    let weekday = minutes.div_euclid(DAY_MINUTES).saturating_add(3).rem_euclid(7);
    let weekday = usize::try_from(weekday).ok().and_then(|day| WEEKDAYS.get(day)).copied();
    let written = |end: usize| time.to_string().get(..end).unwrap_or_default().to_owned();
    record(
        members,
        &[
            ("now", &|| RestrictedExpression::new_datetime(format!("{}Z", written(23)))),
            ("hour", &|| RestrictedExpression::new_long(minutes.rem_euclid(DAY_MINUTES).div_euclid(60))),
            ("minute", &|| RestrictedExpression::new_long(minutes.rem_euclid(60))),
            ("weekday", &|| text(weekday.unwrap_or_default())),
            ("date", &|| text(&written(10))),
        ],
    )
}

/// A string as it is, every other value as canonical JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => to_canonical_string(other),
    }
}

/// All text of a content, one line per piece.
fn all_text(content: &Content<'_>) -> String {
    let lines: Vec<String> = match content {
        Content::Parts(parts) => parts.iter().map(part_text).collect(),
        Content::Memory(entries) => entries.clone(),
        Content::Knowledge { query, keywords, results } => {
            let found = results.iter().map(|result| &result.content);
            query.iter().chain(keywords).chain(found).cloned().collect()
        }
        Content::Message(message) => vec![plain(message)],
        other => vec![to_canonical_string(&other.to_json())],
    };
    lines.join("\n")
}

fn part_text(part: &Part) -> String {
    match &part.body {
        PartBody::Text(text) => text.clone(),
        PartBody::Data(data) => plain(data),
        PartBody::File(file) => {
            let name = file.name.as_deref().unwrap_or_default();
            format!("{name} {}", plain(&file.place))
        }
    }
}
