//! What the state machine, the modes, the rules and standing approvals promise.

mod deciding;
mod machine;
mod standing;

use serde_json::{Value, json};

use super::*;
use crate::principal_scope::HeldScopes;

/// When the approvals of these tests can be answered until.
const END: i64 = 300_000;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap()
}

fn principal(name: &str) -> PrincipalId {
    PrincipalId::parse(name).unwrap()
}

/// A call by `agent`, waiting.
fn pending() -> Approval {
    Approval {
        id: ApprovalId::new(at(0), [1; 10]),
        tenant: TenantId::default_tenant(),
        status: ApprovalStatus::Pending,
        invocation: InvocationId::new(at(0), [2; 10]),
        call: None,
        agent: principal("agent"),
        actor: principal("agent"),
        actor_is_person: false,
        tool: "workspace.Bash".to_owned(),
        external: false,
        detached: false,
        category: Category::Exec,
        description: "runs a command".to_owned(),
        arguments: Some(json!({"command": "cargo build"})),
        original_arguments: None,
        action: None,
        digest: "digest".to_owned(),
        reasons: vec![AskReason { source: AskSource::Mode, text: "the mode asks".to_owned() }],
        rule: ApprovalRule::default(),
        coverable: true,
        session: None,
        votes: Vec::new(),
        answer: None,
        reason: None,
        notice: None,
        standing: None,
        created_at: at(0),
        expires_at: at(END),
        resolved_at: None,
    }
}

fn question(arguments: Value) -> Approval {
    Approval {
        arguments: Some(arguments),
        reasons: vec![AskReason { source: AskSource::Question, text: "it asks".to_owned() }],
        ..pending()
    }
}

fn vote(by: &str, decision: Decision) -> Vote {
    Vote { by: principal(by), decision, channel: Channel::Http, reason: None, answer: None, wish: None, at: at(1_000) }
}

/// Somebody with these scopes says something.
fn say(approval: &Approval, vote: Vote, scopes: &[&str]) -> Result<Decided, DecideError> {
    let id = vote.by.clone();
    let scopes = HeldScopes::from_stored(scopes.iter().map(|&scope| scope.to_owned()));
    approval.decide(vote, Decider { id: &id, scopes: &scopes })
}

fn yes(approval: &Approval, by: &str) -> Result<Decided, DecideError> {
    say(approval, vote(by, Decision::Approve), &[])
}

fn no(approval: &Approval, by: &str) -> Result<Decided, DecideError> {
    say(approval, vote(by, Decision::Deny), &[])
}

fn ended(decided: Result<Decided, DecideError>) -> Approval {
    match decided {
        Ok(Decided::Ended(approval)) => approval,
        other => panic!("not the end: {other:?}"),
    }
}

fn counted(decided: Result<Decided, DecideError>) -> Approval {
    match decided {
        Ok(Decided::Counted(approval)) => approval,
        other => panic!("not counted: {other:?}"),
    }
}

#[test]
fn the_default_mode_passes_nothing() {
    assert_eq!(Mode::default(), Mode::Default);
    assert!(Category::ALL.into_iter().all(|category| !Mode::Default.passes(category)));
}

#[test]
fn auto_edit_passes_what_reads_and_what_edits_and_nothing_else() {
    let passed: Vec<Category> = Category::ALL.into_iter().filter(|&category| Mode::AutoEdit.passes(category)).collect();
    assert_eq!(passed, [Category::Info, Category::Edit]);
}

#[test]
fn force_passes_everything() {
    assert!(Category::ALL.into_iter().all(|category| Mode::Force.passes(category)));
}

#[test]
fn every_word_for_a_mode_parses_back_to_it() {
    for (mode, word) in [(Mode::Default, "default"), (Mode::AutoEdit, "auto_edit"), (Mode::Force, "force")] {
        assert_eq!(mode.as_str(), word);
        assert_eq!(Mode::parse(word), Ok(mode));
        assert_eq!(serde_json::to_value(mode).unwrap(), json!(word));
        assert_eq!(serde_json::from_value::<Mode>(json!(word)).unwrap(), mode);
    }
}

#[test]
fn the_other_spellings_of_force_are_understood() {
    for word in ["yolo", "dangerously_skip_permissions", "dangerously-skip-permissions"] {
        assert_eq!(Mode::parse(word), Ok(Mode::Force), "{word}");
    }
}

