//! Limits: the tool's schema, then the grant's constraints on parameters, client addresses, hosts and cost. `admit`
//! checks the rate, in the step that reserves it.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use toolgate_model::connection::{AdapterName, AuthPlacement, Connection};
use toolgate_model::constraint::Violation;
use toolgate_model::credential::AuthType;
use toolgate_model::fetch::{self, FetchError};
use toolgate_model::schema::SchemaViolation;
use toolgate_model::service::{RenderError, RenderedRequest};
use toolgate_model::step::StepError;
use toolgate_model::work::Coordinator;

use super::authorize::{Authorized, first_of};
use super::eligible::{Alternative, Candidate, CredentialUse, EligibleGrant};
use super::{Call, Pipeline};
use crate::action::Action;
use crate::ports::ledger::HeldGrant;
use crate::refusal::{Code, Refusal};

mod mcp;

#[cfg(test)]
mod tests;

/// A call with the grants whose limits it satisfies, in order of preference.
///
/// INVARIANT: at least one eligible grant.
pub(super) struct Constrained {
    eligible_grants: Vec<EligibleGrant>,
}

impl Constrained {
    /// The possible actions of the call in order of preference; each is decided separately.
    pub(super) fn into_alternatives(self) -> Vec<Alternative> {
        Alternative::sort(self.eligible_grants)
    }
}

impl Pipeline {
    /// Keeps the grants whose limits the call satisfies.
    pub(super) fn constrain(&self, call: &Call, authorized: Authorized) -> Result<Constrained, Refusal> {
        constrain_all(call, authorized.into_candidates(), &call.parameters)
    }
}

/// The eligible grants among these candidates, for these parameters.
pub(super) fn constrain_all(
    call: &Call,
    candidates: Vec<Candidate>,
    parameters: &Value,
) -> Result<Constrained, Refusal> {
    let mut refusals = Vec::new();
    let mut eligible_grants = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        match eligible(call, candidate, parameters) {
            Ok(eligible) => eligible_grants.push(eligible),
            Err(refusal) => refusals.push(refusal),
        }
    }
    first_of(&eligible_grants, refusals).map_or(Ok(Constrained { eligible_grants }), Err)
}

pub(super) fn eligible(call: &Call, candidate: Candidate, parameters: &Value) -> Result<EligibleGrant, Refusal> {
    check_guardrails(&candidate)?;
    candidate.tool.check(parameters).map_err(|violation| outside_schema(&violation))?;
    if let Some(step) = &candidate.tool.definition.step {
        step.check(parameters).map_err(|error| outside_step(&error))?;
    }
    // A client that executes the tool itself may do what the gate would do for the same call, and no more.
    let (request, credential) = match (candidate.tool.action, candidate.held_grant()) {
        (Action::Http | Action::Mcp | Action::Store, Some(held_grant)) => {
            let (request, credential) = connect(call, &candidate, held_grant, parameters)?;
            (request.map(Box::new), Some(Box::new(credential)))
        }
        (Action::Http | Action::Mcp | Action::Store, None) => {
            return Err(Refusal::new(Code::GrantNotFound, "there is no grant for this call"));
        }
        (Action::Fetch, _) => {
            let request = fetch::request(parameters).map_err(|error| unfetchable(&error))?;
            (Some(Box::new(request)).filter(|_| !candidate.client_executed), None)
        }
        // Their sources need only the parameters.
        _ => (None, None),
    };
    Ok(EligibleGrant { candidate, request, credential })
}

/// Checks the lists of services of the coordinators that govern the call.
fn check_guardrails(candidate: &Candidate) -> Result<(), Refusal> {
    let service = &candidate.tool.service;
    let denies = |one: &&Arc<Coordinator>| !one.guardrails.allows_service(service);
    let Some(coordinator) = candidate.coordinators().iter().find(denies) else { return Ok(()) };
    let reason = format!("coordinator {} may not use the service `{service}`, nor may agents below it", coordinator.id);
    Err(Refusal::new(Code::GuardrailDenied, reason)
        .with("grant_id", candidate.grant())
        .with("coordinator_id", coordinator.id)
        .with("guardrail", "services"))
}

