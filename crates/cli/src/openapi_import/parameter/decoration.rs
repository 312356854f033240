//! The schema of a parameter, with the description and examples of the parameter.

use serde_json::{Map, Value, json};
use toolgate_model::service::Divider;

use super::Given;
use super::shape::Shape;
use crate::openapi_import::Import;
use crate::openapi_import::finding::Kind;
use crate::openapi_import::inputs::Inputs;
use crate::openapi_import::schema::Direction;

impl<'a> Import<'a> {
    /// The schema of a single value, and the separator of a list. Objects and values of a media type become text.
    pub(super) fn value_schema(
        &mut self,
        given: &Given<'a>,
        shape: &Shape<'a>,
        divider: Divider,
        inputs: &mut Inputs,
    ) -> (Value, Option<Divider>) {
        let note = match given.part.get("content").and_then(|content| content.members().into_iter().next()) {
            Some((media_type, _)) => format!("Passed as text in {media_type}."),
            None if !shape.objects.is_empty() => format!("Several values, divided by {:?}.", divider.as_str()),
            None => return (self.decorated_schema(given, inputs), shape.has_list.then_some(divider)),
        };
        self.findings.add(Kind::ParameterAsText, &given.part.pointer, note.as_str());
        let mut schema = self.decorated(given, json!({"type": "string"}));
        let said = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let description = format!("{said} {note}").trim().to_owned();
        if let Value::Object(members) = &mut schema {
            members.insert("description".to_owned(), json!(description));
            if members.remove("examples").is_some() {
                self.findings.add(Kind::Example, &given.part.pointer, "an example in another form");
            }
        }
        (schema, None)
    }

    pub(super) fn decorated_schema(&mut self, given: &Given<'a>, inputs: &mut Inputs) -> Value {
        let schema = match &given.schema {
            Some(schema) => self.schema(schema, Direction::Request, &mut inputs.references),
            None => Value::Object(Map::new()),
        };
        self.decorated(given, schema)
    }

    /// A schema with what the parameter says about itself.
    pub(super) fn decorated(&mut self, given: &Given<'a>, schema: Value) -> Value {
        let mut schema = match schema {
            Value::Object(members) => members,
            // True is the schema without keywords; false is kept as it is, since nothing fits it.
            Value::Bool(true) => Map::new(),
            other => return other,
        };
        if let Some(description) = given.part.text("description").filter(|text| !text.is_empty()) {
            schema.insert("description".to_owned(), json!(description));
        }
        if given.part.is("deprecated") {
            schema.insert("deprecated".to_owned(), json!(true));
        }
        let mut examples: Vec<Value> =
            given.part.get("example").map(|example| example.value.clone()).into_iter().collect();
        for (_, example) in given.part.get("examples").map(|examples| examples.members()).unwrap_or_default() {
            match self.resolve(example.clone()).ok().and_then(|example| example.get("value")) {
                Some(value) => examples.push(value.value.clone()),
                None => self.findings.add(Kind::Example, &example.pointer, "an example without a value"),
            }
        }
        if !examples.is_empty() {
            schema.insert("examples".to_owned(), Value::Array(examples));
        }
        Value::Object(schema)
    }
}
