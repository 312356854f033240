//! What stands, what it covers, and what nothing ever covers.

use serde_json::{Value, json};
use toolgate_model::approval::{ApprovalRule, AskReason, AskSource, SessionName, Workspace};
use toolgate_model::principal::PrincipalId;

use super::*;
use crate::fixture::{BASH, approval, command, prefix, session, standing as stands};
use crate::links::NoLinks;

fn standing(approval: &Approval, wish: &StandingRequest) -> Result<(Coverage, Reach), String> {
    super::standing(approval, wish, &NoLinks)
}

fn covering(standing: &[StandingApproval], call: &Covered<'_>) -> Result<Vec<StandingApprovalId>, String> {
    super::covering(standing, call, &NoLinks)
}

fn wish(coverage: RequestedCoverage, reach: Option<RequestedReach>) -> StandingRequest {
    StandingRequest { coverage, reach, expires_in_seconds: None, max_uses: None }
}

fn always() -> StandingRequest {
    wish(RequestedCoverage::Tool, None)
}

fn always_prefix(text: &str) -> StandingRequest {
    wish(RequestedCoverage::Prefix(text.to_owned()), None)
}

fn this_session() -> Reach {
    Reach::Session { owner: session().owner, name: session().name }
}

/// Which numbers of standing approvals cover a call of a tool, in [`session`].
fn covers(standing: &[StandingApproval], tool: &str, arguments: Value) -> Result<Vec<StandingApprovalId>, String> {
    let session = session();
    covering(standing, &Covered { tool, external: false, action: None, arguments: &arguments, session: Some(&session) })
}

fn runs(standing: &[StandingApproval], line: &str) -> bool {
    covers(standing, BASH, json!({"command": line})).is_ok()
}

#[test]
fn always_is_by_the_tools_name_and_never_by_its_category() {
    let (coverage, reach) = standing(&command("ls"), &always()).unwrap();
    assert_eq!((coverage.clone(), reach), (Coverage::Tool, this_session()));
    let given = [stands(1, BASH, coverage)];
    assert!(runs(&given, "ls") && runs(&given, "echo $(date)"));
    for tool in ["x-host-toolgate-workspace.Write", "other.Bash", "Bash", "x-host-toolgate-workspace.bash"] {
        let reason = covers(&given, tool, json!({"command": "ls"})).unwrap_err();
        assert_eq!(reason, format!("no standing approval covers calls of {tool} here"));
    }
}

#[test]
fn a_message_to_people_is_never_covered() {
    for tool in ["slack.send_message", "mail.SendMessage", "send_message", "mcp__chat__send-message"] {
        let call = approval(tool, Category::Mcp, json!({"text": "hello"}));
        let refused = standing(&call, &always()).unwrap_err();
        assert_eq!(refused, "it sends a message to people, so a decision covers this call only");
        let forged = [stands(1, tool, Coverage::Tool)];
        assert!(covers(&forged, tool, json!({"text": "hello"})).is_err(), "{tool}");
    }
    let call = approval("slack.list_messages", Category::Mcp, json!({}));
    assert!(standing(&call, &always()).is_ok());
}

#[test]
fn a_prefix_covers_cargo_and_not_rm() {
    let (coverage, _) = standing(&command("cargo build"), &always_prefix("cargo ")).unwrap();
    assert_eq!(coverage, prefix("cargo"));
    let given = [stands(1, BASH, coverage)];
    assert!(runs(&given, "cargo test --all"));
    for line in ["rm -rf /", "cargo-evil", "cargofoo", "", "  ", ";;"] {
        assert!(!runs(&given, line), "{line}");
    }
}

#[test]
fn a_prefix_is_for_one_tool_and_says_nothing_of_the_whole_tool() {
    let given = [stands(1, BASH, prefix("cargo"))];
    assert!(covers(&given, "other.Bash", json!({"command": "cargo build"})).is_err());
    let reason = covers(&given, BASH, json!({"script": "cargo build"})).unwrap_err();
    assert_eq!(reason, format!("the standing approvals of {BASH} are for command lines, and this call has none"));
}

#[test]
fn a_chain_is_covered_in_every_part_or_not_at_all() {
    let given = [stands(1, BASH, prefix("cargo"))];
    assert!(runs(&given, "cargo build && cargo test; cargo fmt | cargo run\ncargo doc"));
    for line in [
        "cargo build; rm x",
        "cargo build && rm x",
        "cargo build | sh",
        "cargo build\nrm x",
        "rm x && cargo build",
        "cargo build & rm x",
        "cargo build $(rm x)",
        "cargo build `rm x`",
        "cargo build <(rm x)",
        "cargo build >(rm x)",
    ] {
        assert!(!runs(&given, line), "{line}");
    }
}

