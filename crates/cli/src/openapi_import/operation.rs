//! Converts an operation to a tool, or to a finding with the reason.

use serde_json::{Map, Value, json};
use toolgate_model::service::{HttpMethod, ToolDefinition, ToolName};

use super::body::BodyKind;
use super::finding::Kind;
use super::inputs::Inputs;
use super::reference::{Part, below};
use super::response::ResponseSummary;
use super::text::{description, line, slug};
use super::{Import, check, path};

/// The methods that a path item may have.
const METHODS: [&str; 8] = ["delete", "get", "head", "options", "patch", "post", "put", "trace"];
const MEMBERS: [&str; 12] = [
    "callbacks",
    "deprecated",
    "description",
    "externalDocs",
    "operationId",
    "parameters",
    "requestBody",
    "responses",
    "security",
    "servers",
    "summary",
    "tags",
];
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// An operation of the document.
pub(super) struct Operation<'a> {
    pub(super) path: &'a str,
    /// Its method, in small letters.
    pub(super) method: &'a str,
    /// The operation itself.
    pub(super) part: Part<'a>,
    /// The path item around it.
    item: Part<'a>,
}

impl<'a> Operation<'a> {
    /// What says where the operation is: itself, else its path.
    pub(super) fn server_holder(&self) -> &Part<'a> {
        if self.part.get("servers").is_some() { &self.part } else { &self.item }
    }
}

