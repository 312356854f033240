//! Describes in advance what a decision could cover besides its call: the exact rule, and examples that are true
//! because the recognizer itself has checked them.

use serde_json::json;
use toolgate_gate::ports::approver::Offer;
use toolgate_model::approval::{Approval, Category, Coverage, StandingApproval};
use toolgate_model::id::StandingApprovalId;

use crate::arguments::command_line;
use crate::coverage::{of_approval, reach, require_coverable};
use crate::links::Links;
use crate::place::Directory;
use crate::risk::{Kind, of_command};
use crate::shell::{Prefix, Surroundings, covered, read};
use toolgate_model::visible::visible;

/// The number of examples.
const EXAMPLES: usize = 3;

/// Programs whose subcommands differ in what they do: a prefix of the program name alone would mean nothing.
const WITH_SUBCOMMANDS: &str = "apt apt-get aws az brew bun bundle cargo cnpm composer dnf docker docker-compose dotnet \
    flutter gcloud gem gh git go gradle helm hg jj just kubectl make mix mvn nerdctl npm oc pip pip3 pipenv pnpm podman \
    poetry rake rustup sbt stack svn swift systemctl terraform tofu uv yarn yarnpkg yum";

/// Subcommands with their own subcommands, or that run what is named next. `*` stands for all of a program.
const WITH_TWO: &str = "aws:* az:* bun:run bundle:exec cnpm:run docker:compose docker:container docker:image gcloud:* \
    gh:* git:bisect git:remote git:stash git:submodule git:worktree go:mod go:tool helm:repo kubectl:rollout npm:run \
    npm:run-script pip:config pnpm:run poetry:run rustup:component rustup:target rustup:toolchain uv:pip uv:run \
    yarn:run yarnpkg:run";

/// What a decision could cover besides the call; empty if it can cover nothing else.
pub fn offers(approval: &Approval, links: &dyn Links) -> Vec<Offer> {
    if require_coverable(approval, links).is_err() {
        return Vec::new();
    }
    let mut offers: Vec<Offer> = rule(approval, Coverage::Tool)
        .map(|rule| Offer { scope: json!("always"), rule, matches: Vec::new(), does_not_match: Vec::new() })
        .into_iter()
        .collect();
    let command = approval.arguments.as_ref().and_then(command_line).filter(|_| approval.category == Category::Exec);
    let proposed = command.and_then(|command| Some((command, proposed_prefix(command, of_approval(approval))?)));
    offers.extend(proposed.and_then(|(command, prefix)| offer(approval, command, &prefix)));
    offers
}

/// The prefix to propose for a command line: program and subcommand, and for an unknown program as many more words as
/// its options take; only if it covers the whole line.
pub fn proposed_prefix(command: &str, around: Surroundings<'_>) -> Option<Prefix> {
    let commands = read(command).ok()?;
    let words = &commands.first()?.words;
    let plain: Vec<&str> = words.iter().take_while(|word| word.plain).map(|word| word.text.as_str()).collect();
    let shortest = length(&plain)?;
    let covers = |prefix: &Prefix| covered(command, std::slice::from_ref(prefix), around).approve;
    let prefix = (shortest..=plain.len())
        .filter_map(|length| Prefix::parse(&plain.get(..length)?.join(" ")).ok())
        .find(covers)?;
    // A prefix for commands that delete, access the network or similar is not proposed.
    let is_grave = of_command(prefix.words(), &Directory::of(None)).iter().any(|finding| finding.kind != Kind::Outside);
    (!is_grave).then_some(prefix)
}

/// The number of words in the prefix of a command.
fn length(words: &[&str]) -> Option<usize> {
    let (program, arguments) = words.split_first()?;
    if !WITH_SUBCOMMANDS.split_ascii_whitespace().any(|known| known == *program) {
        return Some(1);
    }
    let place = arguments.iter().position(|word| !word.starts_with(['-', '+']))?;
    let subcommand = arguments.get(place)?;
    let has_two = WITH_TWO
        .split_ascii_whitespace()
        .filter_map(|known| known.split_once(':'))
        .any(|(name, below)| name == *program && (below == "*" || below == *subcommand));
    let last = place + if has_two { 1 } else { 0 };
    arguments.get(last).filter(|word| !word.starts_with('-')).map(|_| last + 2)
}

fn offer(approval: &Approval, command: &str, prefix: &Prefix) -> Option<Offer> {
    let is_covered = |line: &String| covered(line, std::slice::from_ref(prefix), of_approval(approval)).approve;
    let program = prefix.words().first()?;
    let matching = [
        command.to_owned(),
        prefix.to_string(),
        format!("{prefix} --verbose"),
        format!("{prefix} --help"),
        format!("{prefix} && {prefix}"),
        format!("{prefix} 2>&1"),
    ];
    let foreign = [
        program.clone(),
        format!("{prefix}-other"),
        format!("{prefix} && rm -r build"),
        format!("{prefix} > notes.txt"),
        format!("sudo {prefix}"),
        format!("{prefix} $(whoami)"),
    ];
    Some(Offer {
        scope: json!({"always_prefix": {"prefix": prefix.to_string()}}),
        rule: rule(approval, Coverage::Prefix(prefix.words().to_vec()))?,
        matches: examples(matching, is_covered),
        does_not_match: examples(foreign, |line| !is_covered(line)),
    })
}

