//! A request to a model, as it is decoded for a call.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::Request;
use http::{HeaderMap, StatusCode, Uri};
use serde_json::{Map, Value};
use toolgate_gate::Caller;
use toolgate_gate::call::CallRequest;
use toolgate_gate::catalog::Tool;
use toolgate_gate::ports::ledger::Freshness;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::approval::SessionName;
use toolgate_model::credential::ServiceName;
use toolgate_model::hook::RunId;
use toolgate_model::llm::{Api, Vendor};
use toolgate_model::principal::PrincipalId;
use toolgate_model::step::{BETAS, ModelStep, Step, VERSION};

use super::error::Failure;
use crate::limiter::BodyShare;
use crate::router::App;
use crate::{body, caller};

/// Groups calls to a conversation. A claim of the client, which nothing but the grouping depends on.
const SESSION: &str = "x-toolgate-session";
const RUN: &str = "x-toolgate-run";
const BETA: &str = "anthropic-beta";
/// The version of Anthropic's API for clients that name none.
const USUAL_VERSION: &str = "2023-06-01";

/// A decoded request.
pub(super) struct ModelRequest {
    pub(super) app: Arc<App>,
    pub(super) caller: Caller,
    pub(super) api: Api,
    pub(super) tool: Arc<Tool>,
    pub(super) step: ModelStep,
    pub(super) parameters: Map<String, Value>,
    agent: Option<PrincipalId>,
    session: Option<SessionName>,
    run: Option<RunId>,
    address: IpAddr,
    /// Counts the body while the call goes on.
    _held: Option<Arc<BodyShare>>,
}

impl ModelRequest {
    /// Identifies the caller, reads the body, and finds the tool.
    pub(super) async fn read(api: Api, app: Arc<App>, provider: &str, request: Request) -> Result<Self, Failure> {
        let (mut parts, body) = request.into_parts();
        check_keys(&parts.headers)?;
        let refused = |refusal: Refusal| Failure::of_refusal(&refusal, None);
        let (caller, agent) = caller::identify(&mut parts, &app, Freshness::Recent).await.map_err(refused)?;
        check_query(&parts.uri)?;
        let address = caller::peer(&parts.extensions).map_err(refused)?.address;
        let agent = agent.filter(|agent| agent != caller.id());
        let held = parts.extensions.get::<Arc<BodyShare>>().cloned();
        let parsed = {
            let bytes = body::json_bytes(&parts, body, app.max_body).await.map_err(refused)?;
            toolgate_model::strict_json::parse(&bytes)
        };
        let wrong = |reason: String| Failure::new(StatusCode::BAD_REQUEST, "malformed_json", reason);
        let Value::Object(mut parameters) = parsed.map_err(|error| wrong(error.to_string()))? else {
            return Err(wrong("the body must be a JSON object".to_owned()));
        };
        let provider = ServiceName::parse(provider).map_err(|_| Failure::not_there())?;
        let tool = app.gate.administration.model_tool(&caller, &provider, api).await.map_err(refused)?;
        let tool = tool.ok_or_else(Failure::not_there)?;
        let Some(Step::Model(step)) = tool.definition.step.clone() else { return Err(Failure::not_there()) };
        // The body cannot name what only a header does.
        if let Some(name) = [BETAS, VERSION].into_iter().find(|name| parameters.contains_key(*name)) {
            return Err(wrong(format!("`{name}` is sent as a header, and is no member of the body")));
        }
        if api.vendor() == Vendor::Anthropic {
            let version = named(&parts.headers, "anthropic-version")?;
            parameters.insert(VERSION.to_owned(), Value::from(version.as_deref().unwrap_or(USUAL_VERSION)));
        }
        let betas = betas(&parts.headers, &step);
        parameters.extend(betas.map(|betas| (BETAS.to_owned(), Value::from(betas))));
        let (session, run) = (named(&parts.headers, SESSION)?, named(&parts.headers, RUN)?);
        Ok(Self {
            session: session.map(|name| SessionName::parse(&name)).transpose().map_err(|_| bad_header(SESSION))?,
            run: run.map(|name| RunId::parse(&name)).transpose().map_err(|_| bad_header(RUN))?,
            app,
            caller,
            api,
            tool,
            step,
            parameters,
            agent,
            address,
            _held: held,
        })
    }

    /// The call of the tool of this API at a provider.
    pub(super) fn call(&self, provider: &ServiceName, parameters: Map<String, Value>) -> CallRequest {
        let tool = provider.with_tool(self.api.as_str());
        CallRequest {
            agent: self.agent.clone(),
            run: self.run.clone(),
            approval_session: self.session.clone().map(|name| (name, None)),
            ..CallRequest::new(tool, parameters, self.address)
        }
    }

    pub(super) fn streams(&self) -> bool {
        self.parameters.get("stream") == Some(&Value::Bool(true))
    }
}

/// Two different keys are two different callers.
fn check_keys(headers: &HeaderMap) -> Result<(), Failure> {
    match caller::presented_key(headers) {
        Err(refusal) if headers.contains_key("x-api-key") && headers.contains_key("authorization") => {
            Err(Failure::new(StatusCode::BAD_REQUEST, "invalid_field", refusal.reason()))
        }
        _ => Ok(()),
    }
}

/// The beta client of one vendor says so in the query as well, which means nothing here.
fn check_query(uri: &Uri) -> Result<(), Failure> {
    match uri.query() {
        None | Some("" | "beta=true") => Ok(()),
        Some(_) => {
            let refusal = Refusal::new(Code::UnknownField, "requests to models have no parameters in their address");
            Err(Failure::of_refusal(&refusal, None))
        }
    }
}

/// The beta features of the request that the provider's definition allows.
fn betas(headers: &HeaderMap, step: &ModelStep) -> Option<String> {
    let named = headers.get_all(BETA).iter().filter_map(|value| value.to_str().ok());
    let names = named.flat_map(|value| value.split(',')).map(str::trim).filter(|beta| step.allows_beta(beta));
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| names.join(","))
}

fn named(headers: &HeaderMap, name: &'static str) -> Result<Option<String>, Failure> {
    let value = headers.get(name).map(|value| value.to_str().map(str::to_owned));
    value.transpose().map_err(|_| bad_header(name))
}

fn bad_header(name: &str) -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, "invalid_field", format!("the header {name} is not a valid name"))
}
