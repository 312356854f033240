//! Approvals: states, decisions and related types.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::json;

use super::{schema, schemas};
use crate::approval::{
    ApprovalStatus, AskReason, AskSource, Category, Channel, Decision, LinkToken, RequestedReach, StandingState,
    Workspace,
};

schemas! {
    ApprovalStatus => "ApprovalStatus" |_generator| json!({
        "type": "string",
        "description": "`cancelled` if the caller is gone, `orphaned` if the process in which it waited died.",
        "enum": ApprovalStatus::ALL,
    });
    AskReason => "AskReason" |_generator| json!({
        "type": "object",
        "description": "Why a call needs an approval.",
        "required": ["source", "text"],
        "properties": {
            "source": {"type": "string", "enum": AskSource::ALL},
            "text": {"type": "string"},
        },
    });
    Category => "Category" |_generator| json!({
        "type": "string",
        "description": "The category of a call: it reads, changes files of the workspace, runs commands, or is external.",
        "enum": Category::ALL,
    });
    Channel => "Channel" |_generator| json!({
        "type": "string",
        "description": "How a decision was submitted.",
        "enum": Channel::ALL,
    });
    Decision => "Decision" |_generator| json!({
        "type": "string",
        "description": "`override` approves a call whose rule is not met. It requires a `reason`, and an approver in \
            the `override_groups` of the rule.",
        "enum": Decision::ALL,
    });
    LinkToken => "LinkToken" |_generator| json!({
        "type": "string",
        "description": "The token of a one-time link.",
        "pattern": "^[0-9a-f]{64}$",
    });
    RequestedReach => "ReachName" |_generator| json!({
        "type": "string",
        "description": "Where a standing approval applies: one session, all sessions in one directory, all calls.",
        "enum": RequestedReach::ALL,
    });
    StandingState => "StandingState" |_generator| json!({
        "type": "string",
        "description": "Whether a standing approval still covers calls.",
        "enum": StandingState::ALL,
    });
    Workspace => "WorkspacePath" |_generator| json!({
        "type": "string",
        "description": "The working directory of a session, at most 4096 bytes.",
        "minLength": 1,
        "maxLength": 4096,
        "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff]+$",
    });
}
