//! Parameters of the path, the query and headers. Scalars and lists are used as they are; other values are expanded, or
//! passed as text.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolgate_model::service::Divider;
use toolgate_model::text::check_line;

use super::Import;
use super::finding::Kind;
use super::inputs::{Goes, Input, Inputs};
use super::reference::{Part, below};
use super::schema::Direction;

use self::shape::Shape;

mod decoration;
mod shape;

const MEMBERS: [&str; 13] = [
    "allowEmptyValue",
    "allowReserved",
    "content",
    "deprecated",
    "description",
    "example",
    "examples",
    "explode",
    "in",
    "name",
    "required",
    "schema",
    "style",
];

/// The longest name of a parameter in a request, in bytes.
const NAME_LIMIT: usize = 128;

/// The common part of a parameter.
struct Given<'a> {
    part: Part<'a>,
    name: &'a str,
    required: bool,
    style: &'a str,
    explode: bool,
    schema: Option<Part<'a>>,
}

impl<'a> Import<'a> {
    /// Reads the parameters of an operation, and those of its path that it does not say again.
    pub(super) fn parameters(
        &mut self,
        pointer: &str,
        lists: &[Option<Part<'a>>],
        placeholders: &BTreeSet<String>,
        inputs: &mut Inputs,
    ) -> Result<(), String> {
        let mut found: Vec<(&'a str, &'a str, Part<'a>)> = Vec::new();
        // Those of the operation come first, so that they count before those of the path.
        for list in lists.iter().flatten() {
            let outer = found.len();
            if !list.value.is_array() {
                self.findings.add(Kind::Parameter, &list.pointer, "`parameters` is not a list");
            }
            for part in list.elements() {
                let pointer = part.pointer.clone();
                let part = match self.resolve(part) {
                    Ok(part) => part,
                    Err(reason) => {
                        self.findings.add(Kind::Parameter, &pointer, reason);
                        continue;
                    }
                };
                let Some((name, place)) = part.text("name").zip(part.text("in")) else {
                    self.findings.add(Kind::Parameter, &pointer, "it has no `name` or no `in`");
                    continue;
                };
                match found.iter().position(|(other, at, _)| *other == name && *at == place) {
                    None => found.push((name, place, part)),
                    Some(known) if known < outer => {}
                    Some(_) => self.findings.add(Kind::Parameter, &pointer, "it is a duplicate"),
                }
            }
        }
        let order = ["path", "query", "header", "cookie"];
        found.sort_by_key(|(_, place, _)| order.iter().position(|known| known == place));
        let (in_path, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, place, _)| *place == "path");
        for (name, place, part) in in_path {
            self.parameter(name, place, part, placeholders, inputs)?;
        }
        // Before the others, which must not take these names.
        for placeholder in placeholders.iter().filter(|placeholder| !inputs.has(placeholder)).collect::<Vec<_>>() {
            self.findings.add(Kind::ParameterAdded, pointer, format!("{{{placeholder}}} of the path"));
            let schema = json!({"type": "string"});
            let (wire_name, goes, divider) = (placeholder.as_str(), Goes::Path, None);
            let input = Input { name: placeholder, wire_name, goes, divider, schema, required: true, pointer };
            self.add_input(inputs, input);
        }
        for (name, place, part) in others {
            self.parameter(name, place, part, placeholders, inputs)?;
        }
        Ok(())
    }

    fn parameter(
        &mut self,
        name: &'a str,
        place: &'a str,
        part: Part<'a>,
        placeholders: &BTreeSet<String>,
        inputs: &mut Inputs,
    ) -> Result<(), String> {
        self.known_members(&part, &MEMBERS);
        for option in ["allowEmptyValue", "allowReserved"] {
            if part.is(option) {
                self.findings.add(Kind::ParameterOption, &below(&part.pointer, option), option);
            }
        }
        if self.is_credential_place(place, name) {
            self.findings.add(Kind::CredentialParameter, &part.pointer, format!("{place} {name}"));
            return Ok(());
        }
        let style = part.text("style").unwrap_or(if matches!(place, "query" | "cookie") { "form" } else { "simple" });
        let explode = part.get("explode").and_then(|explode| explode.value.as_bool()).unwrap_or(style == "form");
        let given = Given { name, required: part.is("required"), style, explode, schema: part.get("schema"), part };
        if check_line(name, NAME_LIMIT).is_err() {
            return self.leave_out(&given, "its name cannot be sent");
        }
        match place {
            "path" => self.path_parameter(&given, placeholders, inputs),
            "query" => self.query_parameter(&given, inputs),
            "header" => self.header_parameter(&given, inputs),
            other => self.leave_out(&given, &format!("{other} parameters are not supported")),
        }
    }

    fn path_parameter(
        &mut self,
        given: &Given<'a>,
        placeholders: &BTreeSet<String>,
        inputs: &mut Inputs,
    ) -> Result<(), String> {
        let placeholder = super::path::placeholder(given.name);
        if !placeholders.contains(&placeholder) {
            self.findings.add(Kind::Parameter, &given.part.pointer, format!("the path has no {{{}}}", given.name));
            return Ok(());
        }
        if given.style != "simple" {
            return Err(format!("the path parameter `{}` has the unsupported style {}", given.name, given.style));
        }
        let shape = self.shape(given.schema.as_ref());
        if !shape.objects.is_empty() {
            return Err(format!("the path parameter `{}` is an object", given.name));
        }
        let (schema, divider) = self.value_schema(given, &shape, Divider::Comma, inputs);
        let input = Input {
            name: &placeholder,
            wire_name: &placeholder,
            goes: Goes::Path,
            divider,
            schema,
            required: true,
            pointer: &given.part.pointer,
        };
        self.add_input(inputs, input);
        Ok(())
    }

    fn header_parameter(&mut self, given: &Given<'a>, inputs: &mut Inputs) -> Result<(), String> {
        // OpenAPI ignores the first two, and the others are as the request needs them.
        let automatic = ["accept", "content-type", "accept-encoding", "content-length", "host"];
        if automatic.iter().any(|name| given.name.eq_ignore_ascii_case(name)) {
            let note = format!("the header {} is set automatically", given.name);
            self.findings.add(Kind::Parameter, &given.part.pointer, note);
            return Ok(());
        }
        if !super::check::is_header(given.name) {
            return self.leave_out(given, &format!("tools cannot set the header {}", given.name));
        }
        let shape = self.shape(given.schema.as_ref());
        let value = self.value_schema(given, &shape, Divider::Comma, inputs);
        self.plain_input(given, Goes::Header, given.name, value, inputs);
        Ok(())
    }

    fn query_parameter(&mut self, given: &Given<'a>, inputs: &mut Inputs) -> Result<(), String> {
        let shape = self.shape(given.schema.as_ref());
        let divider = match given.style {
            "form" | "deepObject" => Divider::Comma,
            "spaceDelimited" => Divider::Space,
            "pipeDelimited" => Divider::Pipe,
            other => return self.leave_out(given, &format!("the style {other} is not supported")),
        };
        let is_deep = given.style == "deepObject";
        if given.schema.is_none() || !(is_deep || given.explode) {
            let value = self.value_schema(given, &shape, divider, inputs);
            self.plain_input(given, Goes::Query, given.name, value, inputs);
            return Ok(());
        }
        if shape.objects.is_empty() {
            let schema = self.decorated_schema(given, inputs);
            // What deepObject means for lists is not said anywhere; services that use it read `a[]=1&a[]=2`.
            let listed = is_deep && shape.has_list;
            let wire_name = if listed { format!("{}[]", given.name) } else { given.name.to_owned() };
            if listed {
                self.findings.add(Kind::ParameterExpanded, &given.part.pointer, format!("a list as {wire_name}"));
            }
            self.plain_input(given, Goes::Query, &wire_name, (schema, None), inputs);
            return Ok(());
        }
        self.expand(given, &shape, is_deep, inputs)
    }

    /// Makes a parameter of each member of an object, and of what else the value may be.
    fn expand(
        &mut self,
        given: &Given<'a>,
        shape: &Shape<'a>,
        is_deep: bool,
        inputs: &mut Inputs,
    ) -> Result<(), String> {
        let mut members: Vec<(&'a str, Part<'a>, bool)> = Vec::new();
        for object in &shape.objects {
            let needed = object.value.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let only = given.required && shape.objects.len() == 1 && shape.others.is_empty();
            for (name, part) in object.get("properties").map(|properties| properties.members()).unwrap_or_default() {
                members.push((name, part, only && needed.iter().any(|needed| needed == name)));
            }
            let more = object.get("additionalProperties").is_some_and(|more| more.value != &Value::Bool(false));
            if more {
                let pointer = below(&object.pointer, "additionalProperties");
                self.findings.add(Kind::ParameterOption, &pointer, "members that are not named");
            }
        }
        if members.is_empty() && shape.others.is_empty() {
            return self.leave_out(given, "it is an object without named members");
        }
        self.findings.add(Kind::ParameterExpanded, &given.part.pointer, format!("the members of {}", given.name));
        if shape.others.is_empty() && given.part.get("description").is_some() {
            let pointer = below(&given.part.pointer, "description");
            self.findings.add(Kind::ParameterOption, &pointer, "description");
        }
        let mut done = BTreeSet::new();
        for (member, part, required) in members {
            if !done.insert(member) {
                self.findings.add(Kind::Parameter, &part.pointer, "another alternative also has this member");
                continue;
            }
            if !self.shape(Some(&part)).objects.is_empty() {
                self.findings.add(Kind::Parameter, &part.pointer, "a nested object in the query");
                continue;
            }
            let schema = self.schema(&part, Direction::Request, &mut inputs.references);
            let (name, wire_name) = match is_deep {
                true => (format!("{}_{member}", given.name), format!("{}[{member}]", given.name)),
                false => (member.to_owned(), member.to_owned()),
            };
            let pointer = &part.pointer;
            if check_line(&wire_name, NAME_LIMIT).is_err() {
                self.findings.add(Kind::Parameter, pointer, "its name cannot be sent");
                continue;
            }
            let (name, wire_name, goes, divider) = (name.as_str(), wire_name.as_str(), Goes::Query, None);
            let input = Input { name, wire_name, goes, divider, schema, required, pointer };
            self.add_input(inputs, input);
        }
        if !shape.others.is_empty() {
            let others: Vec<Value> =
                shape.others.iter().map(|part| self.schema(part, Direction::Request, &mut inputs.references)).collect();
            let schema = match <[Value; 1]>::try_from(others) {
                Ok([one]) => one,
                Err(others) => json!({"anyOf": others}),
            };
            let schema = self.decorated(given, schema);
            let pointer = &given.part.pointer;
            let (name, goes, divider) = (given.name, Goes::Query, None);
            self.add_input(inputs, Input { name, wire_name: name, goes, divider, schema, required: false, pointer });
        }
        Ok(())
    }

    fn plain_input(
        &mut self,
        given: &Given<'a>,
        goes: Goes,
        wire_name: &str,
        (schema, divider): (Value, Option<Divider>),
        inputs: &mut Inputs,
    ) {
        let (name, required, pointer) = (given.name, given.required, &given.part.pointer);
        self.add_input(inputs, Input { name, wire_name, goes, divider, schema, required, pointer });
    }

    /// Omits a parameter. Without a required parameter, the operation cannot be called.
    fn leave_out(&mut self, given: &Given<'a>, reason: &str) -> Result<(), String> {
        self.findings.add(Kind::Parameter, &given.part.pointer, reason);
        if given.required { Err(format!("it needs `{}`, and {reason}", given.name)) } else { Ok(()) }
    }
}
