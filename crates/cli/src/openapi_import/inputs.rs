//! The parameters of a tool: path, query, headers and body share one set of names, and each parameter has a placement.

use serde_json::{Map, Value, json};
use toolgate_model::service::Divider;

use super::Import;
use super::finding::Kind;
use super::schema::{Direction, References};

/// The limit for the parameters of a tool with their references, in bytes of JSON.
const PARAMETERS_LIMIT: usize = 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goes {
    Path,
    Query,
    Header,
    Body,
}

pub(super) struct Input<'p> {
    pub(super) name: &'p str,
    pub(super) wire_name: &'p str,
    pub(super) goes: Goes,
    /// The separator of a list that is sent as one text.
    pub(super) divider: Option<Divider>,
    pub(super) schema: Value,
    pub(super) required: bool,
    /// The pointer in the document.
    pub(super) pointer: &'p str,
}

#[derive(Debug, Default)]
pub(super) struct Inputs {
    properties: Map<String, Value>,
    required: Vec<Value>,
    placements: Map<String, Value>,
    /// The schema of parameters that are not named; `None` if there are none.
    pub(super) rest: Option<Value>,
    /// Alternatives of required names.
    pub(super) alternatives: Vec<Vec<Vec<String>>>,
    pub(super) references: References,
    pub(super) method_has_body: bool,
}

impl Goes {
    fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Body => "body",
        }
    }
}

impl Import<'_> {
    /// Adds a parameter, under another name if its own is used, and returns the name.
    pub(super) fn add_input(&mut self, inputs: &mut Inputs, input: Input<'_>) -> String {
        let mut name = input.name.to_owned();
        for number in 1.. {
            if !inputs.properties.contains_key(&name) {
                break;
            }
            let count = if number == 1 { String::new() } else { format!("_{number}") };
            name = format!("{}_{}{count}", input.goes.as_str(), input.name);
        }
        if name != input.name {
            self.findings.add(Kind::ParameterRenamed, input.pointer, format!("{} is {name}", input.name));
        }
        let by_itself = match input.goes {
            Goes::Path => true,
            // A name with brackets would be refused in a form.
            Goes::Body => inputs.method_has_body && !name.contains(['[', ']']),
            Goes::Query | Goes::Header => false,
        };
        let mut placement = Map::from_iter([("in".to_owned(), json!(input.goes.as_str()))]);
        if name != input.wire_name {
            placement.insert("name".to_owned(), json!(input.wire_name));
        }
        if let Some(divider) = input.divider {
            placement.insert("divider".to_owned(), json!(divider.as_str()));
        }
        if placement.len() > 1 {
            inputs.placements.insert(name.clone(), Value::Object(placement));
        } else if !by_itself {
            inputs.placements.insert(name.clone(), json!(input.goes.as_str()));
        }
        if input.required {
            inputs.required.push(json!(name));
        }
        inputs.properties.insert(name.clone(), input.schema);
        name
    }

    pub(super) fn input_schema(&mut self, inputs: &mut Inputs) -> Result<Value, String> {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(std::mem::take(&mut inputs.properties)));
        if !inputs.required.is_empty() {
            schema.insert("required".to_owned(), Value::Array(std::mem::take(&mut inputs.required)));
        }
        let required = |names: &Vec<String>| json!({"required": names});
        let choice = |names: &Vec<Vec<String>>| json!({"anyOf": names.iter().map(required).collect::<Vec<_>>()});
        match inputs.alternatives.as_slice() {
            [] => {}
            [one] => {
                schema.insert("anyOf".to_owned(), one.iter().map(required).collect());
            }
            several => {
                schema.insert("allOf".to_owned(), several.iter().map(choice).collect());
            }
        }
        schema.insert("additionalProperties".to_owned(), inputs.rest.clone().unwrap_or(Value::Bool(false)));
        let references = std::mem::take(&mut inputs.references);
        let definitions = self.definitions(Direction::Request, references, PARAMETERS_LIMIT);
        let definitions = definitions.map_err(|size| {
            format!("its parameters have {size} bytes with their references; the limit is {PARAMETERS_LIMIT}")
        })?;
        if !definitions.is_empty() {
            schema.insert("$defs".to_owned(), Value::Object(definitions));
        }
        Ok(Value::Object(schema))
    }
}

impl Inputs {
    pub(super) fn has(&self, name: &str) -> bool {
        self.properties.contains_key(name)
    }

    /// Excludes a name, unless a parameter has it.
    pub(super) fn forbid(&mut self, name: String) {
        self.properties.entry(name).or_insert(Value::Bool(false));
    }

    /// The placements that are not implied by the method.
    pub(super) fn take_placements(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.placements)
    }
}
