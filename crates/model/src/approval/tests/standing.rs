//! How far a standing approval reaches, how long it lasts, and what it says of itself.

use super::*;

fn session(owner: &str, name: &str, workspace: Option<&str>) -> ApprovalSession {
    ApprovalSession {
        owner: principal(owner),
        name: SessionName::parse(name).unwrap(),
        workspace: workspace.map(|path| Workspace::parse(path).unwrap()),
    }
}

fn standing(coverage: Coverage, reach: Reach) -> StandingApproval {
    StandingApproval {
        id: StandingApprovalId::new(at(0), [3; 10]),
        tenant: TenantId::default_tenant(),
        agent: principal("agent"),
        tool: "workspace.Bash".to_owned(),
        external: false,
        action: None,
        coverage,
        reach,
        source: pending().id,
        created_by: principal("ann"),
        created_at: at(0),
        expires_at: None,
        max_uses: None,
        used: 0,
        last_used_at: None,
        revoked_at: None,
        revoked_by: None,
    }
}

#[test]
fn a_session_is_reached_by_its_owner_and_its_name() {
    let reach = Reach::Session { owner: principal("host"), name: SessionName::parse("s-1").unwrap() };
    assert!(reach.reaches(Some(&session("host", "s-1", None))));
    assert!(reach.reaches(Some(&session("host", "s-1", Some("/elsewhere")))));
    assert!(!reach.reaches(Some(&session("host", "s-2", None))));
    assert!(!reach.reaches(Some(&session("other-host", "s-1", None))));
    assert!(!reach.reaches(None));
}

#[test]
fn a_workspace_is_reached_by_exactly_its_directory() {
    let reach = Reach::Workspace(Workspace::parse("/home/ann/project").unwrap());
    assert!(reach.reaches(Some(&session("host", "s-1", Some("/home/ann/project")))));
    assert!(reach.reaches(Some(&session("other", "s-9", Some("/home/ann/project")))));
    for elsewhere in ["/home/ann/project2", "/home/ann", "/home/ann/project/sub"] {
        assert!(!reach.reaches(Some(&session("host", "s-1", Some(elsewhere)))), "{elsewhere}");
    }
    assert!(!reach.reaches(Some(&session("host", "s-1", None))));
    assert!(!reach.reaches(None));
}

#[test]
fn what_reaches_everywhere_reaches_calls_without_a_session() {
    assert!(Reach::User.reaches(None));
    assert!(Reach::User.reaches(Some(&session("host", "s-1", None))));
}

#[test]
fn a_standing_approval_ends_by_being_taken_back_by_its_time_or_by_its_uses() {
    let fresh = standing(Coverage::Tool, Reach::User);
    assert_eq!(fresh.state(at(i64::from(u32::MAX))), StandingState::Active);
    let limited = StandingApproval { expires_at: Some(at(10)), max_uses: Some(2), ..fresh };
    assert_eq!(limited.state(at(9)), StandingState::Active);
    assert_eq!(limited.state(at(10)), StandingState::Expired);
    let used = limited.used_at(at(3)).used_at(at(4));
    assert_eq!((used.used, used.last_used_at), (2, Some(at(4))));
    assert_eq!(used.state(at(5)), StandingState::UsedUp);
    let revoked = StandingApproval { revoked_at: Some(at(1)), ..limited };
    assert_eq!(revoked.state(at(2)), StandingState::Revoked);
}

#[test]
fn the_rule_of_a_standing_approval_says_what_for_whom_and_where() {
    let prefix = Coverage::Prefix(vec!["cargo".to_owned(), "test".to_owned()]);
    let reach = Reach::Session { owner: principal("host"), name: SessionName::parse("s-1").unwrap() };
    assert_eq!(
        standing(prefix.clone(), reach).rule(),
        "commands of workspace.Bash that begin with `cargo test` by agent, in session s-1"
    );
    let workspace = Reach::Workspace(Workspace::parse("/srv/app").unwrap());
    assert_eq!(standing(Coverage::Tool, workspace).rule(), "every call of workspace.Bash by agent, in /srv/app");
    assert_eq!(standing(Coverage::Tool, Reach::User).rule(), "every call of workspace.Bash by agent, everywhere");
}

#[test]
fn a_standing_approval_is_restored_as_it_was_kept() {
    let prefix = Coverage::Prefix(vec!["npm".to_owned(), "run".to_owned(), "test:unit".to_owned()]);
    let reach = Reach::Session { owner: principal("host"), name: SessionName::parse("s-1").unwrap() };
    for standing in [standing(prefix, reach), standing(Coverage::Tool, Reach::User)] {
        let kept = serde_json::to_string(&standing).unwrap();
        assert_eq!(serde_json::from_str::<StandingApproval>(&kept).unwrap(), standing);
    }
}
