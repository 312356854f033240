//! HTTP mappings as JSON, in the form of the registry and in that of the reference's endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use super::fixed_url::FixedUrl;
use super::{BodyFormat, Divider, HttpMapping, HttpMethod, PathTemplate, Place, Placement, SuccessCodes, header};
use crate::service::DefinitionError;
use crate::service::reading::{Fields, join, object, parsed, refuse, text, word};
use crate::text::check_line;

const MEMBERS: [&str; 7] = ["body", "default_in", "headers", "method", "parameters", "path", "success"];
const PLACES: [(&str, Place); 4] =
    [("body", Place::Body), ("header", Place::Header), ("path", Place::Path), ("query", Place::Query)];
/// The places of parameters that the definition does not name. Never headers: only the definition names those.
const DEFAULT_PLACES: [(&str, Place); 3] = [("body", Place::Body), ("path", Place::Path), ("query", Place::Query)];
const BODIES: [(&str, BodyFormat); 2] = [("form", BodyFormat::Form), ("json", BodyFormat::Json)];
/// Final responses.
const STATUSES: RangeInclusive<u16> = 200..=599;
/// More than any tool has.
const PLACEMENT_LIMIT: usize = 256;
const HEADER_LIMIT: usize = 64;

impl HttpMapping {
    /// Reads the `http` of a tool.
    pub(in crate::service) fn from_json(value: &Value, path: &str) -> Result<Self, DefinitionError> {
        let fields = Fields::of(value, path, &MEMBERS)?;
        let method = fields.need("method", read_method)?;
        let template = fields.need("path", parsed(PathTemplate::parse))?;
        let mut headers = fields.read("headers", read_headers)?.unwrap_or_default();
        let typed = take_content_type(&mut headers, &fields.at("headers"))?;
        let stated = fields.read("body", |value, path| word(value, path, &BODIES))?;
        if let (Some(typed), Some(stated)) = (typed, stated)
            && typed != stated
        {
            return Err(refuse(&fields.at("headers"), "has a Content-Type that conflicts with `body`; remove it"));
        }
        let mapping = Self {
            method,
            path: template,
            placements: fields.read("parameters", read_placements)?.unwrap_or_default(),
            headers,
            body: stated.or(typed).unwrap_or(BodyFormat::Json),
            success: fields.read("success", SuccessCodes::from_json)?.unwrap_or_default(),
            default_placement: fields.read("default_in", |value, path| word(value, path, &DEFAULT_PLACES))?,
            fixed_url: FixedUrl::default(),
        };
        mapping.check(path)?;
        Ok(mapping)
    }

    /// Reads an endpoint of a credential's metadata; absent members are taken from `default`.
    pub(crate) fn from_endpoint(value: &Value, path: &str, default: Self) -> Result<Self, DefinitionError> {
        let fields = Fields::of(value, path, &["headers", "method", "param_mapping", "path"])?;
        let mut headers = fields.read("headers", read_headers)?.unwrap_or_default();
        let body = take_content_type(&mut headers, &fields.at("headers"))?.unwrap_or(default.body);
        // The reference's default is `body`, which means the default of the method.
        let place = fields.read("param_mapping", |value, path| word(value, path, &DEFAULT_PLACES))?;
        let mapping = Self {
            method: fields.read("method", read_method)?.unwrap_or(default.method),
            path: fields.read("path", parsed(PathTemplate::parse))?.unwrap_or(default.path),
            headers,
            body,
            default_placement: place.filter(|&place| place != Place::Body),
            fixed_url: FixedUrl::default(),
            placements: default.placements,
            success: default.success,
        };
        mapping.check(path)?;
        Ok(mapping)
    }

