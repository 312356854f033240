//! Mounted MCP servers.

use std::collections::BTreeMap;

use serde_json::Value;
use toolgate_api::mounts::{
    AcceptMount, CheckMount, CheckedMount, CreateMount, CreatePeer, DefinitionHash, Finding, FindingSeverity,
    HiddenCharacters, ListMounts, Mount, MountList, MountReview, MountSummary, MountTool, MountTransport, ProtocolEra,
    RejectMount, RemoveMount, RemovedMount, ReviewMount, ServerIdentity, ServerReview, ServerState, ShowMount,
    ToolReview, ToolState,
};
use toolgate_api::reply::Removed;
use toolgate_gate::authority::mounts;
use toolgate_gate::authority::mounts::{MountAccess, MountDecision, MountedServer, NewMount};
use toolgate_gate::ports::ledger;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::connection::BaseUrl;
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_model::mount::lint::{LintFinding, Severity};
use toolgate_model::mount::{McpEra, MountAddress, Quarantine};
use toolgate_model::{mount, service};

use super::error::Denied;
use crate::mount::TypedRequest;

pub(super) async fn create(request: TypedRequest<CreateMount>) -> Result<Mount, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let address = match body.url {
        Some(url) => MountAddress::Http { url: base_url(&url)? },
        None => MountAddress::Stdio,
    };
    let access = access(body.credential_id, body.vault_id)?;
    let new = NewMount {
        name: body.name,
        address,
        trusted: body.trusted.unwrap_or(false),
        hidden_characters: match body.hidden_characters {
            None | Some(HiddenCharacters::Show) => service::HiddenCharacters::Show,
            Some(HiddenCharacters::Strip) => service::HiddenCharacters::Strip,
            Some(HiddenCharacters::Keep) => service::HiddenCharacters::Keep,
        },
        access,
    };
    Ok(shown(app.gate.mounts.add(&caller, new).await?))
}

pub(super) async fn create_peer(request: TypedRequest<CreatePeer>) -> Result<Mount, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let new = NewMount {
        address: MountAddress::Agent { url: base_url(&body.url)? },
        access: access(body.credential_id, body.vault_id)?,
        name: body.name,
        trusted: false,
        hidden_characters: service::HiddenCharacters::Show,
    };
    Ok(shown(app.gate.mounts.add(&caller, new).await?))
}

fn base_url(url: &str) -> Result<BaseUrl, Refusal> {
    let invalid = |reason| Refusal::new(Code::InvalidField, format!("`url` {reason}")).with("path", "url");
    BaseUrl::parse(url).map_err(invalid)
}

fn access(credential: Option<CredentialId>, vault: Option<VaultId>) -> Result<MountAccess, Refusal> {
    match (credential, vault) {
        (Some(credential), None) => Ok(MountAccess::Credential(credential)),
        (None, Some(vault)) => Ok(MountAccess::Open(vault)),
        (None, None) => Ok(MountAccess::None),
        (Some(_), Some(_)) => {
            let reason = "give `credential_id`, or `vault_id` for a server that needs no secret, not both";
            Err(Refusal::new(Code::InvalidField, reason).with("path", "vault_id"))
        }
    }
}

pub(super) async fn list(request: TypedRequest<ListMounts>) -> Result<MountList, Denied> {
    let TypedRequest { app, caller, .. } = request;
    let mounts = app.gate.mounts.mounts(&caller).await?;
    Ok(MountList { mounts: mounts.into_iter().map(summary).collect() })
}

pub(super) async fn show(request: TypedRequest<ShowMount>) -> Result<Mount, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    Ok(shown(app.gate.mounts.mount(&caller, &path).await?))
}

pub(super) async fn remove(request: TypedRequest<RemoveMount>) -> Result<RemovedMount, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    app.gate.mounts.remove(&caller, path.clone()).await?;
    Ok(RemovedMount { status: Removed::Value, name: path })
}

pub(super) async fn check(request: TypedRequest<CheckMount>) -> Result<CheckedMount, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let (mount, recorded) = app.gate.mounts.check(&caller, &path).await?;
    let ledger::OfferRecorded { quarantined, restored, server } = recorded;
    Ok(CheckedMount { mount: shown(mount), quarantined, restored, server_changed: server })
}

pub(super) async fn review(request: TypedRequest<ReviewMount>) -> Result<MountReview, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let review = app.gate.mounts.review(&caller, &path).await?;
    let mounts::MountReview { mount, server, tools } = review;
    let server = server.map(|mounts::ServerReview { hash, findings }| ServerReview {
        hash: DefinitionHash(hash),
        pinned: mount.pinned.as_ref().map(identity),
        seen: identity(&mount.seen),
        findings: findings.iter().map(finding).collect(),
    });
    Ok(MountReview { name: mount.name, server, tools: tools.into_iter().map(reviewed).collect() })
}

pub(super) async fn accept(request: TypedRequest<AcceptMount>) -> Result<Mount, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    let decision = MountDecision {
        server: body.server.map(|hash| hash.0),
        tools: hashes(body.tools),
        override_findings: body.override_findings.unwrap_or(false),
    };
    Ok(shown(app.gate.mounts.accept(&caller, path, decision).await?))
}

