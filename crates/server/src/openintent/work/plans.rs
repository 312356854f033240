//! Plans.

use toolgate_api::work::plans::{
    CreatePlan, EstimatePlan, ListPlans, Plan, PlanEstimate, ShowPlan, TaskEstimate, UpdatePlan,
};
use toolgate_gate::authority::work::{self as work_estimates, NewPlan};
use toolgate_gate::ports::ledger::PlanChanges;
use toolgate_model::constraint::Cost;
use toolgate_model::work::{self, PlanDetails, PlanState};

use super::{ids, required_version};
use crate::mount::TypedRequest;
use crate::openintent::error::Denied;
use crate::parameters::id;

pub(super) async fn create(request: TypedRequest<CreatePlan>) -> Result<Plan, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let usual = PlanDetails::default();
    let new = NewPlan {
        intent: id(&body.intent_id)?,
        state: body.state.unwrap_or(PlanState::Draft),
        tasks: ids(&body.tasks)?,
        details: PlanDetails {
            on_failure: body.on_failure.unwrap_or(usual.on_failure),
            on_complete: body.on_complete.map_or(usual.on_complete, |text| text.as_str().to_owned()),
            metadata: body.metadata.unwrap_or_default(),
            ..PlanDetails::default()
        },
    };
    Ok(shown(app.gate.work.create_plan(&caller, new).await?))
}

pub(super) async fn show(request: TypedRequest<ShowPlan>) -> Result<Plan, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    Ok(shown(app.gate.work.plan(&caller, path).await?))
}

pub(super) async fn update(request: TypedRequest<UpdatePlan>) -> Result<Plan, Denied> {
    let TypedRequest { app, caller, path, body, headers, .. } = request;
    let version = required_version(&headers)?;
    let changes = PlanChanges {
        state: body.state,
        tasks: body.tasks.as_deref().map(ids).transpose()?,
        on_failure: body.on_failure,
        on_complete: body.on_complete.map(|text| text.as_str().to_owned()),
        metadata: body.metadata,
        ..PlanChanges::default()
    };
    Ok(shown(app.gate.work.change_plan(&caller, path, version, changes).await?))
}

pub(super) async fn list(request: TypedRequest<ListPlans>) -> Result<Vec<Plan>, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    Ok(app.gate.work.plans(&caller, path).await?.into_iter().map(shown).collect())
}

pub(super) async fn estimate(request: TypedRequest<EstimatePlan>) -> Result<PlanEstimate, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let estimate = app.gate.work.estimate_plan(&caller, path).await?;
    let dollars = |micros: u64| Cost::from_micros(micros).map_or(0.0, Cost::dollars);
    let complete = estimate.tasks.iter().all(|task| task.unknown.is_empty());
    let of_task = |task: work_estimates::TaskEstimate| TaskEstimate {
        task_id: task.task,
        min_usd: dollars(task.min_micros),
        max_usd: dollars(task.max_micros),
        unknown: task.unknown.iter().map(|(service, scope)| format!("{service}.{scope}")).collect(),
    };
    Ok(PlanEstimate {
        plan_id: path,
        min_usd: dollars(estimate.min_micros),
        max_usd: dollars(estimate.max_micros),
        tasks: estimate.tasks.into_iter().map(of_task).collect(),
        complete,
    })
}

fn shown(plan: work::Plan) -> Plan {
    Plan {
        id: plan.id,
        intent_id: plan.intent,
        version: plan.version,
        state: plan.state,
        tasks: plan.tasks,
        on_failure: plan.details.on_failure,
        on_complete: plan.details.on_complete,
        metadata: plan.details.metadata,
        created_by: plan.created_by,
        created_at: plan.created_at,
        updated_at: plan.updated_at,
    }
}