    /// Writes the normal form of the `http` of a tool.
    pub(in crate::service) fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("method".to_owned(), json!(self.method.as_str()));
        members.insert("path".to_owned(), json!(self.path.to_string()));
        if !self.placements.is_empty() {
            let placements = self.placements.iter().map(|(name, placement)| (name.clone(), placement.to_json(name)));
            members.insert("parameters".to_owned(), Value::Object(placements.collect()));
        }
        if !self.headers.is_empty() {
            members.insert("headers".to_owned(), json!(self.headers));
        }
        if self.body == BodyFormat::Form {
            members.insert("body".to_owned(), json!("form"));
        }
        if self.success != SuccessCodes::default() {
            members.insert("success".to_owned(), self.success.to_json());
        }
        if let Some(place) = self.default_placement {
            members.insert("default_in".to_owned(), json!(place.as_str()));
        }
        Value::Object(members)
    }

    /// The parameter that fills each placeholder.
    pub(in crate::service) fn path_parameters(&self) -> BTreeMap<&str, Option<&str>> {
        let placeholders = self.path.placeholders();
        let placed = |placeholder: &str| {
            let fills = |placement: &Placement| placement.place == Place::Path && placement.name == placeholder;
            let by_rule = self.placements.iter().find(|(_, placement)| fills(placement));
            by_rule.map(|(parameter, _)| parameter.as_str())
        };
        let filler = |placeholder| match placed(placeholder) {
            None if !self.placements.contains_key(placeholder) => Some(placeholder),
            by_rule => by_rule,
        };
        placeholders.into_iter().map(|placeholder| (placeholder, filler(placeholder))).collect()
    }

    /// Checks the consistency of its parts.
    fn check(&self, path: &str) -> Result<(), DefinitionError> {
        let at = join(path, "parameters");
        let unfilled = self.path_parameters().into_iter().find(|(_, parameter)| parameter.is_none());
        if let Some((placeholder, _)) = unfilled {
            let reason = format!("has {{{placeholder}}}, but the parameter of that name has another place");
            return Err(refuse(&join(path, "path"), reason));
        }
        if self.default_placement == Some(Place::Body) && !self.method.may_have_body() {
            return Err(refuse(
                &join(path, "default_in"),
                format!("is body, but {} has no body", self.method.as_str()),
            ));
        }
        let mut taken = BTreeSet::new();
        for (parameter, Placement { place, name, divider }) in &self.placements {
            let at = join(&at, parameter);
            match place {
                Place::Body if divider.is_some() => {
                    return Err(refuse(&at, "has a divider, but a body has lists; remove it"));
                }
                Place::Body if !self.method.may_have_body() => {
                    return Err(refuse(
                        &at,
                        format!("is placed in the body, but {} has no body", self.method.as_str()),
                    ));
                }
                Place::Path if !self.path.placeholders().contains(name.as_str()) => {
                    return Err(refuse(&at, format!("is placed in the path, which has no {{{name}}}")));
                }
                Place::Header => {
                    header::check_name(name).map_err(|reason| refuse(&at, reason))?;
                    if self.headers.keys().any(|fixed| header::is_same(fixed, name)) {
                        return Err(refuse(&at, "is placed in a header that `headers` sets; remove one of the two"));
                    }
                }
                Place::Body | Place::Path | Place::Query => {}
            }
            let key = if *place == Place::Header { name.to_ascii_lowercase().replace('_', "-") } else { name.clone() };
            if !taken.insert((*place, key)) {
                return Err(refuse(&at, format!("has the same {} name as another parameter", place.as_str())));
            }
        }
        Ok(())
    }
}

impl Placement {
    fn to_json(&self, parameter: &str) -> Value {
        let divider = self.divider.map(Divider::as_str);
        match (self.name == parameter, divider) {
            (true, None) => json!(self.place.as_str()),
            (true, Some(divider)) => json!({"in": self.place.as_str(), "divider": divider}),
            (false, None) => json!({"in": self.place.as_str(), "name": self.name}),
            (false, Some(divider)) => json!({"in": self.place.as_str(), "name": self.name, "divider": divider}),
        }
    }
}

impl SuccessCodes {
    fn from_json(value: &Value, path: &str) -> Result<Self, DefinitionError> {
        let entries = match value {
            Value::Array(entries) => entries.as_slice(),
            one => std::slice::from_ref(one),
        };
        let reason = "must list status codes from 200 to 599: 201, \"2xx\" or \"200-204\"";
        let ranges = entries.iter().map(status_range).collect::<Option<Vec<_>>>();
        let mut ranges =
            ranges.filter(|ranges| (1..=64).contains(&ranges.len())).ok_or_else(|| refuse(path, reason))?;
        ranges.sort_by_key(|range| (*range.start(), *range.end()));
        Ok(Self(ranges.into_iter().fold(Vec::new(), joined)))
    }

    fn to_json(&self) -> Value {
        let range = |range: &RangeInclusive<u16>| {
            if range.start() == range.end() {
                return json!(range.start());
            }
            json!(format!("{}-{}", range.start(), range.end()))
        };
        self.0.iter().map(range).collect()
    }
}