#[test]
fn an_unknown_mode_is_an_error_that_names_it_and_never_a_default() {
    for word in ["", "Force", "autoedit", "auto-edit", "force ", "plan"] {
        let error = Mode::parse(word).unwrap_err();
        assert!(error.to_string().ends_with(&format!("force, not `{word}`")), "{error}");
    }
}

#[test]
fn a_later_mode_passes_whatever_an_earlier_one_passes() {
    for (earlier, later) in [(Mode::Default, Mode::AutoEdit), (Mode::AutoEdit, Mode::Force)] {
        assert!(earlier < later);
        assert!(Category::ALL.into_iter().all(|category| !earlier.passes(category) || later.passes(category)));
    }
}

#[test]
fn words_for_statuses_categories_channels_and_attendance_parse_back() {
    for &status in ApprovalStatus::ALL {
        assert_eq!(ApprovalStatus::parse(status.as_str()), Some(status));
        assert_eq!(serde_json::to_value(status).unwrap(), json!(status.as_str()));
    }
    for category in Category::ALL {
        assert_eq!(Category::parse(category.as_str()), Some(category));
        assert_eq!(serde_json::to_value(category).unwrap(), json!(category.as_str()));
    }
    for channel in [Channel::Http, Channel::Terminal, Channel::Host, Channel::Web] {
        assert_eq!(Channel::parse(channel.as_str()), Some(channel));
        assert_eq!(serde_json::to_value(channel).unwrap(), json!(channel.as_str()));
    }
    for attendance in [Attendance::Inbox, Attendance::Required] {
        assert_eq!(Attendance::parse(attendance.as_str()), Some(attendance));
    }
    assert_eq!(ApprovalStatus::parse("Approved"), None);
}

#[test]
fn only_what_was_asked_for_or_waits_is_open() {
    let open: Vec<&str> =
        ApprovalStatus::ALL.iter().filter(|status| status.is_open()).map(|status| status.as_str()).collect();
    assert_eq!(open, ["requested", "pending"]);
}

#[test]
fn the_texts_that_programs_compare_stay_as_they_are() {
    assert_eq!(TIMED_OUT, "approval timed out (no host response)");
    assert_eq!(HOST_CLOSED, "host closed the command stream while this approval was pending");
    assert_eq!(DENIED_BY_HOST, "denied by host");
}

#[test]
fn a_rule_asks_for_somebody_and_ends_some_time() {
    assert_eq!(ApprovalRule::default().check(), Ok(()));
    for approvers in [0, 17] {
        let rule = ApprovalRule { approvers, ..ApprovalRule::default() };
        assert_eq!(rule.check(), Err(("approvers", RuleError::Approvers)));
    }
    for seconds in [0, MAX_WAIT.as_secs() + 1] {
        let rule = ApprovalRule { ttl_seconds: Some(seconds), ..ApprovalRule::default() };
        assert_eq!(rule.check(), Err(("ttl_seconds", RuleError::Ttl)));
    }
    for group in ["", "on call", "a:b", "*"] {
        let rule = ApprovalRule { groups: [group.to_owned()].into(), ..ApprovalRule::default() };
        assert_eq!(rule.check(), Err(("groups", RuleError::Group)), "{group}");
    }
}

#[test]
fn a_field_that_a_rule_does_not_know_is_an_error() {
    assert_eq!(serde_json::from_value::<ApprovalRule>(json!({})).unwrap(), ApprovalRule::default());
    let error = serde_json::from_value::<ApprovalRule>(json!({"aprovers": 2})).unwrap_err();
    assert!(error.to_string().contains("aprovers"), "{error}");
}

#[test]
fn an_approval_is_restored_as_it_was_kept() {
    let mut approval = ended(no(&pending(), "ann"));
    approval.session = Some(ApprovalSession {
        owner: principal("host"),
        name: SessionName::parse("s-1").unwrap(),
        workspace: Some(Workspace::parse("/home/ann/project").unwrap()),
    });
    let kept = serde_json::to_string(&approval).unwrap();
    assert_eq!(serde_json::from_str::<Approval>(&kept).unwrap(), approval);
}
