//! The documentation is tried out: its examples run against a fresh gate and print what the page says, and whatever the
//! program offers (endpoints, commands, keys, permissions, metrics) is on its page.
//!
//! In a block marked `console` a line that begins with `$ ` is a command, lines that begin with four blanks belong to the
//! command above them, and the other lines are what it prints. There `...` stands for any text in a line and, alone, for
//! any lines. A block marked with a kind and a name, `yaml cards.yaml`, is a file that the commands find. All commands of
//! a page run in one shell, with `toolgate` on the path, and in the environment the gate and a payments service that it
//! may call. On a page with Python files, `python` has our client.

use std::collections::BTreeSet;
use std::process::Command;

use toolgate_model::permission::Permission;
use toolgate_model::strict_json;
use toolgate_server::router::guarded_routes;
use toolgate_testkit::gate_process::{GateProcess, GateSetup};

use self::page::Page;

mod expectation;
pub mod page;
mod shell;
mod surroundings;

const BINARY: &str = env!("CARGO_BIN_EXE_toolgate");

#[test]
fn the_examples_of_every_page_print_what_the_page_says() {
    let curl = Command::new("curl").arg("--version").output();
    assert!(curl.is_ok_and(|output| output.status.success()), "the examples need curl: install the package `curl`");
    let pages = Page::all().into_iter().filter(|page| !page.steps.is_empty());
    let faults: Vec<String> = pages.filter_map(|page| shell::try_out(&page).err()).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_json_example_is_json() {
    let mut count = 0;
    for page in Page::all() {
        for (line, text) in &page.json {
            let parsed = strict_json::parse(text.as_bytes());
            assert!(parsed.is_ok(), "{}:{line}: {}", page.path, parsed.unwrap_err());
            count += 1;
        }
    }
    assert!(count > 0, "no JSON example was found");
}

#[test]
fn every_link_to_a_heading_leads_there() {
    let pages = Page::all();
    for page in &pages {
        for target in page.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let Some((path, heading)) = target.split_once('#').filter(|_| !target.contains("://")) else { continue };
            let name = if path.is_empty() { page.path.as_str() } else { path.trim_start_matches("../") };
            let found = pages.iter().find(|other| other.path.ends_with(&format!("/{name}")) || other.path == name);
            let found = found.unwrap_or_else(|| panic!("{}: {target} leads to no page", page.path));
            assert!(found.headings().any(|own| own == heading), "{}: {target} leads to no heading", page.path);
        }
    }
}

#[test]
fn every_endpoint_is_documented() {
    let page = Page::named("docs/api.md");
    let placeholder = |part: &str| if part.starts_with('{') { "{id}".to_owned() } else { part.to_owned() };
    let missing: Vec<String> = guarded_routes()
        .iter()
        .map(|route| {
            let path = route.path.strip_prefix("/api/v1").unwrap_or(route.path);
            format!("`{} {}`", route.method, path.split('/').map(placeholder).collect::<Vec<_>>().join("/"))
        })
        .filter(|endpoint| !page.text.contains(endpoint.as_str()))
        .collect();
    assert!(missing.is_empty(), "docs/api.md does not name {missing:?}");
}

#[test]
fn every_configuration_key_and_its_variable_are_documented() {
    let page = Page::named("docs/configuration.md");
    let example = output(GateSetup::new(BINARY).command().args(["config", "example"]));
    let mut section = "";
    let mut keys = 0;
    for line in example.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
        }
        // A key stands directly behind its mark of comment, its meaning behind a blank.
        if let Some((name, _)) = line.strip_prefix('#').and_then(|rest| rest.split_once(" = "))
            && !name.contains(' ')
        {
            let key = format!("`{section}.{name}`");
            assert!(page.text.contains(&key), "docs/configuration.md does not explain {key}");
            keys += 1;
        }
        let words = line.split(|letter: char| !letter.is_ascii_uppercase() && letter != '_');
        for variable in words.filter(|word| word.starts_with("TOOLGATE_")) {
            assert!(page.text.contains(variable), "docs/configuration.md does not name {variable}");
        }
    }
    assert!(keys > 10, "the keys of the example were not found: {example}");
}

#[test]
fn every_permission_is_documented() {
    let page = Page::named("docs/principals.md");
    for permission in Permission::ALL {
        assert!(page.text.contains(&format!("| `{permission}` |")), "docs/principals.md does not explain {permission}");
    }
}

