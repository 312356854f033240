//! Rendering: parameters chosen by an agent become a request that stays within its template. Values are encoded for
//! their place, what cannot be encoded safely is refused, and the finished URL is parsed again.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serializer;
use serde_json::{Map, Value};
use url::{Position, Url, form_urlencoded};

use super::render_error::{RenderError, URL_LIMIT};
use super::segment::{encode, stays_in_segment};
use super::template::Part;
use super::{BodyFormat, Divider, HttpMapping, Place, RenderedBody, RenderedRequest, header};
use crate::connection::BaseUrl;

/// A parameter: its name and its value.
type Given<'a> = (&'a str, Cow<'a, Value>);

/// The parameters by place, each under its name there.
#[derive(Default)]
struct Sorted<'a> {
    path: BTreeMap<&'a str, Given<'a>>,
    query: BTreeMap<&'a str, Given<'a>>,
    headers: BTreeMap<&'a str, Given<'a>>,
    body: BTreeMap<&'a str, Given<'a>>,
}

impl HttpMapping {
    /// The request for these parameters, without the credential. A `null` is omitted from query, headers and form.
    pub fn render(&self, base: &BaseUrl, parameters: &Map<String, Value>) -> Result<RenderedRequest, RenderError> {
        let sorted = self.sort(parameters)?;
        let url = match sorted.path.is_empty() && sorted.query.is_empty() {
            true => self.fixed_url.get(base, || self.render_url(base, &sorted))?,
            false => self.render_url(base, &sorted)?,
        };
        let headers = self.render_headers(&sorted.headers)?;
        let body = self.render_body(&sorted.body)?;
        Ok(RenderedRequest { method: self.method, url, headers, body })
    }

    fn render_url(&self, base: &BaseUrl, sorted: &Sorted<'_>) -> Result<Url, RenderError> {
        let path = self.render_path(base, &sorted.path)?;
        let query = render_query(&sorted.query)?;
        let segments = segment_count(base.path()) + self.path.segments().len();
        assemble(base, &path, &query, segments)
    }

    fn sort<'a>(&'a self, parameters: &'a Map<String, Value>) -> Result<Sorted<'a>, RenderError> {
        let placeholders = self.path.placeholders();
        let mut sorted = Sorted::default();
        for (parameter, value) in parameters {
            let (place, name) = self.place_of(parameter, &placeholders)?;
            // It would take the place of the other parameter without its limits.
            let is_reserved = !self.placements.contains_key(parameter) && self.is_target(place, name);
            let names = match place {
                Place::Body => &mut sorted.body,
                Place::Header => &mut sorted.headers,
                Place::Path => &mut sorted.path,
                Place::Query => &mut sorted.query,
            };
            let value = self.in_one_text(parameter, value)?;
            if is_reserved || names.insert(name, (parameter, value)).is_some() {
                return Err(RenderError::Reserved { parameter: shown(parameter) });
            }
        }
        Ok(sorted)
    }