/// Checks the limits of a grant, and renders the request to its service.
fn connect(
    call: &Call,
    candidate: &Candidate,
    held_grant: &Arc<HeldGrant>,
    parameters: &Value,
) -> Result<(Option<RenderedRequest>, CredentialUse), Refusal> {
    let grant = held_grant.grant();
    let constraints = &held_grant.effective.constraints;
    let schema = candidate.tool.definition.parameters.as_ref();
    let checked = constraints.check_parameters(parameters, schema);
    checked.map_err(|violation| outside_rule(&violation).with("grant_id", grant))?;
    if constraints.ip_allowlist.as_ref().is_some_and(|networks| !networks.contains(call.address)) {
        let reason = format!("grant {grant} may not be used from this address");
        return Err(Refusal::new(Code::GrantNetworkDenied, reason).with("grant_id", grant));
    }
    check_cost(candidate, held_grant, parameters)?;
    let connection = match &held_grant.connection {
        Ok(connection) => connection,
        Err(error) => return Err(not_executable(candidate, &format!("its credential's metadata is wrong: {error}"))),
    };
    let (is_process, is_store) = (candidate.tool.is_process(), candidate.tool.action == Action::Store);
    let adapter = adapter(candidate, held_grant, connection, is_process || is_store)?;
    let placement = placement_of(adapter, held_grant.credential.auth_type, connection);
    let credential = CredentialUse { held_grant: Arc::clone(held_grant), adapter, placement };
    if is_store {
        // It is here: there is nothing to send and nowhere to send it.
        return Ok((None, credential));
    }
    if is_process {
        check_process(candidate, held_grant, connection)?;
        mcp::check(call, candidate, held_grant, parameters)?;
        return Ok((None, credential));
    }
    let request = match candidate.tool.action {
        Action::Mcp => mcp::render(call, candidate, (held_grant, connection), parameters)?,
        _ => render(candidate, connection, parameters)?,
    };
    check_host(candidate, held_grant, connection, &request)?;
    if credential.placement.is_taken_in(&request) {
        let reason = "a parameter takes the place of the credential; remove it";
        return Err(Refusal::new(Code::ParametersInvalid, reason).with("rule", "http"));
    }
    Ok((Some(request), credential))
}

fn check_cost(candidate: &Candidate, held_grant: &HeldGrant, parameters: &Value) -> Result<(), Refusal> {
    let Some(limit) = held_grant.effective.constraints.max_cost_per_invocation else { return Ok(()) };
    let estimate = candidate.tool.definition.expected_cost(parameters);
    if estimate.is_some_and(|estimate| estimate <= limit) {
        return Ok(());
    }
    let grant = held_grant.grant();
    let cost = estimate.map_or("has no estimate of its cost".to_owned(), |estimate| format!("costs about {estimate}"));
    let reason = format!("the tool {cost}, and grant {grant} allows at most {limit} for one call");
    Err(Refusal::new(Code::GrantCostExceeded, reason)
        .with("grant_id", grant)
        .with("estimated_cost_usd", estimate.map(toolgate_model::constraint::Cost::dollars))
        .with("max_cost_per_invocation", limit.dollars()))
}

fn adapter(
    candidate: &Candidate,
    held_grant: &HeldGrant,
    connection: &Connection,
    is_local: bool,
) -> Result<AdapterName, Refusal> {
    let credential = &held_grant.credential;
    // What a process is started with is the operator's choice, and a service that needs nothing gets nothing.
    let needs_none = is_local || connection.auth == Some(AuthPlacement::Nowhere);
    let adapter = connection.adapter.or_else(|| usual_adapter(credential.auth_type));
    let adapter = adapter.or(needs_none.then_some(AdapterName::Rest));
    let adapter = adapter.ok_or_else(|| {
        let kind = credential.auth_type.as_str();
        let why =
            format!("no adapter supports credentials of type {kind}; name one in the credential's `metadata.adapter`");
        not_executable(candidate, &why)
    })?;
    if credential.version == 0 && !needs_none {
        return Err(not_executable(candidate, "its credential has no material yet; rotate it to add some"));
    }
    Ok(adapter)
}

/// The adapter for a credential that names none.
pub(crate) fn usual_adapter(auth_type: AuthType) -> Option<AdapterName> {
    match auth_type {
        AuthType::ApiKey | AuthType::BasicAuth | AuthType::BearerToken => Some(AdapterName::Rest),
        AuthType::OAuth2ClientCredentials | AuthType::OAuth2Token => Some(AdapterName::OAuth2),
        AuthType::Webhook => Some(AdapterName::Webhook),
        AuthType::ConnectionString | AuthType::Custom => None,
    }
}

/// Where the credential is placed: as its metadata says, else the default of its type.
pub(crate) fn placement_of(adapter: AdapterName, auth_type: AuthType, connection: &Connection) -> AuthPlacement {
    let usual = match auth_type {
        _ if adapter == AdapterName::OAuth2 => Some("Bearer"),
        AuthType::BasicAuth => Some("Basic"),
        AuthType::ApiKey | AuthType::Custom | AuthType::ConnectionString | AuthType::Webhook => None,
        AuthType::BearerToken | AuthType::OAuth2ClientCredentials | AuthType::OAuth2Token => Some("Bearer"),
    };
    let usual = usual.map(str::to_owned);
    match &connection.auth {
        None => AuthPlacement::Header { name: "Authorization".to_owned(), prefix: usual },
        Some(AuthPlacement::Header { name, prefix }) => {
            AuthPlacement::Header { name: name.clone(), prefix: prefix.clone().or(usual) }
        }
        Some(other) => other.clone(),
    }
}

