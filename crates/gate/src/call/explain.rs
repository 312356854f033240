//! Dry run of the pipeline: why an agent can or cannot call a tool. The same code as for a call, up to the admission,
//! with nothing reserved, sent or recorded.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_model::context::GrantContext;
use toolgate_model::guard::{Content, Hook, Verdict};
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;
use toolgate_model::service::ServiceVersion;

use super::Pipeline;
use super::authorize::authorizes;
use super::constrain::eligible;
use super::eligible::Candidate;
use super::guard::refusal_of;
use super::{Call, CallRequest};
use crate::identify::Caller;
use crate::ports::ledger::Freshness;
use crate::refusal::{Refusal, Stage};

pub struct Question {
    /// The agent that would call.
    pub agent: PrincipalId,
    /// The tool, as the call would name it.
    pub tool: String,
    pub version: Option<ServiceVersion>,
    /// Without parameters, the stages that need them are skipped.
    pub parameters: Option<Map<String, Value>>,
    pub context: GrantContext,
    pub address: IpAddr,
}

/// One check of the dry run.
pub struct Step {
    pub stage: Stage,
    /// `None` is a note that decides nothing.
    pub verdict: Option<Result<(), Refusal>>,
    /// What was checked.
    pub subject: String,
}

/// All checks, in order.
pub struct Explanation {
    /// Whether the call would reach its admission.
    pub allowed: bool,
    pub steps: Vec<Step>,
}

impl Pipeline {
    /// Explains step by step what would happen to a call.
    pub async fn explain(&self, caller: &Caller, question: Question) -> Result<Explanation, Refusal> {
        caller.require_acting_for(&question.agent)?;
        let mut explanation = ExplanationBuilder { steps: Vec::new() };
        let allowed = self.explain_stages(caller, question, &mut explanation).await?;
        Ok(Explanation { allowed, steps: explanation.steps })
    }

    async fn explain_stages(
        &self,
        caller: &Caller,
        question: Question,
        explanation: &mut ExplanationBuilder,
    ) -> Result<bool, Refusal> {
        let given = question.parameters.is_some();
        let parameters = Value::Object(question.parameters.clone().unwrap_or_default());
        let call = self.dry(caller, question)?;
        if !explanation.says(Stage::Identify, format!("`{}` may call tools", call.agent), self.may_call(&call).await?) {
            return Ok(false);
        }
        let call = match self.in_context(&call, Freshness::Newest).await {
            Ok(None) => call,
            Ok(Some(bound)) => {
                explanation.says(Stage::Authorize, "the agent may act in this context".to_owned(), Ok(()));
                bound
            }
            Err(refusal) => {
                explanation.says(Stage::Authorize, "the agent may act in this context".to_owned(), Err(refusal));
                return Ok(false);
            }
        };
        let resolved = match self.resolve(&call, Freshness::Newest).await {
            Ok(resolved) => resolved.into_candidates(),
            Err(refusal) => {
                explanation.says(Stage::Resolve, format!("`{}` names a tool for it", call.tool), Err(refusal));
                self.explain_tool(caller, &call, explanation).await?;
                return Ok(false);
            }
        };
        let name = resolved.first().map_or("", |candidate| candidate.tool.qualified_name());
        explanation.says(Stage::Resolve, format!("`{}` is the tool {name}", call.tool), Ok(()));
        let now = self.clock.now();
        let mut passed = Vec::new();
        for candidate in resolved {
            if explanation.says(Stage::Authorize, through(&candidate), authorizes(&call, &candidate, now)) {
                passed.push(candidate);
            }
        }
        if passed.is_empty() {
            return Ok(false);
        }
        if !given {
            explanation.notes(Stage::Constrain, "pass parameters to check them against the schema and the grants");
        }
        let mut eligible_grants = 0;
        for candidate in passed.iter().filter(|_| given) {
            let subject = format!("the parameters {}", through(candidate));
            eligible_grants += u32::from(explanation.says(
                Stage::Constrain,
                subject,
                eligible(&call, candidate.clone(), &parameters).map(drop),
            ));
        }
        if given && eligible_grants == 0 {
            return Ok(false);
        }
        if let (Some(candidate), true) = (passed.first(), given)
            && !self.explain_guardians(&call, candidate, explanation).await?
        {
            return Ok(false);
        }
        for candidate in &passed {
            self.explain_limits(&call, candidate, explanation);
        }
        Ok(true)
    }

    /// The verdict of the policies, and the guardians that would be consulted.
    async fn explain_guardians(
        &self,
        call: &Call,
        candidate: &Candidate,
        explanation: &mut ExplanationBuilder,
    ) -> Result<bool, Refusal> {
        let nothing = Map::new();
        let arguments = call.parameters.as_object().unwrap_or(&nothing);
        let event = call.event(
            candidate,
            Hook::ToolCallRequest,
            Content::Arguments(Cow::Borrowed(arguments)),
            self.clock.now(),
        );
        let hooked = call.hooked(candidate, &event, Freshness::Newest, Some(&[]));
        let (verdict, others) = self.guardian.dry_run(&hooked).await?;
        for name in others {
            explanation.notes(
                Stage::Guard,
                &format!(
                    "guardian `{name}` would also be consulted; a dry run does not consult \
                    it"
                ),
            );
        }
        Ok(match verdict {
            Verdict::Deny(denial) => explanation.says(Stage::Guard, "the policies".to_owned(), Err(refusal_of(denial))),
            Verdict::Pass { content, asks } => {
                if content.is_some() {
                    explanation.notes(Stage::Guard, "the policies modify the parameters");
                }
                for ask in asks {
                    explanation.notes(Stage::Approve, &format!("a person must approve: {}", ask.reason));
                }
                explanation.says(Stage::Guard, "the policies allow it".to_owned(), Ok(()))
            }
        })
    }

