//! Bodies that bring policies. They may be larger than any other, for who may change policies.

use axum::extract::Request;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toolgate_gate::Caller;
use toolgate_gate::refusal::Refusal;
use toolgate_model::guard::PolicyFile;
use toolgate_model::permission::Permission;

use crate::body::{self, Object};
use crate::router::App;

/// The largest of these bodies, in bytes: somewhat more than the texts may have, since they are escaped in it.
const POLICIES_LIMIT: usize = 9 * 1024 * 1024;

/// The files of a policy set.
pub(super) type Files = Vec<Object<FileBody>>;

/// One of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileBody {
    name: String,
    text: String,
}

/// Reads a body that brings policies.
pub(super) async fn read<T: DeserializeOwned>(app: &App, caller: &Caller, request: Request) -> Result<T, Refusal> {
    let limit = if caller.may(Permission::ManagePolicies) { app.max_body.max(POLICIES_LIMIT) } else { app.max_body };
    body::json(request, limit).await
}

/// As the gate takes them.
pub(super) fn policy_files(files: Files) -> Vec<PolicyFile> {
    files.into_iter().map(|Object(FileBody { name, text })| PolicyFile { name, text }).collect()
}
