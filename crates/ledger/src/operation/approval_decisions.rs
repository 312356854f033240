//! Decisions: a vote is counted on a locked approval, so that of several concurrent votes the first one ends it. Of
//! earlier votes only those count whose voters may still decide.

use std::collections::{BTreeMap, BTreeSet};

use toolgate_gate::ports::ledger::{AuditContext, DecideApproval, Mandate};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::approval::{Approval, ApprovalStatus, DecideError, Decided, Decider, StandingApproval};
use toolgate_model::event::EventPayload;
use toolgate_model::id::ApprovalId;
use toolgate_model::invocation::IdempotencyKey;
use toolgate_model::permission::Permission;
use toolgate_model::principal::{Principal, PrincipalId};

use super::administration::{Administration, Entitled};
use super::approvals::{entry, hold, store};
use super::reaping::{ORPHANED, waits_in_dead_process};
use super::record::{record, record_all};
use super::{detached, principals, standing_approvals};
use crate::sql::Failure;
use crate::transaction::{Transaction, values};

/// Counts a vote.
pub struct Deciding {
    pub command: DecideApproval,
    /// Whether the call may wait in another process, which may be dead.
    pub shared: bool,
}

impl Administration for Deciding {
    /// The approval as it is now: orphaned where the process of the call is dead.
    type Output = Approval;

    const CHANGES_AUTHORITY: bool = false;

    fn mandate(&self) -> &Mandate {
        &self.command.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<Approval, Failure> {
        let command = &self.command;
        let approval = hold(transaction, &by.tenant, command.id).await?;
        if let Some(key) = &command.idempotency_key
            && was_counted(transaction, by, command, key).await?
        {
            return Ok(approval);
        }
        let approvers = approvers(transaction, &approval, by, &command.vote.by).await?;
        let decider = approvers.get(&command.vote.by).ok_or_else(|| no_approver(&command.vote.by, command.id))?;
        if self.shared
            && by.time < approval.expires_at
            && let Some(orphaned) = approval.ended(ApprovalStatus::Orphaned, ORPHANED, by.time)
            && waits_in_dead_process(transaction, &approval, by.time).await?
        {
            // A decision on a call that will never be made is not counted, and is refused.
            store(transaction, &orphaned).await?;
            let audit = AuditContext { actor: PrincipalId::system(), ..AuditContext::clone(by) };
            record(transaction, &audit, entry(&orphaned, EventPayload::approval_ended(&orphaned))).await?;
            return Ok(orphaned);
        }
        let decider = Decider { id: &command.vote.by, scopes: &decider.scopes };
        let approval = approval.counting(|voter| approvers.get(voter).map(|approver| &approver.scopes));
        let decided = approval.decide(command.vote.clone(), decider).map_err(|error| refusal(error, command.id))?;
        if let Some(key) = &command.idempotency_key {
            remember(transaction, by, command, key).await?;
        }
        let mut ended = match decided {
            Decided::Ended(ended) => ended,
            Decided::Counted(counted) => {
                store(transaction, &counted).await?;
                record(transaction, by, entry(&counted, EventPayload::approval_counted(&counted))).await?;
                return Ok(counted);
            }
        };
        let standing = settle_standing(command, &mut ended);
        store(transaction, &ended).await?;
        detached::wake(transaction, std::iter::once(&ended)).await?;
        let mut entries = vec![entry(&ended, EventPayload::approval_ended(&ended))];
        if let Some(standing) = standing {
            standing_approvals::insert(transaction, &standing).await?;
            entries.push(entry(&ended, EventPayload::standing_approval_created(&standing)));
        }
        record_all(transaction, by, entries).await?;
        Ok(ended)
    }
}

/// The voters so far and the new one, as far as they may decide approvals: votes of principals that have lost the
/// permission do not count. They stay locked until the transaction ends.
async fn approvers<T: Transaction>(
    transaction: &mut T,
    approval: &Approval,
    by: &Entitled<'_>,
    decider: &PrincipalId,
) -> Result<BTreeMap<PrincipalId, Principal>, Failure> {
    let voters: BTreeSet<&PrincipalId> = approval.votes.iter().map(|vote| &vote.by).chain([decider]).collect();
    let mut approvers = BTreeMap::new();
    // In the global lock order.
    for voter in voters {
        let found = principals::locked(transaction, &by.tenant, voter, T::FOR_SHARE).await?;
        let may_decide = |principal: &Principal| {
            principal.removed_at.is_none() && principal.permissions.has(Permission::DecideApprovals)
        };
        if let Some(approver) = found.filter(may_decide) {
            approvers.insert(voter.clone(), approver);
        }
    }
    Ok(approvers)
}

fn no_approver(id: &PrincipalId, approval: ApprovalId) -> Refusal {
    let permission = Permission::DecideApprovals;
    let reason = format!("this needs the permission {permission}, which `{id}` does not have");
    Refusal::new(Code::PermissionDenied, reason).with("required_permission", permission).with("approval_id", approval)
}

/// Whether this very word was counted before.
async fn was_counted<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    command: &DecideApproval,
    key: &IdempotencyKey,
) -> Result<bool, Failure> {
    let sql = "SELECT approval, request_digest FROM approval_votes \
         WHERE tenant = $1 AND approval = $2 AND decider = $3 AND key = $4";
    let name = values![&by.tenant, command.id, &command.vote.by, key.as_str()];
    let Some(row) = transaction.query_optional(sql, name).await? else { return Ok(false) };
    if row.text(1)? == command.request_digest {
        return Ok(true);
    }
    let reason = "this idempotency key was used for another decision; use a new key for a new decision";
    Err(Refusal::new(Code::IdempotencyConflict, reason).with("approval_id", command.id).into())
}

