//! The demo: it tells what it should, shows no secret, and leaves nothing behind, however it ends.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use toolgate_testkit::gate_process::GateSetup;

use super::{Said, setup};

/// The demo, with a place of its own for what is temporary.
fn demo(setup: &GateSetup, arguments: &[&str]) -> Command {
    let temporary = setup.home().join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let mut command = setup.command();
    command.env("TMPDIR", temporary).arg("demo").args(arguments);
    command
}

fn left_behind(setup: &GateSetup) -> usize {
    let own = |path: &Path| std::fs::read_dir(path).map_or(0, Iterator::count);
    own(&setup.home().join("tmp")) + own(&setup.data()) + own(&setup.configuration_home())
}

fn ask_to_end(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn the_demo_walks_the_whole_tour_and_leaves_nothing_behind() {
    let setup = setup();
    let said = Said::of(demo(&setup, &[]), "");
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{}", said.all());
    let expected = [
        "200 {\"status\": \"success\"",
        "Bearer [REDACTED]",
        "tool.invoked by billing",
        "Authorization: Bearer sk_demo_…",
        "403 {\"code\": \"GRANT_SCOPE_INSUFFICIENT\"",
        "403 {\"code\": \"GRANT_PARAMETER_DENIED\"",
        "429 {\"code\": \"GRANT_RATE_LIMITED\"",
        "grant.delegated by billing",
        "\"revoked_count\": 2",
        "403 {\"code\": \"GRANT_REVOKED\"",
        "Verified: all",
        "not verified, event",
        "All results were as expected",
    ];
    let mut rest = said.stdout.as_str();
    for words in expected {
        let (_, behind) =
            rest.split_once(words).unwrap_or_else(|| panic!("{words} is missing or too late:\n{}", said.stdout));
        rest = behind;
    }
    assert!(!said.stdout.contains("sk_demo_4"), "{}", said.stdout);
    assert!(!said.stdout.contains("tgk_") && !said.stdout.contains('\u{1b}'), "{}", said.stdout);
    assert!(said.stdout.lines().all(|line| line.chars().count() <= 80), "{}", said.stdout);
    assert_eq!(left_behind(&setup), 0);
}

#[test]
fn a_kept_demo_works_with_the_keys_that_it_shows_until_it_is_asked_to_end() {
    for signal in ["INT", "TERM", "HUP"] {
        let setup = setup();
        let mut child = demo(&setup, &["--keep"]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut exported = Vec::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        for line in lines.by_ref() {
            if let Some(pair) = line.trim().strip_prefix("export ") {
                exported.push(pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap());
            }
            // The last thing that it shows.
            if exported.len() == 3 && line.trim().starts_with("http://") {
                break;
            }
        }
        let tool = |key: usize, arguments: &[&str]| {
            let mut command = setup.command();
            command.envs([exported[0].clone(), exported[key].clone()]).args(arguments);
            Said::of(command, "")
        };
        let call = ["tool", "call", "payments.charges.create", "-p", "currency=usd"];
        let called = tool(1, &[&call[..], &["-p", "amount:=1200"]].concat());
        assert_eq!(called.code, 0, "{}", called.all());
        assert_eq!(tool(1, &[&call[..], &["-p", "amount:=9900"]].concat()).code, 1);
        assert_eq!(tool(2, &["invocation", "list"]).code, 0);

        ask_to_end(&child, signal);
        assert!(child.wait().unwrap().success(), "{signal}");
        assert!(lines.any(|line| line.contains("nothing is left behind")));
        assert_eq!(left_behind(&setup), 0, "{signal}");
        assert!(tool(2, &["invocation", "list"]).stderr.contains("could not connect"), "{signal}");
    }
}

#[test]
fn a_demo_that_is_cut_off_leaves_nothing_behind_either() {
    let setup = setup();
    let mut child =
        demo(&setup, &[]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("1. Setup")));
    // Perhaps it is through before the signal arrives: then it ended well.
    ask_to_end(&child, "INT");
    let _ = child.wait().unwrap();
    assert_eq!(left_behind(&setup), 0);
}
