//! Calls and answers for the tests of this room.

use serde_json::{Value, json};
use toolgate_model::approval::{
    Approval, ApprovalRule, ApprovalSession, ApprovalStatus, AskReason, AskSource, Category, Coverage, Reach,
    SessionName, StandingApproval, Workspace,
};
use toolgate_model::id::{ApprovalId, InvocationId, StandingApprovalId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

pub(crate) const BASH: &str = "x-host-toolgate-workspace.Bash";

pub(crate) fn session() -> ApprovalSession {
    ApprovalSession {
        owner: PrincipalId::parse("host").unwrap(),
        name: SessionName::parse("s-1").unwrap(),
        workspace: Some(Workspace::parse("/home/ann/project").unwrap()),
    }
}

/// A call that waits, in [`session`].
pub(crate) fn approval(tool: &str, category: Category, arguments: Value) -> Approval {
    Approval {
        id: ApprovalId::new(Timestamp::EPOCH, [1; 10]),
        tenant: TenantId::default_tenant(),
        status: ApprovalStatus::Pending,
        invocation: InvocationId::new(Timestamp::EPOCH, [2; 10]),
        call: None,
        agent: PrincipalId::parse("agent").unwrap(),
        actor: PrincipalId::parse("host").unwrap(),
        actor_is_person: false,
        tool: tool.to_owned(),
        external: false,
        detached: false,
        category,
        description: String::new(),
        arguments: Some(arguments),
        original_arguments: None,
        action: None,
        digest: String::new(),
        reasons: vec![AskReason { source: AskSource::Mode, text: "the mode asks".to_owned() }],
        rule: ApprovalRule::default(),
        coverable: true,
        session: Some(session()),
        votes: Vec::new(),
        answer: None,
        reason: None,
        notice: None,
        standing: None,
        created_at: Timestamp::EPOCH,
        expires_at: Timestamp::EPOCH,
        resolved_at: None,
    }
}

/// A command that waits.
pub(crate) fn command(line: &str) -> Approval {
    approval(BASH, Category::Exec, json!({"command": line}))
}

pub(crate) fn prefix(words: &str) -> Coverage {
    Coverage::Prefix(words.split(' ').map(str::to_owned).collect())
}

/// An answer that covers later calls, everywhere. Another number makes another id.
pub(crate) fn standing(number: u8, tool: &str, coverage: Coverage) -> StandingApproval {
    StandingApproval {
        id: StandingApprovalId::new(Timestamp::EPOCH, [number; 10]),
        tenant: TenantId::default_tenant(),
        agent: PrincipalId::parse("agent").unwrap(),
        tool: tool.to_owned(),
        external: false,
        action: None,
        coverage,
        reach: Reach::User,
        source: ApprovalId::new(Timestamp::EPOCH, [1; 10]),
        created_by: PrincipalId::parse("ann").unwrap(),
        created_at: Timestamp::EPOCH,
        expires_at: None,
        max_uses: None,
        used: 0,
        last_used_at: None,
        revoked_at: None,
        revoked_by: None,
    }
}