#[test]
fn all_that_a_chain_needs_is_named_and_nothing_else() {
    let given =
        [stands(1, BASH, prefix("cargo")), stands(2, BASH, prefix("ls")), stands(3, BASH, prefix("git status"))];
    let used = covers(&given, BASH, json!({"command": "git status && cargo build && cargo test"})).unwrap();
    assert_eq!(used, [given[2].id, given[0].id]);
}

#[test]
fn what_can_be_used_up_is_spared() {
    let limited = StandingApproval { max_uses: Some(3), ..stands(1, BASH, Coverage::Tool) };
    let lasting = stands(2, BASH, Coverage::Tool);
    let call = json!({"command": "ls"});
    assert_eq!(covers(&[limited.clone(), lasting.clone()], BASH, call.clone()), Ok(vec![lasting.id]));
    assert_eq!(covers(&[limited.clone(), stands(3, BASH, prefix("cargo"))], BASH, call.clone()), Ok(vec![limited.id]));
    let limited = StandingApproval { coverage: prefix("ls"), ..limited };
    let lasting = StandingApproval { coverage: prefix("ls"), ..lasting };
    assert_eq!(covers(&[limited, lasting.clone()], BASH, call), Ok(vec![lasting.id]));
}

#[test]
fn nothing_is_covered_where_the_standing_approval_does_not_reach() {
    let elsewhere = [
        Reach::Session { owner: session().owner, name: SessionName::parse("s-2").unwrap() },
        Reach::Session { owner: PrincipalId::parse("other").unwrap(), name: session().name },
        Reach::Workspace(Workspace::parse("/home/ann").unwrap()),
    ];
    for reach in elsewhere {
        let one = StandingApproval { reach, ..stands(1, BASH, Coverage::Tool) };
        assert!(!runs(std::slice::from_ref(&one), "ls"), "{:?}", one.reach);
    }
    for reach in [this_session(), Reach::Workspace(session().workspace.unwrap()), Reach::User] {
        let one = StandingApproval { reach, ..stands(1, BASH, Coverage::Tool) };
        assert!(runs(std::slice::from_ref(&one), "ls"), "{:?}", one.reach);
    }
    let arguments = json!({"command": "ls"});
    let call = Covered { tool: BASH, external: false, action: None, arguments: &arguments, session: None };
    let one = StandingApproval { reach: this_session(), ..stands(1, BASH, Coverage::Tool) };
    assert!(covering(&[one], &call).is_err());
}

#[test]
fn a_restored_standing_approval_works_and_only_for_its_tool() {
    let kept = serde_json::to_string(&stands(1, BASH, prefix("npm run test:unit"))).unwrap();
    let given = [serde_json::from_str::<StandingApproval>(&kept).unwrap()];
    assert!(runs(&given, "npm run test:unit -- --watch"));
    assert!(!runs(&given, "npm run test"));
    assert!(covers(&given, "x-host-toolgate-workspace.Write", json!({"command": "npm run test:unit"})).is_err());
}

#[test]
fn a_kept_prefix_that_would_not_be_made_today_covers_nothing() {
    for words in ["bash", "sudo cargo", "git -c", "cargo *", ""] {
        assert!(!runs(&[stands(1, BASH, prefix(words))], &format!("{words} x")), "{words}");
    }
    assert!(!runs(&[stands(1, BASH, Coverage::Prefix(Vec::new()))], "ls"));
}

#[test]
fn an_unsafe_prefix_is_refused_with_the_reason() {
    let refused = standing(&command("bash -c ls"), &always_prefix("bash ")).unwrap_err();
    assert!(refused.contains("`bash` is a shell"), "{refused}");
    let refused = standing(&command("git -c x=y log"), &always_prefix("git -c x=y")).unwrap_err();
    assert!(refused.contains("before the subcommand"), "{refused}");
    assert!(standing(&command("ls"), &always_prefix("  ")).unwrap_err().contains("empty"));
}

#[test]
fn a_prefix_covers_at_least_the_call_that_it_was_given_for() {
    for (line, text) in [("cargo build", "npm "), ("cargo build && rm x", "cargo"), ("cargo build > x", "cargo")] {
        let refused = standing(&command(line), &always_prefix(text)).unwrap_err();
        assert!(refused.contains("does not cover this call"), "{refused}");
    }
}

#[test]
fn a_prefix_is_for_command_lines_only() {
    let mut call = command("cargo build");
    call.category = Category::Mcp;
    let other = approval(BASH, Category::Exec, json!({"command": ["cargo", "build"]}));
    for call in [call, other, approval("a.Write", Category::Edit, json!({"file_path": "x"}))] {
        let refused = standing(&call, &always_prefix("cargo")).unwrap_err();
        assert!(refused.starts_with("a prefix requires a command line"), "{refused}");
    }
}