    fn place_of<'a>(
        &'a self,
        parameter: &'a str,
        placeholders: &BTreeSet<&str>,
    ) -> Result<(Place, &'a str), RenderError> {
        if let Some(placement) = self.placements.get(parameter) {
            return Ok((placement.place, &placement.name));
        }
        if placeholders.contains(parameter) {
            return Ok((Place::Path, parameter));
        }
        match self.default_placement {
            Some(place @ (Place::Body | Place::Query)) => Ok((place, parameter)),
            // INVARIANT: only a definition names headers; an agent's own names never become one.
            Some(Place::Path | Place::Header) => Err(RenderError::NoPlace { parameter: shown(parameter) }),
            None if self.method.has_body() => Ok((Place::Body, parameter)),
            None => Ok((Place::Query, parameter)),
        }
    }

    /// The value as it is sent: a list with a divider in its mapping becomes one string. An item that contains the
    /// divider would reach the service as two unchecked ones.
    fn in_one_text<'a>(&self, parameter: &str, value: &'a Value) -> Result<Cow<'a, Value>, RenderError> {
        let divider = self.placements.get(parameter).and_then(|placement| placement.divider);
        let Some(divider) = divider.map(Divider::as_str) else { return Ok(Cow::Borrowed(value)) };
        let text_of = |item: &Value| match scalar(item) {
            Some(text) if text.contains(divider) => Err(RenderError::Divided { parameter: shown(parameter), divider }),
            Some(text) => Ok(text),
            None => Err(RenderError::Item { parameter: shown(parameter) }),
        };
        match value {
            Value::Null => Ok(Cow::Borrowed(value)),
            // An empty list has no string form.
            Value::Array(items) if items.is_empty() => Ok(Cow::Owned(Value::Null)),
            Value::Array(items) => {
                let texts = items.iter().map(text_of).collect::<Result<Vec<_>, _>>()?;
                Ok(Cow::Owned(Value::String(texts.join(divider))))
            }
            one => text_of(one).map(|_| Cow::Borrowed(one)),
        }
    }

    /// Whether a parameter is mapped to this name.
    fn is_target(&self, place: Place, name: &str) -> bool {
        self.placements.values().any(|placement| placement.place == place && placement.name == name)
    }

    fn render_path(&self, base: &BaseUrl, values: &BTreeMap<&str, Given<'_>>) -> Result<String, RenderError> {
        let mut path = base.path().to_owned();
        for segment in self.path.segments() {
            let mut plain = String::new();
            let mut last_parameter = None;
            for part in segment {
                match part {
                    Part::Literal(text) => plain.push_str(text),
                    Part::Placeholder(name) => {
                        let (parameter, text) = path_value(name, values)?;
                        plain.push_str(&text);
                        last_parameter = Some(parameter);
                    }
                }
            }
            path.push('/');
            if segment.is_empty() {
                continue;
            }
            if !stays_in_segment(&plain) {
                return Err(match last_parameter {
                    Some(parameter) => RenderError::Segment { parameter: shown(parameter) },
                    None => RenderError::Strayed,
                });
            }
            encode(&plain, &mut path);
        }
        Ok(path)
    }

    fn render_headers(&self, values: &BTreeMap<&str, Given<'_>>) -> Result<Vec<(String, String)>, RenderError> {
        let fixed = self.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        let mut headers: Vec<(String, String)> = fixed.collect();
        for (name, (parameter, value)) in values {
            if value.is_null() {
                continue;
            }
            let text =
                scalar(value).ok_or_else(|| shape(parameter, Place::Header, "a string, a number or a boolean"))?;
            header::check_value(&text)
                .map_err(|reason| RenderError::HeaderValue { parameter: shown(parameter), reason })?;
            headers.push(((*name).to_owned(), text));
        }
        Ok(headers)
    }

    fn render_body(&self, values: &BTreeMap<&str, Given<'_>>) -> Result<Option<RenderedBody>, RenderError> {
        if values.is_empty() && !self.method.has_body() {
            return Ok(None);
        }
        let bytes = match self.body {
            BodyFormat::Json => {
                let mut bytes = Vec::with_capacity(256);
                let members = values.iter().map(|(name, (_, value))| (*name, &**value));
                match serde_json::Serializer::new(&mut bytes).collect_map(members) {
                    Ok(()) => bytes,
                    // INVARIANT: names are strings and values were read from JSON, so they can be serialized.
                    Err(_) => Vec::new(),
                }
            }
            BodyFormat::Form => {
                let mut form = form_urlencoded::Serializer::new(String::new());
                for (name, (parameter, value)) in values {
                    // A name that the definition chose may have brackets; one that the agent chose may not, because
                    // `metadata[plan]` would reach the service as the member that a rule on `metadata.plan` is about.
                    if !self.placements.contains_key(*parameter) {
                        refuse_brackets(name, parameter)?;
                    }
                    append_form(&mut form, name, value, parameter)?;
                }
                form.finish().into_bytes()
            }
        };
        Ok(Some(RenderedBody { content_type: self.body.content_type().into(), bytes }))
    }
}

