//! Why an agent can or cannot call a tool: a dry run of the pipeline, step by step.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::Extensions;
use serde_json::{Map, Value};
use toolgate_api::reply::ErrorCode;
use toolgate_api::tools::{Explanation, ExplanationStep, StepRefusal, WhyQuery};
use toolgate_gate::call::{Question, Step};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::context::GrantContext;
use toolgate_model::strict_json;
use toolgate_model::text::check_identifier;

use super::error::Denied;
use crate::caller::{Asked, peer};
use crate::router::App;

pub(super) async fn explain(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<WhyQuery>,
    extensions: Extensions,
) -> Result<Json<Explanation>, Denied> {
    if let Err(error) = check_identifier(&query.tool) {
        return Err(Refusal::new(Code::InvalidField, format!("`tool` {error}")).with("path", "tool").into());
    }
    let agent = query.agent_id.unwrap_or_else(|| caller.id().clone());
    let question = Question {
        agent: agent.clone(),
        tool: query.tool.clone(),
        version: query.version,
        parameters: query.parameters.as_deref().map(read_parameters).transpose()?,
        context: GrantContext { intent_id: query.intent_id, plan_id: query.plan_id, task_id: query.task_id },
        address: peer(&extensions)?.address,
    };
    let explanation = app.gate.pipeline.explain(&caller, question).await?;
    let steps = explanation.steps.iter().map(shown).collect();
    Ok(Json(Explanation { allowed: explanation.allowed, tool: query.tool, agent_id: agent, steps }))
}

/// The parameters of the call in question: a JSON object, as the body of a call has it.
fn read_parameters(text: &str) -> Result<Map<String, Value>, Refusal> {
    let reason = match strict_json::parse(text.as_bytes()) {
        Ok(Value::Object(parameters)) => return Ok(parameters),
        Ok(_) => "`parameters` must be a JSON object".to_owned(),
        Err(error) => format!("`parameters` must be a JSON object: {error}"),
    };
    Err(Refusal::new(Code::InvalidField, reason).with("path", "parameters"))
}

fn shown(step: &Step) -> ExplanationStep {
    let refused = |refusal: &Refusal| StepRefusal {
        code: ErrorCode(refusal.code().as_str().to_owned()),
        reason: refusal.reason().to_owned(),
        details: refusal.details().map(|(name, value)| (name.to_owned(), value.clone())).collect(),
    };
    ExplanationStep {
        stage: step.stage.as_str().to_owned(),
        subject: step.subject.clone(),
        passed: step.verdict.as_ref().map(Result::is_ok),
        refused: step.verdict.as_ref().and_then(|verdict| verdict.as_ref().err()).map(refused),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_gate::refusal::Stage;

    use super::*;

    #[test]
    fn parameters_are_one_object_and_no_refusal_repeats_them() {
        assert_eq!(read_parameters(r#"{"amount": 5}"#).unwrap(), Map::from_iter([("amount".to_owned(), json!(5))]));
        for bad in ["", "[1]", "\"sk_live_secret\"", "null", "{\"a\": 1, \"a\": sk_live_secret}", "{\"a\": 1} x"] {
            let refusal = read_parameters(bad).unwrap_err();
            assert_eq!(refusal.code(), Code::InvalidField, "{bad}");
            assert!(!refusal.reason().contains("sk_live_secret"), "{}", refusal.reason());
        }
    }

    #[test]
    fn a_step_tells_what_was_looked_at_and_a_refused_one_why() {
        let step = |verdict| json!(shown(&Step { stage: Stage::Authorize, verdict, subject: "a grant".to_owned() }));
        assert_eq!(step(None), json!({"stage": "authorize", "subject": "a grant", "passed": null}));
        assert_eq!(step(Some(Ok(()))), json!({"stage": "authorize", "subject": "a grant", "passed": true}));
        let refusal = Refusal::new(Code::GrantExpired, "it has expired").with("grant_id", "g");
        assert_eq!(
            step(Some(Err(refusal))),
            json!({
                "stage": "authorize", "subject": "a grant", "passed": false, "code": "GRANT_EXPIRED",
                "reason": "it has expired", "details": {"grant_id": "g"},
            })
        );
    }
}