fn render(candidate: &Candidate, connection: &Connection, parameters: &Value) -> Result<RenderedRequest, Refusal> {
    let base = connection.base_url.as_ref().or(candidate.tool.base_url.as_ref()).ok_or_else(|| {
        let why = "its service has no base URL; set `base_url` in the service definition or the credential's metadata";
        not_executable(candidate, why)
    })?;
    let nothing = serde_json::Map::new();
    let sent = match &candidate.tool.definition.step {
        Some(step) => step.sent(parameters),
        None => Cow::Borrowed(parameters),
    };
    let parameters = sent.as_object().unwrap_or(&nothing);
    let rendered = match &candidate.tool.definition.http {
        Some(http) => http.render(base, parameters),
        None => connection.endpoint(&candidate.tool.name).render(base, parameters),
    };
    rendered.map_err(|error| unrenderable(&error))
}

fn check_host(
    candidate: &Candidate,
    held_grant: &HeldGrant,
    connection: &Connection,
    request: &RenderedRequest,
) -> Result<(), Refusal> {
    let host = request.url.host_str().unwrap_or_default();
    let grant = held_grant.grant();
    if held_grant.effective.constraints.allowed_hosts.as_ref().is_some_and(|hosts| !hosts.contains(host)) {
        let reason = format!("grant {grant} does not allow the host {host}");
        return Err(Refusal::new(Code::GrantHostDenied, reason).with("grant_id", grant));
    }
    if connection.allowed_hosts.as_ref().is_some_and(|hosts| !hosts.contains(host)) {
        return Err(not_executable(candidate, "its credential does not allow the host of its `base_url`"));
    }
    Ok(())
}

/// A process reaches what it likes: a limit on hosts cannot be kept.
fn check_process(candidate: &Candidate, held_grant: &HeldGrant, connection: &Connection) -> Result<(), Refusal> {
    let grant = held_grant.grant();
    if held_grant.effective.constraints.allowed_hosts.is_some() {
        let reason = format!("grant {grant} allows certain hosts only, and a process of this machine may reach any");
        return Err(Refusal::new(Code::GrantHostDenied, reason).with("grant_id", grant));
    }
    if connection.allowed_hosts.is_some() || connection.base_url.is_some() {
        let why = "its server is a process of this machine, and its credential's metadata has a `base_url` or \
                   `allowed_hosts`; remove them";
        return Err(not_executable(candidate, why));
    }
    Ok(())
}

fn not_executable(candidate: &Candidate, why: &str) -> Refusal {
    let reason = format!("tool {} cannot be called: {why}", candidate.tool.qualified_name());
    Refusal::new(Code::ToolNotExecutable, reason).with("grant_id", candidate.grant())
}

fn outside_schema(violation: &SchemaViolation) -> Refusal {
    let reason = match violation.path.as_str() {
        "" => format!("the parameters do not match the tool's schema: {}", violation.reason),
        path => format!("parameter `{path}` {}", violation.reason),
    };
    Refusal::new(Code::ParametersInvalid, reason)
        .with("path", parameter_path(&violation.path))
        .with("rule", &violation.rule)
}

/// Parameters that the step of the tool does not allow.
pub(super) fn outside_step(error: &StepError) -> Refusal {
    let path = error.path.trim_start_matches('/').replace('/', ".");
    let reason = match path.as_str() {
        "" => format!("the parameters cannot be sent: {}", error.reason),
        path => format!("parameter `{path}`: {}", error.reason),
    };
    Refusal::new(Code::ParametersInvalid, reason).with("path", parameter_path(&path)).with("rule", "step")
}

fn outside_rule(violation: &Violation) -> Refusal {
    Refusal::new(Code::GrantParameterDenied, violation.to_string())
        .with("path", parameter_path(violation.path.as_str()))
        .with("rule", &violation.reason)
}

fn unrenderable(error: &RenderError) -> Refusal {
    let refusal = Refusal::new(Code::ParametersInvalid, error.to_string()).with("rule", "http");
    match error.parameter() {
        Some(parameter) => refusal.with("path", parameter_path(parameter)),
        None => refusal,
    }
}

fn unfetchable(error: &FetchError) -> Refusal {
    let refusal = Refusal::new(Code::ParametersInvalid, error.to_string()).with("rule", "http");
    let refusal = if error.is_upgrade() { refusal.with("upgrade", true) } else { refusal };
    refusal.with("path", parameter_path(error.parameter()))
}

fn parameter_path(path: &str) -> String {
    if path.is_empty() { "parameters".to_owned() } else { format!("parameters.{path}") }
}