#[test]
fn every_event_type_is_documented() {
    let page = Page::named("docs/audit.md");
    for name in toolgate_model::event::EventKind::ALL.iter().map(|kind| kind.as_str()) {
        let is_about = |row: &str| row.split('|').nth(1).is_some_and(|cell| cell.contains(&format!("`{name}`")));
        assert!(page.text.lines().any(is_about), "docs/audit.md does not explain the event {name}");
    }
}

/// Reads the sources, where each member is read by its name.
#[test]
fn every_field_of_a_service_definition_and_of_a_connection_is_documented() {
    let definitions = ["service/wire.rs", "service/http_mapping/wire.rs", "service/logging/wire.rs"];
    for (name, files) in [("docs/services.md", &definitions[..]), ("docs/egress.md", &["connection/wire.rs"])] {
        let page = Page::named(name);
        let mut found = 0;
        for file in files {
            let source = std::fs::read_to_string(page::root().join("crates/model/src").join(file)).unwrap();
            let reads = ["fields.read(\"", "fields.need(\""].into_iter().flat_map(|mark| source.split(mark).skip(1));
            for field in reads.filter_map(|rest| rest.split('"').next()) {
                assert!(page.text.contains(&format!("`{field}`")), "{name} does not explain `{field}` of {file}");
                found += 1;
            }
        }
        assert!(found > 8, "only {found} fields were found for {name}");
    }
}

#[test]
fn every_metric_is_documented() {
    let page = Page::named("docs/observability.md");
    let gate = GateProcess::start(BINARY);
    let answer = gate.try_request_as(gate.token(), "GET", "/metrics", None).unwrap().text();
    let shown: BTreeSet<String> = answer
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .map(|(name, kind)| if kind == "counter" { format!("{name}_total") } else { name.to_owned() })
        .collect();
    assert!(shown.len() > 20, "{answer}");
    let is_row = |line: &&str| line.starts_with("| `toolgate_") || line.starts_with("| `process_");
    let mut documented = BTreeSet::new();
    for row in page.text.lines().filter(is_row) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        for name in cells[1].split('`').skip(1).step_by(2) {
            // What has labels is shown from its first value on.
            assert!(shown.contains(name) || !cells[2].is_empty(), "{name} is documented and not shown");
            documented.insert(name.to_owned());
        }
    }
    let missing: Vec<_> = shown.difference(&documented).collect();
    assert!(missing.is_empty(), "docs/observability.md does not explain {missing:?}");
}

#[test]
fn the_first_page_counts_the_commands_of_the_example_right() {
    let example = Page::named("docs/services.md").steps.into_iter().map(|step| step.command);
    let commands: BTreeSet<String> = example
        .take_while(|command| !command.contains("toolgate tool "))
        .filter_map(|command| Some(command.split("toolgate ").nth(1)?.split(' ').take(2).collect::<Vec<_>>().join(" ")))
        .collect();
    let numbers = ["no", "one", "two", "three", "four", "five", "six", "seven"];
    let said = format!("takes a YAML file and {} commands", numbers[commands.len()]);
    assert!(Page::named("README.md").text.contains(&said), "README.md does not say `{said}`: {commands:?}");
}

#[test]
fn every_command_is_documented() {
    let page = Page::named("docs/cli.md");
    let mut found = 0;
    let mut open = vec![Vec::new()];
    while let Some(path) = open.pop() {
        let below = subcommands(&path);
        if below.is_empty() {
            let command = format!("toolgate {}", path.join(" "));
            assert!(page.text.contains(&command), "docs/cli.md does not name `{command}`");
            found += 1;
        }
        open.extend(below.into_iter().map(|name| [path.as_slice(), &[name]].concat()));
    }
    assert!(found > 10, "only {found} commands were found");
}

#[test]
fn the_threats_name_tests_that_exist() {
    let page = Page::named("docs/threats.md");
    let mut named = 0;
    for reference in page.text.split('`').skip(1).step_by(2).filter(|code| code.contains(".rs::")) {
        let (path, test) = reference.rsplit_once("::").unwrap();
        let source = std::fs::read_to_string(page::root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(source.contains(&format!("fn {test}(")), "{path} has no test `{test}`");
        named += 1;
    }
    assert!(named > 0, "docs/threats.md names no test");
}

/// The commands that the help of a command lists.
fn subcommands(path: &[String]) -> Vec<String> {
    let help = output(GateSetup::new(BINARY).command().args(path).arg("--help"));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|name| !name.is_empty()));
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