#[test]
fn what_is_asked_for_other_reasons_cannot_be_covered() {
    let question = AskReason { source: AskSource::Question, text: String::new() };
    let question = Approval { reasons: vec![question], ..command("ls") };
    let quorum = Approval { rule: ApprovalRule { approvers: 2, ..ApprovalRule::default() }, ..command("ls") };
    let every = Approval { rule: ApprovalRule { standing: false, ..ApprovalRule::default() }, ..command("ls") };
    let other = Approval { coverable: false, ..command("ls") };
    let policy = AskReason { source: AskSource::Guardian, text: "this call runs a command".to_owned() };
    let policy = Approval { reasons: vec![policy], coverable: false, ..command("ls") };
    for (call, reason) in [
        (question, "a question needs an answer every time"),
        (quorum, "each of these calls needs several approvers, so a decision covers this call only"),
        (every, "the rule of this tool requires a decision on every call"),
        (
            policy,
            "a policy or guardian asks about every such call (\"this call runs a command\"), so a decision covers this call only",
        ),
        (other, "the reason for this approval requires a decision on every call, so a decision covers this call only"),
    ] {
        for wish in [always(), always_prefix("ls")] {
            assert_eq!(standing(&call, &wish), Err(reason.to_owned()));
        }
    }
}

#[test]
fn an_answer_reaches_as_far_as_was_chosen_and_else_its_session() {
    let far = |call: &Approval, reach| standing(call, &wish(RequestedCoverage::Tool, reach)).map(|(_, reach)| reach);
    let call = command("ls");
    assert_eq!(far(&call, None), Ok(this_session()));
    assert_eq!(far(&call, Some(RequestedReach::Session)), Ok(this_session()));
    assert_eq!(far(&call, Some(RequestedReach::Workspace)), Ok(Reach::Workspace(session().workspace.unwrap())));
    assert_eq!(far(&call, Some(RequestedReach::User)), Ok(Reach::User));
    let alone = Approval { session: None, ..call.clone() };
    assert_eq!(far(&alone, None), Ok(Reach::User));
    assert!(
        far(&alone, Some(RequestedReach::Session)).is_err() && far(&alone, Some(RequestedReach::Workspace)).is_err()
    );
    let nowhere = Approval { session: Some(ApprovalSession { workspace: None, ..session() }), ..call };
    assert!(far(&nowhere, Some(RequestedReach::Workspace)).is_err());
}

fn protects(tool: &str, arguments: Value) -> bool {
    is_protected(tool, &arguments, session().workspace.as_ref(), &NoLinks).is_some()
}

#[test]
fn changes_to_what_starts_code_later_are_protected() {
    for path in [".git/hooks/pre-commit", "../.bashrc", "~/.config/toolgate/toolgate.toml", ".claude/settings.json"] {
        assert!(protects("a.Write", json!({"file_path": path, "content": ""})), "{path}");
        assert!(protects("a.Edit", json!({"path": path})), "{path}");
        assert!(protects("a.NotebookEdit", json!({"notebook_path": path})), "{path}");
        assert!(protects("a.MultiEdit", json!({"edits": [{"file_path": path}]})), "{path}");
        assert!(!protects("a.Read", json!({"file_path": path})), "{path}");
    }
    let patch = |path: &str| json!({"command": format!("*** Begin Patch\n*** Update File: {path}\n+see ~/.bashrc")});
    assert!(protects("apply_patch", patch(".git/config")) && !protects("apply_patch", patch("src/main.rs")));
    assert!(!protects("a.Write", json!({"file_path": "src/main.rs", "content": "see ~/.bashrc and .git/hooks"})));
}

#[test]
fn commands_that_name_protected_places_are_protected() {
    for line in [
        "echo x >> ~/.bashrc",
        "cp a .git/hooks/pre-commit",
        "cat a > '.git'/hooks/x",
        "sed -i s/a/b/ .claude/settings.json",
        "cd .git && cp ../a hooks/x",
        "cd ~/.local; cd share && rm -r toolgate",
        "cd ~ && pushd .config; tee git/x",
        "rm -rf .git",
        "bash -c 'echo x > $HOME/.zshrc'",
        "curl -o.ssh/authorized_keys http://x",
        "tee --output=/etc/profile.d/x.sh",
        "crontab -",
        "sudo crontab -e",
        "git config core.hooksPath /tmp",
        "git -c core.fsmonitor=x status",
        "git config --global alias.x '!sh'",
        "cp x ~/.local/share/toolgate/ledger.db",
        "toolgate",
        "toolgate approvals decide appr_1 approve",
        "/usr/local/bin/toolgate key create",
        "env A=b toolgate grant create",
        "cargo run -p toolgate -- serve",
    ] {
        assert!(protects(BASH, json!({"command": line})), "{line}");
    }
}

