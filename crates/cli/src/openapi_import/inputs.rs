//! What a tool takes: parameters from the path, the query, headers and the body share one set of names, and each knows
//! where it goes.

use serde_json::{Map, Value, json};
use toolgate_model::service::Divider;

use super::Import;
use super::finding::Kind;
use super::schema::{Direction, References};

/// The most that the parameters of one tool may refer to, in bytes of JSON.
const PARAMETERS_LIMIT: usize = 1024 * 1024;

/// Where a parameter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goes {
    /// Into a placeholder of the path.
    Path,
    /// Into the query.
    Query,
    /// Into a header.
    Header,
    /// Into the body.
    Body,
}

/// One parameter.
pub(super) struct Input<'p> {
    /// The name that the caller should see.
    pub(super) name: &'p str,
    /// Its name in the request.
    pub(super) wire_name: &'p str,
    /// The part of the request.
    pub(super) goes: Goes,
    /// What divides the items where a list goes there as one text.
    pub(super) divider: Option<Divider>,
    /// What it must look like.
    pub(super) schema: Value,
    /// Whether it must be given.
    pub(super) required: bool,
    /// Where the document has it.
    pub(super) pointer: &'p str,
}

/// All parameters of one tool.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    properties: Map<String, Value>,
    required: Vec<Value>,
    placements: Map<String, Value>,
    /// What parameters without a name of their own must look like; without it there are none.
    pub(super) rest: Option<Value>,
    /// Lists of names of which one must be there in full.
    pub(super) alternatives: Vec<Vec<Vec<String>>>,
    /// What the schemas refer to.
    pub(super) references: References,
    /// Whether the method puts parameters into the body by itself.
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
    /// Adds a parameter, under another name where its own is taken. Answers its name.
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
            // An unplaced name with brackets would be refused in a form.
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

    /// The schema of all parameters.
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
            format!("its parameters have {size} bytes with all they refer to, and {PARAMETERS_LIMIT} is the limit")
        })?;
        if !definitions.is_empty() {
            schema.insert("$defs".to_owned(), Value::Object(definitions));
        }
        Ok(Value::Object(schema))
    }
}

impl Inputs {
    /// Whether there is a parameter of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.properties.contains_key(name)
    }

    /// Keeps a name out, unless a parameter has it already: that one then goes where it goes.
    pub(super) fn forbid(&mut self, name: String) {
        self.properties.entry(name).or_insert(Value::Bool(false));
    }

    /// Where the parameters go that do not go there by themselves.
    pub(super) fn take_placements(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.placements)
    }
}
