//! Events of approvals and sessions.

use super::*;
use crate::approval::{
    Approval, ApprovalRule, ApprovalSession, ApprovalStatus, AskReason, AskSource, Category, Channel, Coverage,
    Decision, Mode, Reach, SessionName, StandingApproval, Vote, Workspace,
};
use crate::id::{ApprovalId, StandingApprovalId};

fn approval() -> Approval {
    Approval {
        id: ApprovalId::new(at(5), [5; 10]),
        tenant: TenantId::default_tenant(),
        status: ApprovalStatus::Pending,
        invocation: invocation().id,
        call: None,
        agent: principal("billing"),
        actor: principal("billing"),
        actor_is_person: false,
        tool: "stripe.charges.create".to_owned(),
        external: false,
        detached: false,
        category: Category::Mcp,
        description: "creates a charge".to_owned(),
        arguments: Some(json!({"amount": 1})),
        original_arguments: None,
        action: None,
        digest: "dd".repeat(32),
        reasons: vec![
            AskReason { source: AskSource::Tool, text: "it says so".to_owned() },
            AskReason { source: AskSource::Guardian, text: "a rule says so".to_owned() },
        ],
        rule: ApprovalRule { approvers: 2, ..ApprovalRule::default() },
        coverable: true,
        session: None,
        votes: Vec::new(),
        answer: None,
        reason: None,
        notice: None,
        standing: None,
        created_at: at(5),
        expires_at: at(300_005),
        resolved_at: None,
    }
}

pub(super) fn approvals() -> Vec<EventPayload> {
    let vote = |decision, channel| Vote {
        by: principal("ann"),
        decision,
        channel,
        reason: None,
        answer: None,
        wish: None,
        at: at(6),
    };
    let session =
        ApprovalSession { owner: principal("host"), name: SessionName::parse("s-1").unwrap(), workspace: None };
    let standing_id = StandingApprovalId::new(at(7), [6; 10]);
    let standing = StandingApproval {
        id: standing_id,
        tenant: TenantId::default_tenant(),
        agent: principal("billing"),
        tool: "shell.run".to_owned(),
        external: false,
        action: None,
        coverage: Coverage::Prefix(vec!["git".to_owned(), "status".to_owned()]),
        reach: Reach::Workspace(Workspace::parse("/work").unwrap()),
        source: approval().id,
        created_by: principal("ann"),
        created_at: at(7),
        expires_at: Some(at(60_000)),
        max_uses: Some(5),
        used: 2,
        last_used_at: None,
        revoked_at: None,
        revoked_by: None,
    };
    let everywhere = StandingApproval {
        coverage: Coverage::Tool,
        reach: Reach::User,
        expires_at: None,
        max_uses: None,
        ..standing.clone()
    };
    let in_session = StandingApproval {
        reach: Reach::Session { owner: principal("host"), name: SessionName::parse("s-1").unwrap() },
        ..standing.clone()
    };
    let ended = |status, votes: Vec<Vote>, reason: Option<&str>| Approval {
        status,
        votes,
        reason: reason.map(str::to_owned),
        resolved_at: Some(at(9)),
        ..approval()
    };
    let approve = || vec![vote(Decision::Approve, Channel::Terminal), vote(Decision::Approve, Channel::Web)];
    let covering = Approval { standing: Some(standing_id), ..ended(ApprovalStatus::Approved, approve(), Some("go")) };
    let overriding = vec![vote(Decision::Override, Channel::Host)];
    vec![
        EventPayload::approval_requested(&approval()),
        EventPayload::approval_requested(&Approval { session: Some(session), ..approval() }),
        EventPayload::approval_counted(&Approval { votes: vec![vote(Decision::Approve, Channel::Http)], ..approval() }),
        EventPayload::approval_ended(&ended(ApprovalStatus::Approved, approve(), None)),
        EventPayload::approval_ended(&covering),
        EventPayload::approval_ended(&ended(ApprovalStatus::Approved, overriding, Some("the shop is down"))),
        EventPayload::approval_ended(&ended(
            ApprovalStatus::Denied,
            vec![vote(Decision::Deny, Channel::Web)],
            Some("no"),
        )),
        EventPayload::approval_ended(&ended(ApprovalStatus::TimedOut, approve(), Some("approval timed out"))),
        EventPayload::approval_ended(&ended(ApprovalStatus::Orphaned, Vec::new(), Some("the process died"))),
        EventPayload::approval_ended(&ended(ApprovalStatus::Cancelled, Vec::new(), Some("the caller is gone"))),
        EventPayload::standing_approval_created(&standing),
        EventPayload::standing_approval_created(&everywhere),
        EventPayload::standing_approval_created(&in_session),
        EventPayload::standing_approval_revoked(&standing),
        EventPayload::standing_approval_revoked(&StandingApproval { revoked_by: Some(principal("ann")), ..standing }),
        EventPayload::StandingApprovalUsed(StandingApprovalUsed {
            standing_approval_id: standing_id,
            invocation_id: invocation().id,
            tool: "shell.run".to_owned(),
            used: 3,
        }),
        EventPayload::ApprovalModeChanged(ApprovalModeChanged {
            owner: principal("host"),
            session: SessionName::parse("s-1").unwrap(),
            from: Mode::Default,
            to: Mode::AutoEdit,
        }),
    ]
}
