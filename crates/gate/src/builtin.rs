//! The tools that Toolgate has by itself, without a service, a credential or a grant: whoever holds their scopes may use
//! them.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use serde_json::json;
use toolgate_model::constraint::ParameterPath;
use toolgate_model::credential::ServiceName;
use toolgate_model::descriptor::{
    DescriptorFields, Egress, Hint, ReplayPolicy, SafetyTier, SourceKind, ToolAuth, ToolDescriptor, ToolId,
};
use toolgate_model::principal_scope::RequiredScope;
use toolgate_model::scope::Scope;
use toolgate_model::service::{FieldRule, LoggingRule, ToolDefinition, ToolName};
use toolgate_model::text::Line;

use crate::catalog::{Backing, Tool};

/// The name of the guarded fetch, without the scope of its id.
pub const HTTP_FETCH: &str = "http.fetch";
/// The scope that a principal needs for it.
pub const HTTP_FETCH_SCOPE: &str = "http:fetch";
/// The methods that it takes.
pub const HTTP_FETCH_METHODS: [&str; 6] = ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"];

/// A tool of Toolgate's own.
#[derive(Debug)]
pub struct Builtin {
    /// The tool, as calls find it.
    pub tool: Arc<Tool>,
    /// How the catalog describes it.
    pub descriptor: Arc<ToolDescriptor>,
}

/// All of them.
pub fn all() -> &'static [Builtin] {
    static ALL: LazyLock<Vec<Builtin>> = LazyLock::new(|| http_fetch().into_iter().collect());
    &ALL
}

/// The one of this id.
pub fn find(tool: &ToolId) -> Option<&'static Builtin> {
    all().iter().find(|builtin| builtin.descriptor.fields().tool_id == *tool)
}

/// The guarded fetch (RFC 0076 §B). It may send something, so it is of tier write.
///
/// INVARIANT: there is one; the texts are fixed, and a test reads them.
fn http_fetch() -> Option<Builtin> {
    let name = ToolName::parse(HTTP_FETCH).ok()?;
    let scopes = BTreeSet::from([RequiredScope::parse(HTTP_FETCH_SCOPE).ok()?]);
    let title = Line::parse("Fetch over HTTP").ok()?;
    let description = "Sends one HTTP request to a public address and gives back the answer. Private, loopback and \
                       link-local addresses are refused, redirects are not followed."
        .to_owned();
    let parameters = json!({
        "type": "object",
        "properties": {
            "url": {
                "type": "string", "minLength": 1, "maxLength": 8192, "description": "An absolute http or https URL."
            },
            "method": {"type": "string", "enum": HTTP_FETCH_METHODS, "default": "GET"},
            "headers": {
                "type": "object",
                "additionalProperties": {"type": "string", "maxLength": 8192},
                "maxProperties": 64,
                "description": "Headers of the request, by name."
            },
            "body": {"type": "string", "description": "What is sent, as text."}
        },
        "required": ["url"],
        "additionalProperties": false
    });
    // What is sent, and what it is sent with, is content; where it goes is what an operator wants to know.
    let field = |name: &str, rule| Some((ParameterPath::parse(name).ok()?, rule));
    let logging = LoggingRule {
        fields: [field("body", FieldRule::Hash)?, field("headers", FieldRule::Omit)?].into(),
        ..LoggingRule::default()
    };
    let definition = ToolDefinition {
        logging,
        title: Some(title.clone()),
        description: Some(description.clone()),
        safety_tier: Some(SafetyTier::Write),
        required_scopes: Some(scopes.clone()),
        egress: Some(Egress::SafeFetch),
        replay_policy: Some(ReplayPolicy::NonDeterministic),
        latency_hint: Some(Hint::Medium),
        parameters: Some(parameters.clone()),
        ..ToolDefinition::of_scope(Scope::parse(HTTP_FETCH).ok()?)
    };
    let descriptor = ToolDescriptor::new(DescriptorFields {
        tool_id: ToolId::core(&name),
        source: SourceKind::NodePack,
        title: Some(title),
        description: Some(description),
        input_schema: Some(parameters),
        output_schema: None,
        auth: Some(ToolAuth { scopes, credential_ref: false }),
        egress: definition.egress,
        approval: None,
        replay_policy: definition.replay_policy,
        safety_tier: SafetyTier::Write,
        cost_hint: None,
        latency_hint: definition.latency_hint,
    });
    // What the log calls it is the two together, with a dot between.
    let (service, short) = HTTP_FETCH.split_once('.')?;
    let (service, short) = (ServiceName::parse(service).ok()?, ToolName::parse(short).ok()?);
    let tool = Tool::built_in(service, short, Arc::new(definition), Backing::Fetch);
    Some(Builtin { tool: Arc::new(tool), descriptor: Arc::new(descriptor.ok()?) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_model::schema::Schema;

    #[test]
    fn every_builtin_tool_has_a_descriptor_that_fits_and_is_found_by_its_id() {
        let schema = Schema::compile(&ToolDescriptor::schema()).unwrap();
        for builtin in all() {
            schema.check(&json!(*builtin.descriptor)).unwrap();
            Schema::compile(builtin.tool.definition.parameters.as_ref().unwrap()).unwrap();
            let id = &builtin.descriptor.fields().tool_id;
            assert_eq!(find(id).unwrap().tool.name, builtin.tool.name);
            assert_eq!(builtin.tool.id().as_ref(), Some(id));
        }
        assert_eq!(all().len(), 1);
        assert!(find(&ToolId::parse("openwop:http.other").unwrap()).is_none());
    }

    #[test]
    fn the_fetch_needs_its_scope_and_no_credential() {
        let shown = json!(*all()[0].descriptor);
        assert_eq!(shown["auth"], json!({"scopes": ["http:fetch"], "credentialRef": false}));
        assert_eq!((&shown["source"], &shown["safetyTier"]), (&json!("node-pack"), &json!("write")));
        assert_eq!(shown["egress"], "safe-fetch");
    }
}