impl<'a> Import<'a> {
    /// All operations of the document.
    pub(super) fn operations(&mut self, root: &Part<'a>) -> Vec<Operation<'a>> {
        let mut operations = Vec::new();
        for (path, part) in root.get("paths").map(|paths| paths.members()).unwrap_or_default() {
            if path.starts_with("x-") {
                self.findings.add(Kind::Extension, &part.pointer, path);
                continue;
            }
            let pointer = part.pointer.clone();
            let item = match self.resolve(part) {
                Ok(item) if item.value.is_object() => item,
                Ok(_) => {
                    self.findings.add(Kind::PathItem, &pointer, "it is not an object");
                    continue;
                }
                Err(reason) => {
                    self.findings.add(Kind::PathItem, &pointer, reason);
                    continue;
                }
            };
            self.known_members(&item, &[&METHODS[..], &["description", "parameters", "servers", "summary"]].concat());
            for name in ["description", "summary"] {
                if let Some(text) = item.get(name) {
                    self.findings.add(Kind::Information, &text.pointer, name);
                }
            }
            for (method, operation) in item.members() {
                if METHODS.contains(&method) {
                    operations.push(Operation { path, method, part: operation, item: item.clone() });
                }
            }
        }
        operations
    }

    /// The tool of an operation.
    pub(super) fn tool(&mut self, operation: &Operation<'a>, name: &ToolName) -> Result<ToolDefinition, String> {
        let part = &operation.part;
        if !part.value.is_object() {
            return Err("it is not an object".to_owned());
        }
        let unknown = || format!("the method {} is not supported", operation.method.to_uppercase());
        let method = HttpMethod::parse(operation.method).ok_or_else(unknown)?;
        self.known_members(part, &MEMBERS);
        self.check_server(operation.server_holder())?;
        let (template, placeholders) = path::template(operation.path)?;
        let has_body = matches!(method, HttpMethod::Patch | HttpMethod::Post | HttpMethod::Put);
        let mut inputs = Inputs::default();
        inputs.method_has_body = has_body;
        let lists = [part.get("parameters"), operation.item.get("parameters")];
        self.parameters(&part.pointer, &lists, &placeholders, &mut inputs)?;
        let allowed = has_body || method == HttpMethod::Delete;
        let body = self.request_body(part.get("requestBody"), allowed, &mut inputs)?;
        let summary = self.summary(part.get("responses"));
        let is_read = matches!(method, HttpMethod::Get | HttpMethod::Head);

        let mut http = Map::new();
        http.insert("method".to_owned(), json!(method.as_str()));
        http.insert("path".to_owned(), json!(template));
        let placements = inputs.take_placements();
        if !placements.is_empty() {
            http.insert("parameters".to_owned(), Value::Object(placements));
        }
        if inputs.rest.is_some() && !has_body {
            http.insert("default_in".to_owned(), json!("body"));
        }
        if body == BodyKind::Form {
            http.insert("body".to_owned(), json!("form"));
        }
        if !summary.success.is_empty() {
            http.insert("success".to_owned(), Value::Array(summary.success.clone()));
        }
        let mut tool = Map::new();
        self.texts(part, &mut tool);
        tool.insert("safety_tier".to_owned(), json!(if is_read { "read" } else { "write" }));
        tool.insert("scope".to_owned(), json!(self.scope(part, is_read)));
        tool.insert("parameters".to_owned(), self.input_schema(&mut inputs)?);
        tool.insert("idempotent".to_owned(), json!(!matches!(method, HttpMethod::Patch | HttpMethod::Post)));
        tool.insert("http".to_owned(), Value::Object(http));
        self.remarks(part);
        self.read_back(name, tool, summary)
    }

    /// Validates the tool by the rules of the registry. An invalid schema of the result removes only that schema.
    fn read_back(
        &mut self,
        name: &ToolName,
        mut tool: Map<String, Value>,
        summary: ResponseSummary,
    ) -> Result<ToolDefinition, String> {
        let ResponseSummary { returns: Some(mut returns), pointer, .. } = summary else { return read(name, &tool) };
        for _ in 0..2 {
            tool.insert("returns".to_owned(), returns.clone());
            match check::tool(name, &Value::Object(tool.clone())) {
                Ok(read) if read.returns.as_ref() == Some(&returns) => return Ok(read),
                // Some schemas look like the short form of one; this says which it is.
                Ok(_) => {
                    drop(returns.as_object_mut().map(|members| members.insert("$schema".to_owned(), json!(DIALECT))))
                }
                Err(error) => {
                    tool.remove("returns");
                    let read = read(name, &tool)?;
                    self.findings.add(Kind::ResponseSchema, &pointer, error.reason);
                    return Ok(read);
                }
            }
        }
        tool.remove("returns");
        self.findings.add(Kind::ResponseSchema, &pointer, "it is ambiguous with a list of members");
        read(name, &tool)
    }

    fn texts(&mut self, part: &Part<'a>, tool: &mut Map<String, Value>) {
        let summary = part.text("summary").unwrap_or_default();
        let (title, shortened) = line(summary);
        if shortened {
            self.findings.add(Kind::Text, &below(&part.pointer, "summary"), "summary");
        }
        let said = part.text("description").filter(|text| !text.trim().is_empty());
        let (text, changed) = description(said.unwrap_or(summary));
        if changed && said.is_some() {
            self.findings.add(Kind::Text, &below(&part.pointer, "description"), "description");
        }
        let mut text = text.unwrap_or_default();
        if part.is("deprecated") {
            self.findings.add(Kind::Deprecated, &below(&part.pointer, "deprecated"), "deprecated");
            text = description(&format!("Deprecated. {text}")).0.unwrap_or_default();
        }
        if let Some(title) = title {
            tool.insert("title".to_owned(), json!(title));
        }
        if !text.is_empty() {
            tool.insert("description".to_owned(), json!(text));
        }
    }

    /// The scope that the document names, else one by the first tag: `pets.read` or `pets.write`.
    fn scope(&mut self, part: &Part<'a>, is_read: bool) -> String {
        let tags: Vec<Part<'a>> = part.get("tags").map(|tags| tags.elements()).unwrap_or_default();
        let required = self.required_scope(part);
        for tag in tags.iter().skip(if required.is_some() { 0 } else { 1 }) {
            self.findings.add(Kind::Tag, &tag.pointer, tag.value.as_str().unwrap_or_default());
        }
        if let Some(scope) = required {
            return scope;
        }
        let verb = if is_read { "read" } else { "write" };
        let tag = tags.first().and_then(|tag| tag.value.as_str()).and_then(slug);
        tag.map_or_else(|| verb.to_owned(), |tag| format!("{tag}.{verb}"))
    }

    /// What an operation says that no tool has.
    fn remarks(&mut self, part: &Part<'a>) {
        for (name, callback) in part.get("callbacks").map(|callbacks| callbacks.members()).unwrap_or_default() {
            self.findings.add(Kind::Callback, &callback.pointer, name);
        }
        if let Some(documentation) = part.get("externalDocs") {
            let url = documentation.text("url").unwrap_or_default();
            self.findings.add(Kind::Information, &documentation.pointer, url);
        }
    }
}

fn read(name: &ToolName, tool: &Map<String, Value>) -> Result<ToolDefinition, String> {
    check::tool(name, &Value::Object(tool.clone())).map_err(|error| format!("it is invalid: {error}"))
}