fn path_value<'a>(name: &'a str, values: &BTreeMap<&str, Given<'a>>) -> Result<(&'a str, String), RenderError> {
    let Some((parameter, value)) = values.get(name).filter(|(_, value)| !value.is_null()) else {
        return Err(RenderError::Missing { parameter: shown(name) });
    };
    let text = scalar(value).ok_or_else(|| shape(parameter, Place::Path, "a string, a number or a boolean"))?;
    if text.is_empty() {
        return Err(RenderError::Segment { parameter: shown(parameter) });
    }
    Ok((parameter, text))
}

fn render_query(values: &BTreeMap<&str, Given<'_>>) -> Result<String, RenderError> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, (parameter, value)) in values {
        let refuse = || shape(parameter, Place::Query, "strings, numbers, booleans and lists of them");
        match &**value {
            Value::Null => {}
            Value::Array(items) => {
                for item in items {
                    query.append_pair(name, &scalar(item).ok_or_else(refuse)?);
                }
            }
            _ => {
                query.append_pair(name, &scalar(value).ok_or_else(refuse)?);
            }
        }
    }
    Ok(query.finish())
}

/// Joins the rendered parts, parses the result as a service would, and compares.
fn assemble(base: &BaseUrl, path: &str, query: &str, segments: usize) -> Result<Url, RenderError> {
    let origin = base.as_url();
    let mut url = String::with_capacity(origin.as_str().len() + path.len() + query.len() + 1);
    url.push_str(&origin[..Position::BeforePath]);
    url.push_str(path);
    if !query.is_empty() {
        url.push('?');
        url.push_str(query);
    }
    if url.len() > URL_LIMIT {
        return Err(RenderError::TooLong);
    }
    let read = Url::parse(&url).map_err(|_| RenderError::Strayed)?;
    let stays = read.scheme() == origin.scheme()
        && read.host() == origin.host()
        && read.port_or_known_default() == origin.port_or_known_default()
        && read.username().is_empty()
        && read.password().is_none()
        && read.fragment().is_none()
        && read.path() == path
        && read.query().unwrap_or_default() == query
        && segment_count(read.path()) == segments;
    if stays { Ok(read) } else { Err(RenderError::Strayed) }
}

/// Every segment begins with a slash; the path of a base without one has none.
fn segment_count(path: &str) -> usize {
    path.bytes().filter(|&byte| byte == b'/').count()
}

fn append_form(
    form: &mut form_urlencoded::Serializer<'_, String>,
    name: &str,
    value: &Value,
    parameter: &str,
) -> Result<(), RenderError> {
    match value {
        Value::Object(members) => members.iter().try_for_each(|(member, value)| {
            refuse_brackets(member, parameter)?;
            append_form(form, &format!("{name}[{member}]"), value, parameter)
        }),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(position, item)| append_form(form, &format!("{name}[{position}]"), item, parameter)),
        _ => {
            if let Some(text) = scalar(value) {
                form.append_pair(name, &text);
            }
            Ok(())
        }
    }
}

fn refuse_brackets(name: &str, parameter: &str) -> Result<(), RenderError> {
    if name.contains(['[', ']']) {
        return Err(RenderError::Brackets { parameter: shown(parameter) });
    }
    Ok(())
}

/// The text of a scalar value.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn shape(parameter: &str, place: Place, takes: &'static str) -> RenderError {
    RenderError::Shape { parameter: shown(parameter), place: place.as_str(), takes }
}

/// A name that an agent chose, short enough for an error.
fn shown(parameter: &str) -> String {
    parameter.chars().take(64).collect()
}
