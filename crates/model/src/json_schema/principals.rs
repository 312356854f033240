//! Principals, their authority and their identification.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::json;

use super::{schema, schemas};
use crate::certificate::CertificateName;
use crate::descriptor::ToolId;
use crate::permission::{Permission, PermissionSet};
use crate::principal::{PrincipalKind, ToolRateLimits};
use crate::principal_scope::{HeldScopes, PrincipalScope, RequiredScope};
use crate::rate_limit::RateLimit;
use crate::scope::SCOPE_LIMIT;
use crate::token_subject::TokenSubject;

schemas! {
    PrincipalKind => "AgentKind" |_generator| json!({
        "type": "string",
        "description": "A program that decides by itself what to call, a program that runs as written, or a person.",
        "enum": ["agent", "service", "user"],
    });
    Permission => "Permission" |_generator| json!({
        "type": "string",
        "description": "What a principal may do besides using its grants.",
        "enum": Permission::ALL,
    });
    PermissionSet => "Permissions" |generator| json!({
        "type": "array",
        "items": generator.subschema_for::<Permission>(),
    });
    PrincipalScope => "PrincipalScope" |_generator| json!({
        "type": "string",
        "description": "A scope that a principal holds: up to eight names separated by colons. `*` stands for one \
            name, at the end for one or more.",
        "maxLength": 128,
        "pattern": r"^(\*|[A-Za-z0-9._-]+)(:(\*|[A-Za-z0-9._-]+)){0,7}$",
        "examples": ["tools:payments:*"],
    });
    RequiredScope => "RequiredScope" |_generator| json!({
        "type": "string",
        "description": "A scope that a tool requires: names separated by colons.",
        "maxLength": 128,
        "pattern": r"^[A-Za-z0-9._-]+(:[A-Za-z0-9._-]+){0,7}$",
        "examples": ["tools:payments:refund"],
    });
    HeldScopes => "PrincipalScopes" |generator| json!({
        "type": "array",
        "description": "The scopes of a principal. A tool may require some in addition to a grant.",
        "maxItems": SCOPE_LIMIT,
        "items": generator.subschema_for::<PrincipalScope>(),
    });
    RateLimit => "RateLimit" |_generator| json!({
        "type": "object",
        "description": "A number of requests in a period, `burst` of them at once; by default all of them.",
        "required": ["requests", "per_seconds"],
        "properties": {
            "requests": {"type": "integer", "minimum": 1, "maximum": 1_000_000},
            "per_seconds": {"type": "integer", "minimum": 1, "maximum": 2_678_400},
            "burst": {"type": ["integer", "null"], "minimum": 1, "maximum": 1_000_000},
        },
        "additionalProperties": false,
    });
    ToolRateLimits => "RateLimits" |generator| json!({
        "type": "object",
        "description": "Limits by the qualified name of a tool, and by `*` for all others. Each tool has its \
            own bucket.",
        "maxProperties": 1024,
        "propertyNames": {"maxLength": 257, "pattern": r"^(\*|[A-Za-z0-9._:@-]+\.[A-Za-z0-9._:@-]+)$"},
        "additionalProperties": generator.subschema_for::<RateLimit>(),
        "examples": [{"*": {"requests": 100, "per_seconds": 60}}],
    });
    ToolId => "ToolId" |_generator| json!({
        "type": "string",
        "description": "The id of a tool, unique over all sources.",
        "pattern": "^(connector|mcp|openwop|x-host-[A-Za-z0-9._~@-]+):[A-Za-z0-9._:@~-]+$",
        "examples": ["connector:stripe.charges.create"],
    });
    CertificateName => "CertificateName" |_generator| json!({
        "type": "object",
        "description": "The identity of a client certificate: exactly one of the two.",
        "properties": {
            "spiffe_id": {
                "type": "string",
                "description": "The SPIFFE id among its subject alternative names.",
                "maxLength": 2048,
            },
            "sha256": {
                "type": "string",
                "description": "The SHA-256 of a certificate without a SPIFFE id: 64 hexadecimal digits, with or without colons.",
            },
        },
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": false,
    });
    TokenSubject => "TokenSubject" |_generator| json!({
        "type": "object",
        "description": "The bearer of an access token, as its issuer names it.",
        "required": ["issuer", "subject"],
        "properties": {
            "issuer": {
                "type": "string",
                "description": "The claim `iss`, exactly as the gate is configured with it.",
                "maxLength": 512,
                "pattern": r#"^https?://[^?#"\\\s]+$"#,
                "examples": ["https://login.example.com"],
            },
            "subject": {
                "type": "string",
                "description": "The claim `sub`, or the one that the gate is configured with.",
                "minLength": 1,
                "maxLength": 512,
                "pattern": "^[!-~]([ -~]*[!-~])?$",
                "examples": ["system:serviceaccount:prod:billing"],
            },
        },
        "additionalProperties": false,
    });
}
