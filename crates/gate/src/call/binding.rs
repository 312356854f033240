//! What a decision is bound to. An approver, a standing approval or a policy decides about one action: this definition
//! of the tool, this credential, this request. If any of it changes, it must be decided again.

use serde_json::{Value, json};
use toolgate_model::approval::BoundAction;
use toolgate_model::canonical::to_canonical;
use toolgate_model::connection::AuthPlacement;
use toolgate_model::merkle::sha256;
use toolgate_model::service::RenderedRequest;

use super::Call;
use super::eligible::{CredentialUse, EligibleGrant};

/// The action of a call through this grant; `None` for a tool without a credential.
pub(super) fn bound_action(eligible: &EligibleGrant) -> Option<BoundAction> {
    let (request, credential_use) = (eligible.request.as_deref(), eligible.credential.as_deref()?);
    let CredentialUse { held_grant, adapter, placement } = credential_use;
    let (tool, credential) = (&eligible.candidate.tool, &held_grant.credential);
    let action = json!({
        "service": tool.service, "tool": tool.name, "version": tool.version, "definition": tool.definition.to_json(),
        "base_url": tool.base_url.as_ref().map(ToString::to_string), "credential": credential.id,
        "auth_type": credential.auth_type, "metadata": credential.metadata, "adapter": adapter.as_str(),
        "placement": placed(placement),
    });
    let (method, host) = match request {
        Some(request) => {
            let host = request.url.host_str().unwrap_or_default();
            let host = request.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
            (request.method.as_str(), host)
        }
        // A mounted server that is a process of this machine.
        None => (eligible.action().as_str(), "local process".to_owned()),
    };
    Some(BoundAction {
        digest: sha256(&to_canonical(&action)).to_hex(),
        credential: credential.id,
        label: credential.label.as_str().to_owned(),
        method: method.to_owned(),
        host,
    })
}

/// The digest that a decision on one call covers: the tool, the action, the exact request, the arguments, the caller
/// and the session.
pub(super) fn digest(
    call: &Call,
    eligible: &EligibleGrant,
    action: Option<&BoundAction>,
    parameters: &Value,
) -> String {
    let tool = &eligible.candidate.tool;
    let session = call.approval_session.as_ref();
    let covered = json!({
        "service": tool.service, "tool": tool.name, "version": tool.version,
        "action": action.map(|action| &action.digest), "request": eligible.request.as_deref().map(request_digest),
        "arguments": call.decided_arguments(parameters), "agent": call.agent, "actor": call.caller.id(),
        "session": session.map(|session| &session.name), "workspace": session.map(|session| &session.workspace),
    });
    sha256(&to_canonical(&covered)).to_hex()
}

fn placed(placement: &AuthPlacement) -> Value {
    match placement {
        AuthPlacement::Header { name, prefix } => json!({"header": name, "prefix": prefix}),
        AuthPlacement::Query { name } => json!({"query": name}),
        AuthPlacement::Nowhere => Value::Null,
    }
}

fn request_digest(request: &RenderedRequest) -> String {
    let body = request.body.as_ref();
    let sent = json!({
        "method": request.method.as_str(), "url": request.url.as_str(), "headers": request.headers,
        "content_type": body.map(|body| &body.content_type), "body": body.map(|body| sha256(&body.bytes).to_hex()),
    });
    sha256(&to_canonical(&sent)).to_hex()
}
