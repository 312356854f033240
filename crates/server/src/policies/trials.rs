//! Policies without consequences: problems of a draft, its decisions about recent calls, what rules in shadow mode
//! would have decided, and replay of an execution.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use toolgate_api::policies::{
    CheckedPolicies, DraftRequest, Replay, ReplayRun, ShadowReport, ShowShadowReport, SimulationRequest,
    SimulationResponse, SimulationStep,
};
use toolgate_gate::authority::policies::Simulating;

use super::files::{self, policy_files};
use super::shown;
use crate::caller::Identified;
use crate::mount::TypedRequest;
use crate::openintent::error::Denied;
use crate::openintent::progress;
use crate::router::App;

pub(super) async fn check(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    request: Request,
) -> Result<Json<CheckedPolicies>, Denied> {
    let body: DraftRequest = files::read(&app, &caller, request).await?;
    let checked = app.gate.policies.check_policies(&caller, policy_files(body.files)).await?;
    Ok(Json(shown::checked(checked)))
}

pub(super) async fn simulate(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    request: Request,
) -> Result<Response, Denied> {
    let in_lines = progress::is_wanted(request.headers());
    let body: SimulationRequest = files::read(&app, &caller, request).await?;
    let files = policy_files(body.files);
    if in_lines {
        let simulating = app.gate.policies.begin_simulation(&caller, files, body.since).await?;
        return Ok(lines(app, simulating));
    }
    let simulation = app.gate.policies.simulate_policies(&caller, files, body.since).await?;
    Ok(Json(shown::simulation(simulation)).into_response())
}

/// One line for each evaluated part of the log, and the result or the refusal as the last one. A part is evaluated when
/// the previous line was received, so a client that has disconnected costs nothing more.
fn lines(app: Arc<App>, simulating: Simulating) -> Response {
    let lines = stream::unfold(Some(simulating), move |simulating| {
        let app = Arc::clone(&app);
        async move {
            let mut simulating = simulating?;
            let (step, rest) = match app.gate.policies.continue_simulation(&mut simulating).await {
                Ok(Some(progress)) => (shown::simulation_progress(&progress), Some(simulating)),
                Ok(None) => {
                    let body = SimulationResponse::Done(shown::simulation(simulating.finish()));
                    (SimulationStep::Answered { status: 200, body: Box::new(body) }, None)
                }
                Err(refusal) => {
                    let denied = Denied::from(refusal);
                    let body = SimulationResponse::Refused(Box::new(denied.body()));
                    (SimulationStep::Answered { status: denied.status().as_u16(), body: Box::new(body) }, None)
                }
            };
            Some((progress::line(&step), rest))
        }
    });
    (progress::headers(), Body::from_stream(lines)).into_response()
}

pub(super) async fn shadow(request: TypedRequest<ShowShadowReport>) -> Result<ShadowReport, Denied> {
    let TypedRequest { app, caller, query, .. } = request;
    Ok(shown::shadow(app.gate.policies.shadow_report(&caller, query.since).await?))
}

pub(super) async fn replay(request: TypedRequest<ReplayRun>) -> Result<Replay, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let replay = app.gate.policies.replay_policies(&caller, path.as_str()).await?;
    Ok(shown::replay(path, replay))
}