fn examples(lines: impl IntoIterator<Item = String>, fits: impl Fn(&String) -> bool) -> Vec<String> {
    let mut examples: Vec<String> = Vec::new();
    for line in lines.into_iter().filter(|line| fits(line)) {
        let line = visible(&line);
        if examples.len() < EXAMPLES && !examples.contains(&line) {
            examples.push(line);
        }
    }
    examples
}

/// The rule that would be created, in the words of listings.
fn rule(approval: &Approval, coverage: Coverage) -> Option<String> {
    let standing = StandingApproval {
        id: StandingApprovalId::new(approval.created_at, [0; 10]),
        tenant: approval.tenant.clone(),
        agent: approval.agent.clone(),
        tool: approval.tool.clone(),
        external: approval.external,
        action: approval.action.clone(),
        coverage,
        reach: reach(approval.session.as_ref(), None).ok()?,
        source: approval.id,
        created_by: approval.actor.clone(),
        created_at: approval.created_at,
        expires_at: None,
        max_uses: None,
        used: 0,
        last_used_at: None,
        revoked_at: None,
        revoked_by: None,
    };
    Some(standing.rule())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::coverage::standing;
    use crate::fixture::{approval, command};
    use crate::links::NoLinks;
    use toolgate_model::approval::{RequestedCoverage, StandingRequest};

    fn offers(approval: &Approval) -> Vec<Offer> {
        super::offers(approval, &NoLinks)
    }

    fn proposed(line: &str) -> Option<String> {
        proposed_prefix(line, Surroundings::UNKNOWN).map(|prefix| prefix.to_string())
    }

    #[test]
    fn a_proposed_prefix_is_the_program_with_its_subcommand() {
        for (line, prefix) in [
            ("cargo build --release", "cargo build"),
            ("cargo +nightly test x", "cargo +nightly test"),
            ("git status", "git status"),
            ("git --no-pager log -3", "git --no-pager log"),
            ("git stash list", "git stash list"),
            ("npm run test:unit -- x", "npm run test:unit"),
            ("npm test", "npm test"),
            ("gh pr view 3", "gh pr view"),
            ("make check", "make check"),
            ("ls -la src", "ls"),
            ("pytest -k x", "pytest"),
            ("ls /tmp", "ls /tmp"),
            ("mytool --fast deploy src/a", "mytool --fast deploy"),
            ("cargo build && cargo build --release", "cargo build"),
        ] {
            assert_eq!(proposed(line).as_deref(), Some(prefix), "{line}");
        }
    }

    #[test]
    fn nothing_is_proposed_that_says_too_little_or_dares_too_much() {
        for line in [
            "git",
            "git -c x=y status",
            "npm run",
            "npm",
            "python x.py",
            "bash build.sh",
            "sudo ls",
            "env ls",
            "rm x",
            "curl http://example.com",
            "git push",
            "cargo publish",
            "find . -exec ls ;",
            "cargo build && git status",
            "cargo build > x",
            "'ls' x",
            "echo $(date)",
            "",
        ] {
            assert_eq!(proposed(line), None, "{line}");
        }
    }

    #[test]
    fn an_offer_says_the_exact_rule_with_true_examples() {
        let offers = offers(&command("cargo test --all"));
        assert_eq!(offers.len(), 2);
        assert_eq!(offers[0].scope, json!("always"));
        assert_eq!(offers[0].rule, "every call of x-host-toolgate-workspace.Bash by agent, in session s-1");
        let prefix = &offers[1];
        assert_eq!(prefix.scope, json!({"always_prefix": {"prefix": "cargo test"}}));
        assert_eq!(
            prefix.rule,
            "commands of x-host-toolgate-workspace.Bash that begin with `cargo test` by agent, in session s-1"
        );
        assert_eq!(prefix.matches, ["cargo test --all", "cargo test", "cargo test --verbose"]);
        assert_eq!(prefix.does_not_match, ["cargo", "cargo test-other", "cargo test && rm -r build"]);
    }

    #[test]
    fn what_is_offered_is_granted_when_it_is_wished_for() {
        for line in ["cargo test --all", "ls", "npm run test:unit", "git --no-pager log", "make check"] {
            let call = command(line);
            let offers = offers(&call);
            assert_eq!(offers.len(), 2, "{line}");
            let text = offers[1].scope.pointer("/always_prefix/prefix").and_then(Value::as_str).unwrap();
            let coverage = RequestedCoverage::Prefix(text.to_owned());
            let request = StandingRequest { coverage, reach: None, expires_in_seconds: None, max_uses: None };
            assert!(standing(&call, &request, &NoLinks).is_ok(), "{line}");
            assert_eq!((offers[1].matches.len(), offers[1].does_not_match.len()), (3, 3), "{line}");
        }
    }

    #[test]
    fn nothing_is_offered_where_nothing_can_be_covered() {
        let mut call = command("ls");
        call.coverable = false;
        assert_eq!(offers(&call), []);
        assert_eq!(offers(&approval("slack.send_message", Category::Mcp, json!({}))), []);
        assert_eq!(offers(&command("cp x .git/hooks/pre-commit")), []);
    }

    #[test]
    fn a_call_without_a_command_line_is_offered_its_tool_only() {
        let offers = offers(&approval("a.Write", Category::Edit, json!({"file_path": "x"})));
        assert_eq!(offers.len(), 1);
        assert_eq!(offers[0].scope, json!("always"));
    }
}
