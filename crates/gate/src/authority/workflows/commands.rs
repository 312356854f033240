//! Changes as commands of the ledger, each with the checks of its use case.

use std::collections::BTreeMap;

use toolgate_model::text::Line;
use toolgate_model::work::CoordinatorStatus;

use super::WorkflowAdministration;
use super::difference::Act;
use super::resolve::{Desired, DesiredGrant};
use crate::authority::grants::NewGrant;
use crate::authority::policies::NewPolicies;
use crate::authority::principals::NewPrincipal;
use crate::identify::Caller;
use crate::ports::ledger::{
    ChangeCoordinator, CoordinatorChanges, OwnedKind, OwnedObject, Ownership, WorkflowStep, WorkflowWork,
};
use crate::refusal::Refusal;

impl WorkflowAdministration {
    /// The commands of one change. What gets an id here is added to what the workflow owns.
    pub(super) async fn commands(
        &self,
        caller: &Caller,
        desired: &Desired<'_>,
        act: Act,
        taken: &mut BTreeMap<OwnedObject, Ownership>,
        work: &mut Option<WorkflowWork>,
    ) -> Result<Vec<WorkflowStep>, Refusal> {
        let administration = &self.administration;
        let workflow = desired.workflow;
        let step = match act {
            Act::CreateAgent { id, kind, attributes } => {
                let new = NewPrincipal { id, kind, attributes };
                let mut command = administration.principal_creation(caller, new).await?;
                command.unresolved.retain(|tool| !is_declared(workflow, tool));
                WorkflowStep::CreatePrincipal(Box::new(command))
            }
            Act::UpdateAgent { id, changes } => {
                let mut command = administration.principal_update(caller, &id, changes).await?;
                command.unresolved.retain(|tool| !is_declared(workflow, tool));
                WorkflowStep::UpdatePrincipal(Box::new(command))
            }
            Act::RemoveAgent { id } => {
                WorkflowStep::RemovePrincipal(administration.principal_removal(caller, &id).await?)
            }
            Act::CreateGrant(wanted) => self.grant(caller, *wanted, taken).await?,
            Act::ReplaceGrant(before, wanted) => {
                let reason = reason(workflow.name.value.as_str(), "declares other terms");
                let revoke = administration.grant_revocation(caller, before, reason).await?;
                let create = self.grant(caller, *wanted, taken).await?;
                return Ok(vec![WorkflowStep::RevokeGrant(revoke), create]);
            }
            Act::RevokeGrant(id) => {
                let reason = reason(workflow.name.value.as_str(), "no longer declares it");
                WorkflowStep::RevokeGrant(administration.grant_revocation(caller, id, reason).await?)
            }
            Act::ApplyService { definition, replace } => WorkflowStep::ApplyService(Box::new(
                administration.service_application(caller, *definition, replace)?,
            )),
            Act::RemoveService { service, version } => {
                WorkflowStep::RemoveService(administration.service_removal(caller, service, Some(version))?)
            }
            Act::ApplyPolicies { files, expected } => {
                let note = Some(format!("workflow {}", workflow.name.value));
                let new = NewPolicies { files, note, expected: Some(expected) };
                let command = self.policies.policy_application(caller, new, Self::declared_tools(workflow)).await?;
                WorkflowStep::ApplyPolicies(Box::new(command))
            }
            Act::SetBudget(budget) => {
                WorkflowStep::SetTenantBudget(administration.tenant_budget(caller, caller.tenant(), budget)?)
            }
            Act::EndCoordinator(id) => {
                let status = Some(CoordinatorStatus::Completed);
                let changes = CoordinatorChanges { status, ..CoordinatorChanges::default() };
                let audit = caller.mandate(self.clock.now());
                let command = ChangeCoordinator { audit, id, expected_version: None, changes };
                WorkflowStep::ChangeCoordinator(Box::new(command))
            }
            Act::CreateWork => {
                let (steps, created) = self.work(caller, desired)?;
                *work = Some(created);
                return Ok(steps);
            }
            Act::Note => return Ok(Vec::new()),
        };
        Ok(vec![step])
    }

    async fn grant(
        &self,
        caller: &Caller,
        wanted: DesiredGrant,
        taken: &mut BTreeMap<OwnedObject, Ownership>,
    ) -> Result<WorkflowStep, Refusal> {
        let DesiredGrant { agent, credential, authority, default_expiry, allow_indefinite, .. } = wanted;
        let new = NewGrant {
            credential: credential.id,
            agent,
            granted_by: None,
            scopes: authority.scopes,
            constraints: authority.constraints,
            context: authority.context,
            delegatable: authority.delegatable,
            delegation_depth: Some(authority.delegation_depth),
            expires_at: Some(authority.expires_at),
            allow_indefinite,
        };
        let command = self.administration.grant_creation(caller, new).await?;
        let object = OwnedObject { kind: OwnedKind::Grant, id: command.grant.id.to_string() };
        taken.insert(object, Ownership { default_expiry, ..Ownership::default() });
        Ok(WorkflowStep::CreateGrant(Box::new(command)))
    }
}

/// Whether a file defines this tool itself.
fn is_declared(workflow: &toolgate_model::workflow::Workflow, tool: &toolgate_model::descriptor::ToolId) -> bool {
    let Some((source, service, name)) = tool.service_and_tool() else { return false };
    let services = workflow.services.iter().map(|declared| &declared.value);
    let mut found = services.filter(|definition| definition.service == service && definition.source == source);
    found.any(|definition| definition.tools.contains_key(&name))
}

fn reason(workflow: &str, why: &str) -> Option<Line> {
    Line::parse(&format!("the workflow {workflow} {why}")).ok()
}