async fn remember<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    command: &DecideApproval,
    key: &IdempotencyKey,
) -> Result<(), Failure> {
    let sql = "INSERT INTO approval_votes (tenant, approval, decider, key, request_digest, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6)";
    let parameters =
        values![&by.tenant, command.id, &command.vote.by, key.as_str(), command.request_digest.as_str(), by.time,];
    transaction.execute(sql, parameters).await?;
    Ok(())
}

/// The standing approval that this decision creates, if any. If one was requested and cannot be created, the approval
/// says why.
fn settle_standing(command: &DecideApproval, approval: &mut Approval) -> Option<StandingApproval> {
    if approval.status != ApprovalStatus::Approved {
        return None;
    }
    approval.notice = command.notice.clone();
    let obstacle = obstacle(approval);
    match (&command.standing, obstacle) {
        (Some(standing), None) => {
            approval.standing = Some(standing.id);
            // INVARIANT: it covers calls of the agent, the tool and the action that were shown, whatever was requested.
            Some(StandingApproval {
                tenant: approval.tenant.clone(),
                agent: approval.agent.clone(),
                tool: approval.tool.clone(),
                external: approval.external,
                action: approval.action.clone(),
                source: approval.id,
                ..standing.clone()
            })
        }
        (Some(_), Some(obstacle)) => {
            approval.notice.get_or_insert_with(|| format!("only this call is approved: {obstacle}"));
            None
        }
        (None, _) => None,
    }
}

/// Why no decision on this approval can cover later calls.
fn obstacle(approval: &Approval) -> Option<&'static str> {
    if !approval.coverable {
        Some("calls of this kind need an approval each time")
    } else if !approval.rule.standing {
        Some("the rule of this tool requires a decision each time")
    } else if approval.rule.approvers != 1 {
        Some("an approval that needs several approvers covers one call")
    } else {
        None
    }
}

fn refusal(error: DecideError, id: ApprovalId) -> Refusal {
    let reason = error.to_string();
    let refuse = |code| Refusal::new(code, reason.clone()).with("approval_id", id);
    match error {
        DecideError::Already { status, by, channel } => {
            refuse(Code::ApprovalDecided).with("status", status).with("decided_by", by).with("channel", channel)
        }
        DecideError::AlreadyVoted(by) => {
            refuse(Code::ApprovalDecided).with("status", ApprovalStatus::Pending).with("decided_by", by)
        }
        DecideError::TimedOut => refuse(Code::ApprovalEnded).with("status", ApprovalStatus::TimedOut),
        DecideError::Ended(status) => refuse(Code::ApprovalEnded).with("status", status),
        DecideError::OwnCall(_)
        | DecideError::OwnRequest(_)
        | DecideError::NotOfGroup(_)
        | DecideError::NotOverridable(_) => refuse(Code::PermissionDenied),
        DecideError::ReasonMissing => refuse(Code::InvalidField).with("path", "reason"),
        DecideError::AnswerMissing | DecideError::AnswerNotOffered(_) => {
            refuse(Code::InvalidField).with("path", "answer")
        }
    }
}
