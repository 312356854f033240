//! The registry of services.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolgate_model::credential::ServiceName;
use toolgate_model::service::ServiceVersion;
use toolgate_model::time::Timestamp;

use crate::document::merge;
use crate::endpoint::{RequestBody, endpoints};
use crate::reply::Removed;
use crate::schemas::Schemas;

endpoints! {
    tag "services" = "The registry of services and how their tools are called.";

    /// Register a version of a service
    ///
    /// Needs `tools.manage` and `agents.act_as`. A version that exists is not replaced.
    CreateService = POST "/api/v1/services" as "create_service" {
        body: ServiceDefinition = {
            "service": "stripe",
            "version": "2024-01",
            "base_url": "https://api.example.com",
            "tools": {
                "charges.read": {
                    "description": "Shows a charge",
                    "parameters": {"id": {"type": "string", "required": true}},
                    "http": {"method": "GET", "path": "/charges/{id}"}
                }
            }
        },
        reply: CREATED RegisteredService = "The version.",
    }

    /// List all versions of all services
    ///
    /// Needs `tools.manage`.
    ListServices = GET "/api/v1/services" as "list_services" {
        reply: OK ServiceList = "Everything that is registered.",
    }

    /// Show the versions of a service, newest first
    ///
    /// Needs `tools.manage`.
    ShowService = GET "/api/v1/services/{service}" as "show_service" {
        path: ServiceName,
        query: VersionQuery,
        reply: OK ServiceVersions = "The versions.",
    }

    /// Register a version of a service, or replace it
    ///
    /// Needs `tools.manage` and `agents.act_as`.
    ReplaceService = PUT "/api/v1/services/{service}" as "replace_service" {
        path: ServiceName,
        body: ServiceDefinition = {
            "service": "stripe",
            "version": "2024-01",
            "base_url": "https://api.example.com",
            "tools": {
                "charges.read": {
                    "description": "Shows a charge",
                    "parameters": {"id": {"type": "string", "required": true}},
                    "http": {"method": "GET", "path": "/charges/{id}"}
                }
            }
        },
        reply: OK RegisteredService = "Replaced.",
        amend: describe_replace,
    }

    /// Remove a version of a service, or all of them
    ///
    /// Needs `tools.manage` and `agents.act_as`.
    RemoveService = DELETE "/api/v1/services/{service}" as "remove_service" {
        path: ServiceName,
        query: VersionQuery,
        reply: OK RemovedService = "What was removed.",
    }
}

fn describe_replace(operation: &mut Value, schemas: &mut Schemas) {
    let content = json!({"application/json": {"schema": schemas.reply::<RegisteredService>()}});
    merge(operation, json!({"responses": {"201": {"description": "New.", "content": content}}}));
}

/// A definition as sent; the model parses it, and reports errors by path.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServiceDefinition(pub Map<String, Value>);

impl RequestBody for ServiceDefinition {}

impl JsonSchema for ServiceDefinition {
    fn schema_name() -> Cow<'static, str> {
        toolgate_model::service::ServiceDefinition::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        toolgate_model::service::ServiceDefinition::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        toolgate_model::service::ServiceDefinition::json_schema(generator)
    }
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VersionQuery {
    /// The version; all where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<ServiceVersion>,
}

/// A version of a service in its normal form.
#[derive(Debug, Serialize, Deserialize)]
pub struct RegisteredService {
    #[serde(flatten)]
    pub definition: ServiceDefinition,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl RegisteredService {
    pub fn new(
        definition: &toolgate_model::service::ServiceDefinition,
        created_at: Timestamp,
        updated_at: Timestamp,
    ) -> Self {
        let definition = match definition.to_json() {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        Self { definition: ServiceDefinition(definition), created_at, updated_at }
    }
}

impl JsonSchema for RegisteredService {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("RegisteredService")
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let time = generator.subschema_for::<Timestamp>();
        let mut schema = ServiceDefinition::json_schema(generator).to_value();
        let more = json!({
            "description": "A version of a service in its normal form.",
            "required": ["created_at", "updated_at"],
            "properties": {"created_at": time, "updated_at": time},
        });
        merge(&mut schema, more);
        // Unlike a request, a reply may get further members.
        if let Some(members) = schema.as_object_mut() {
            members.remove("additionalProperties");
        }
        Schema::try_from(schema).unwrap_or_default()
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServiceList {
    pub services: Vec<RegisteredService>,
    /// Counts the changes of the registry.
    pub revision: u64,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServiceVersions {
    pub service: ServiceName,
    pub versions: Vec<RegisteredService>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RemovedService {
    pub status: Removed,
    pub service: ServiceName,
    pub removed_versions: u64,
}
