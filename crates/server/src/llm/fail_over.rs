//! Where a call is made next if a provider fails: only before anything of an answer has reached the client.

use http::StatusCode;
use toolgate_model::credential::ServiceName;

use super::error::Failure;
use super::request::ModelRequest;

/// A provider, and what it calls the model.
pub(super) struct Target {
    pub(super) provider: ServiceName,
    pub(super) model: String,
}

/// The provider of the request, and those that its definition names for when it fails.
pub(super) fn targets(request: &ModelRequest) -> Vec<Target> {
    let model = request.parameters.get("model").and_then(|model| model.as_str()).unwrap_or_default();
    let own = Target { provider: request.tool.service.clone(), model: model.to_owned() };
    let others = request
        .step
        .fail_over
        .iter()
        .map(|other| Target { provider: other.service.clone(), model: other.model(model).to_owned() });
    std::iter::once(own).chain(others).collect()
}

/// Whether another provider may be able to do what this one could not. A refusal of this gate is none of these.
pub(super) fn may_pass_elsewhere(failure: &Failure) -> bool {
    let of_provider = matches!(failure.code.as_str(), "service_error" | "proxy_error");
    of_provider && (failure.status == StatusCode::TOO_MANY_REQUESTS || failure.status.is_server_error())
}