pub(super) async fn reject(request: TypedRequest<RejectMount>) -> Result<Mount, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    Ok(shown(app.gate.mounts.reject(&caller, path, hashes(body.tools)).await?))
}

fn hashes(tools: BTreeMap<String, DefinitionHash>) -> BTreeMap<String, String> {
    tools.into_iter().map(|(name, hash)| (name, hash.0)).collect()
}

fn shown((mount, tools): MountedServer) -> Mount {
    let count = |counted: fn(mount::ToolState) -> bool| {
        u64::try_from(tools.iter().filter(|tool| counted(tool.state)).count()).unwrap_or(u64::MAX)
    };
    let summary = summary(ledger::MountSummary {
        accepted: count(|state| state == mount::ToolState::Accepted),
        quarantined: count(mount::ToolState::is_quarantined),
        rejected: count(|state| state == mount::ToolState::Rejected),
        mount,
    });
    let tool = |tool: &mount::MountTool| MountTool {
        upstream: tool.upstream.clone(),
        tool: tool.name.clone(),
        state: state(tool.state),
        pinned_hash: tool.pinned.as_ref().map(|pinned| DefinitionHash(pinned.hash.clone())),
        seen_hash: tool.seen.as_ref().map(|seen| DefinitionHash(seen.hash.clone())),
    };
    Mount { summary, tools: tools.iter().map(tool).collect() }
}

fn summary(summary: ledger::MountSummary) -> MountSummary {
    let ledger::MountSummary { mount, accepted, quarantined, rejected } = summary;
    let server_state = match &mount.pinned {
        None => ServerState::New,
        Some(_) if mount.is_replaced() => ServerState::Replaced,
        Some(_) if mount.is_server_quarantined() => ServerState::Changed,
        Some(_) => ServerState::Accepted,
    };
    let (transport, url) = match &mount.address {
        MountAddress::Http { url } => (MountTransport::Http, Some(url.to_string())),
        MountAddress::Stdio => (MountTransport::Stdio, None),
        MountAddress::Agent { url } => (MountTransport::A2a, Some(url.to_string())),
    };
    MountSummary {
        server: identity(&mount.seen),
        server_state,
        transport,
        url,
        trusted: mount.trusted,
        hidden_characters: match mount.hidden_characters {
            service::HiddenCharacters::Show => HiddenCharacters::Show,
            service::HiddenCharacters::Strip => HiddenCharacters::Strip,
            service::HiddenCharacters::Keep => HiddenCharacters::Keep,
        },
        credential_id: mount.credential,
        era: match mount.era {
            McpEra::Legacy => ProtocolEra::Legacy,
            McpEra::Modern => ProtocolEra::Modern,
        },
        accepted,
        quarantined,
        rejected,
        checked_at: mount.checked_at,
        failure: mount.failure,
        created_at: mount.created_at,
        updated_at: mount.updated_at,
        name: mount.name,
    }
}

fn identity(server: &mount::ServerIdentity) -> ServerIdentity {
    ServerIdentity {
        name: server.name.clone(),
        version: server.version.clone(),
        title: server.title.clone(),
        instructions: server.instructions.clone(),
        capabilities: server.capabilities.iter().map(|capability| capability.as_str().to_owned()).collect(),
        command: server.command.clone(),
        card: server.card.as_ref().and_then(Value::as_object).cloned(),
    }
}

fn reviewed(review: mounts::ToolReview) -> ToolReview {
    let mounts::ToolReview { tool, findings, unusable, offered } = review;
    let object = |value: &Value| value.as_object().cloned();
    ToolReview {
        hash: tool.hash_to_confirm().map(|hash| DefinitionHash(hash.to_owned())),
        pinned: tool.pinned.as_ref().and_then(|pinned| object(&pinned.definition)),
        seen: tool.seen.as_ref().and_then(|seen| seen.definition.as_ref()).and_then(object),
        upstream: tool.upstream,
        tool: tool.name,
        state: state(tool.state),
        findings: findings.iter().map(finding).collect(),
        unusable,
        safety_tier: offered.as_ref().map(|tool| tool.tier().as_str().to_owned()),
        labels: offered.iter().flat_map(|tool| tool.labels.iter().map(ToString::to_string)).collect(),
    }
}

fn finding(finding: &LintFinding) -> Finding {
    Finding {
        code: finding.code.as_str().to_owned(),
        severity: match finding.severity() {
            Severity::Block => FindingSeverity::Block,
            Severity::Warn => FindingSeverity::Warn,
        },
        path: finding.path.clone(),
        message: finding.message.clone(),
    }
}

fn state(state: mount::ToolState) -> ToolState {
    match state {
        mount::ToolState::Accepted => ToolState::Accepted,
        mount::ToolState::Quarantined(Quarantine::Changed) => ToolState::Changed,
        mount::ToolState::Quarantined(Quarantine::New) => ToolState::New,
        mount::ToolState::Quarantined(Quarantine::Removed) => ToolState::Removed,
        mount::ToolState::Rejected => ToolState::Rejected,
    }
}