#[test]
fn ordinary_commands_are_not_protected() {
    for line in [
        "cargo build",
        "cargo test -p toolgate",
        "git status",
        "git commit -m 'hooks and profile'",
        "git log --oneline",
        "grep -r --exclude-dir=.git x .",
        "ls -la *",
        "npm run build",
        "cat crates/toolgate/src/main.rs",
        "git clone https://example.com/a.git",
        "toolgate audit verify export.json",
    ] {
        assert!(!protects(BASH, json!({"command": line})), "{line}");
    }
}

#[test]
fn no_standing_approval_covers_what_is_protected() {
    let given = [stands(1, BASH, Coverage::Tool), stands(2, BASH, prefix("cp"))];
    assert!(runs(&given, "cp a b"));
    let reason = covers(&given, BASH, json!({"command": "cp a .git/hooks/pre-commit"})).unwrap_err();
    assert!(reason.contains("hooks or settings of version control"), "{reason}");
    assert!(standing(&command("cp a .git/hooks/pre-commit"), &always_prefix("cp")).is_err());
}

#[test]
fn a_line_that_cannot_be_looked_at_as_a_whole_is_protected() {
    let long = "cat > x <<E\n".to_owned() + &"some words of a text\n".repeat(1_000);
    assert!(!protects(BASH, json!({"command": long})));
    assert!(protects(BASH, json!({"command": long.repeat(4)})));
    assert!(!protects(BASH, json!({"command": "cd a; ".repeat(100)})));
    assert!(protects(BASH, json!({"command": "cd .a; ".repeat(100)})));
}

/// Links of a made-up file system: `cfg` leads to the settings of git, `scripts` to its hooks, `away` out of the workspace.
struct MadeUp;

impl Links for MadeUp {
    fn resolve(&self, _tool: &str, workspace: Option<&Workspace>, path: &str) -> Option<String> {
        let root = workspace?.as_str();
        let path = path.strip_prefix(root).unwrap_or(path).trim_start_matches("./").trim_start_matches('/');
        Some(match path.split_once('/').unwrap_or((path, "")) {
            (".", _) => root.to_owned(),
            ("cfg", _) => format!("{root}/.git/config"),
            ("scripts", rest) => format!("{root}/.git/hooks/{rest}"),
            ("away", rest) => format!("/etc/{rest}"),
            _ => format!("{root}/{path}"),
        })
    }
}

#[test]
fn what_is_protected_is_known_by_where_a_name_leads() {
    let protects =
        |tool: &str, arguments: Value| is_protected(tool, &arguments, session().workspace.as_ref(), &MadeUp).is_some();
    for path in ["cfg", "./cfg", "/home/ann/project/cfg", "scripts/pre-commit"] {
        assert!(protects("a.Edit", json!({"file_path": path})), "{path}");
        assert!(!protects("a.Read", json!({"file_path": path})), "{path}");
    }
    assert!(!protects("a.Edit", json!({"file_path": "src/cfg"})));
    for line in ["cp evil cfg", "cp evil scripts/pre-commit", "cd scripts && cp ../evil pre-commit", "dd of=cfg"] {
        assert!(protects(BASH, json!({"command": line})), "{line}");
    }
    assert!(!protects(BASH, json!({"command": "cp evil src"})));
}

#[test]
fn a_command_is_judged_from_the_directory_that_it_runs_in() {
    for directory in [".git/hooks", ".git", ".claude", ".ssh", "/home/ann/.ssh", "src/../.git/hooks", ".GIT/hooks"] {
        for name in ["working_directory", "cwd", "workdir", "directory"] {
            let arguments = json!({"command": "cp ../../evil pre-commit config authorized_keys", name: directory});
            assert!(protects(BASH, arguments.clone()), "{name}: {directory}");
            assert!(covers(&[stands(1, BASH, Coverage::Tool)], BASH, arguments).is_err(), "{name}: {directory}");
        }
    }
    let linked = json!({"command": "cp ../evil pre-commit", "working_directory": "scripts"});
    assert!(is_protected(BASH, &linked, session().workspace.as_ref(), &MadeUp).is_some());
    assert!(!protects(BASH, json!({"command": "cp ../evil pre-commit", "working_directory": "src"})));
}

#[test]
fn a_prefix_covers_no_path_that_a_link_leads_out_of_the_workspace() {
    let given = [stands(1, BASH, prefix("cat")), stands(2, BASH, prefix("cd"))];
    let session = session();
    let covers = |line: &str| {
        let arguments = json!({"command": line});
        let call =
            Covered { tool: BASH, external: false, action: None, arguments: &arguments, session: Some(&session) };
        super::covering(&given, &call, &MadeUp).is_ok()
    };
    assert!(covers("cat src/main.rs"));
    assert!(!covers("cat away/shadow") && !covers("cd away && cat shadow"));
}