    fn dry(&self, caller: &Caller, question: Question) -> Result<Arc<Call>, Refusal> {
        let agent = question.agent.clone();
        let parameters = question.parameters.unwrap_or_default();
        let request = CallRequest {
            version: question.version,
            agent: Some(question.agent),
            context: question.context,
            ..CallRequest::new(question.tool, parameters, question.address)
        };
        let (call, _) = self.begin(caller.clone(), request)?;
        // The caller itself need not be allowed to call: the dry run is about another agent.
        Ok(Arc::new(Call { agent, ..call }))
    }

    /// Whether the agent exists and may call tools at all.
    async fn may_call(&self, call: &Call) -> Result<Result<(), Refusal>, Refusal> {
        use crate::refusal::Code;
        let agent = self.principals.principal(call.caller.tenant(), &call.agent).await?;
        Ok(match agent.filter(|agent| agent.removed_at.is_none()) {
            None => Err(Refusal::new(Code::AgentNotFound, format!("there is no agent `{}`", call.agent))),
            Some(agent) if agent.permissions.has(Permission::InvokeTools) => Ok(()),
            Some(_) => {
                let reason = format!("it does not have the permission {}", Permission::InvokeTools);
                Err(Refusal::new(Code::PermissionDenied, reason))
            }
        })
    }

    /// What a caller that manages tools may learn about a tool that the agent does not see.
    async fn explain_tool(
        &self,
        caller: &Caller,
        call: &Call,
        explanation: &mut ExplanationBuilder,
    ) -> Result<(), Refusal> {
        if !caller.may(Permission::ManageTools) {
            return Ok(());
        }
        let catalog = self.catalogs.of(caller.tenant(), Freshness::Newest).await?;
        let wanted = call.tool.strip_prefix("connector:").unwrap_or(&call.tool);
        let is_meant = |service: &str, tool: &str| {
            wanted == tool || wanted.strip_prefix(service).and_then(|rest| rest.strip_prefix('.')) == Some(tool)
        };
        for service in catalog.services() {
            for tool in service.tools().filter(|tool| is_meant(tool.service.as_str(), tool.name.as_str())) {
                let version = &service.registered.definition.version;
                explanation.notes(
                    Stage::Resolve,
                    &format!(
                        "version {version} of service `{}` has the tool `{}`: give the agent a grant with the scope \
                         `{}` on a credential of that service",
                        tool.service, tool.name, tool.definition.scope
                    ),
                );
            }
        }
        Ok(())
    }

    /// Limits that only the admission checks.
    fn explain_limits(&self, call: &Call, candidate: &Candidate, explanation: &mut ExplanationBuilder) {
        let tool = &candidate.tool;
        for coordinator in candidate.coordinators() {
            let (guardrails, id) = (&coordinator.guardrails, coordinator.id);
            if guardrails.asks_for(tool.qualified_name(), tool.service.as_str(), tool.definition.scope.as_str()) {
                let note = format!("a guardrail of coordinator {id} requires approval of each call");
                explanation.notes(Stage::Approve, &note);
            }
            if let Some(most) = guardrails.max_tool_invocations {
                explanation.notes(Stage::Admit, &format!("coordinator {id} and agents below it may make {most} calls"));
            }
            if let Some(most) = guardrails.cost_limit() {
                explanation.notes(Stage::Admit, &format!("coordinator {id} and agents below it may spend {most}"));
            }
        }
        for grant in candidate
            .held_grant()
            .into_iter()
            .flat_map(|held_grant| held_grant.lineage.ancestors().iter().chain([held_grant.lineage.grant()]))
        {
            if let Some(limit) = grant.authority.constraints.max_invocations_per_hour {
                explanation.notes(Stage::Admit, &format!("grant {} allows {limit} calls in any hour", grant.id));
            }
        }
        let own = candidate.tool.definition.rate_limit;
        let limit =
            candidate.agent.as_ref().map_or(own, |agent| agent.rate_limit_for(candidate.tool.qualified_name(), own));
        if let Some(limit) = limit {
            let (requests, per) = (limit.requests(), limit.per().as_secs());
            explanation.notes(Stage::Admit, &format!("`{}` may call it {requests} times in {per} seconds", call.agent));
        }
        if candidate.tool.definition.approval == Some(toolgate_model::descriptor::ApprovalNeed::Always) {
            explanation.notes(Stage::Approve, "every call of this tool needs a person's approval");
        }
    }
}

fn through(candidate: &Candidate) -> String {
    match candidate.grant() {
        Some(grant) => format!("through grant {grant}"),
        None => "by the agent's own scopes".to_owned(),
    }
}

struct ExplanationBuilder {
    steps: Vec<Step>,
}

impl ExplanationBuilder {
    fn says(&mut self, stage: Stage, subject: String, verdict: Result<(), Refusal>) -> bool {
        let passed = verdict.is_ok();
        self.steps.push(Step { stage, verdict: Some(verdict), subject });
        passed
    }

    fn notes(&mut self, stage: Stage, note: &str) {
        if !self.steps.iter().any(|step| step.subject == note) {
            self.steps.push(Step { stage, verdict: None, subject: note.to_owned() });
        }
    }
}
