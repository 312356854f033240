//! Bodies with policies. They may exceed the usual limit, for callers that may change policies.

use axum::extract::Request;
use serde::de::DeserializeOwned;
use toolgate_api::policies::PolicyFiles;
use toolgate_gate::Caller;
use toolgate_gate::refusal::Refusal;
use toolgate_model::guard::PolicyFile;
use toolgate_model::permission::Permission;

use crate::body::{self, Object};
use crate::router::App;

/// The largest of these bodies, in bytes: somewhat more than the texts may have, since they are escaped in it.
const POLICIES_LIMIT: usize = 9 * 1024 * 1024;

/// Reads a body that brings policies.
pub(super) async fn read<T: DeserializeOwned>(app: &App, caller: &Caller, request: Request) -> Result<T, Refusal> {
    let limit = if caller.may(Permission::ManagePolicies) { app.max_body.max(POLICIES_LIMIT) } else { app.max_body };
    body::json(request, limit).await
}

pub(super) fn policy_files(files: PolicyFiles) -> Vec<PolicyFile> {
    files.0.into_iter().map(|Object(file)| PolicyFile { name: file.name, text: file.text }).collect()
}