/// Appends a range, merged with the last one if they are adjacent.
fn joined(mut ranges: Vec<RangeInclusive<u16>>, next: RangeInclusive<u16>) -> Vec<RangeInclusive<u16>> {
    match ranges.last_mut() {
        Some(last) if *next.start() <= last.end().saturating_add(1) => {
            *last = *last.start()..=*last.end().max(next.end());
        }
        _ => ranges.push(next),
    }
    ranges
}

fn status_range(value: &Value) -> Option<RangeInclusive<u16>> {
    let range = match value {
        Value::Number(number) => {
            let status = u16::try_from(number.as_u64()?).ok()?;
            status..=status
        }
        Value::String(text) => match (text.strip_suffix("xx"), text.split_once('-')) {
            (Some(class), _) => {
                let first = class.parse::<u16>().ok()?.checked_mul(100)?;
                first..=first.checked_add(99)?
            }
            (None, Some((first, last))) => first.parse().ok()?..=last.parse().ok()?,
            (None, None) => text.parse().ok().map(|status: u16| status..=status)?,
        },
        _ => return None,
    };
    (!range.is_empty() && STATUSES.contains(range.start()) && STATUSES.contains(range.end())).then_some(range)
}

fn read_method(value: &Value, path: &str) -> Result<HttpMethod, DefinitionError> {
    let known = HttpMethod::ALL.map(HttpMethod::as_str).join(", ");
    let method = HttpMethod::parse(text(value, path)?);
    method.ok_or_else(|| refuse(path, format!("must be one of {known}")))
}

fn read_placements(value: &Value, path: &str) -> Result<BTreeMap<String, Placement>, DefinitionError> {
    let members = object(value, path)?;
    if members.len() > PLACEMENT_LIMIT {
        return Err(refuse(path, format!("has more than {PLACEMENT_LIMIT} parameters")));
    }
    members.iter().map(|(name, value)| Ok((name.clone(), read_placement(name, value, &join(path, name))?))).collect()
}

fn read_placement(parameter: &str, value: &Value, path: &str) -> Result<Placement, DefinitionError> {
    let (place, name, divider) = match value {
        Value::Object(_) => {
            let fields = Fields::of(value, path, &["divider", "in", "name"])?;
            let place = fields.need("in", |value, path| word(value, path, &PLACES))?;
            let divider = fields.read("divider", |value, path| word(value, path, &Divider::WORDS))?;
            (place, fields.read("name", text)?.unwrap_or(parameter), divider)
        }
        _ => (word(value, path, &PLACES)?, parameter, None),
    };
    check_line(name, 128).map_err(|error| refuse(path, format!("has a name that {error}")))?;
    Ok(Placement { place, name: name.to_owned(), divider })
}

fn read_headers(value: &Value, path: &str) -> Result<BTreeMap<String, String>, DefinitionError> {
    let members = object(value, path)?;
    if members.len() > HEADER_LIMIT {
        return Err(refuse(path, format!("sets more than {HEADER_LIMIT} headers")));
    }
    let mut headers = BTreeMap::new();
    for (name, value) in members {
        let path = join(path, name);
        let value = text(value, &path)?;
        if !is_content_type(name) {
            header::check_name(name).map_err(|reason| refuse(&path, reason))?;
        }
        header::check_value(value).map_err(|reason| refuse(&path, reason))?;
        if headers.keys().any(|other: &String| header::is_same(other, name)) {
            return Err(refuse(&path, "is a duplicate"));
        }
        headers.insert(name.clone(), value.trim().to_owned());
    }
    Ok(headers)
}

/// A Content-Type among the headers sets the format of the body, and is written with it.
fn take_content_type(
    headers: &mut BTreeMap<String, String>,
    path: &str,
) -> Result<Option<BodyFormat>, DefinitionError> {
    let Some(name) = headers.keys().find(|name| is_content_type(name)).cloned() else { return Ok(None) };
    let value = headers.remove(&name).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    let format = [BodyFormat::Form, BodyFormat::Json]
        .into_iter()
        .find(|format| format.content_type().eq_ignore_ascii_case(essence));
    let reason = "must be application/json or application/x-www-form-urlencoded, or absent";
    format.map(Some).ok_or_else(|| refuse(&join(path, &name), reason))
}

fn is_content_type(name: &str) -> bool {
    header::is_same(name, "content-type")
}
