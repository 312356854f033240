//! Policy tests next to the policies: given this event, expect this verdict. They are YAML files that end in
//! `.test.yaml`; unknown members are errors.

use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Options, UserMessageFormatter, options};
use toolgate_gate::ports::policy_book::{PolicyProblem, PolicyTestOutcome};
use toolgate_model::guard::{Content, PolicyFile, Verdict, VerdictKind};
use toolgate_model::strict_yaml;

use super::policy_input::{Lookup, PolicyInput};
use super::set::CompiledSet;

/// The extension of test files.
const EXTENSION: &str = ".test.yaml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestFile {
    tests: Vec<Test>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    name: String,
    given: Value,
    /// allow, modify, ask or deny.
    expect: String,
    /// The rule that must decide.
    by: Option<String>,
    /// What the arguments, or the result, must become.
    becomes: Option<Value>,
}

/// Runs all tests.
pub(super) fn run(
    set: &CompiledSet,
    files: &[PolicyFile],
    tools: Lookup<'_>,
) -> Result<Vec<PolicyTestOutcome>, Vec<PolicyProblem>> {
    let mut outcomes = Vec::new();
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.name.ends_with(EXTENSION)) {
        match read(&file.text) {
            Ok(read) => outcomes.extend(read.tests.into_iter().map(|test| PolicyTestOutcome {
                file: file.name.clone(),
                failure: judge(set, &test, tools).err(),
                name: test.name,
            })),
            Err(error) => problems.push(PolicyProblem {
                file: file.name.clone(),
                policy: None,
                line: None,
                message: error,
                help: Some(
                    "a test file must have `tests`, each with name, given, expect and optionally by, becomes"
                        .to_owned(),
                ),
            }),
        }
    }
    if problems.is_empty() { Ok(outcomes) } else { Err(problems) }
}

fn read(text: &str) -> Result<TestFile, String> {
    let read = serde_saphyr::from_str_with_options::<TestFile>(text, yaml());
    let tests = read.map_err(|error| error.render_with_formatter(&UserMessageFormatter).to_string())?;
    strict_yaml::check_numbers(text).map_err(|error| error.to_string())?;
    Ok(tests)
}

fn judge(set: &CompiledSet, test: &Test, tools: Lookup<'_>) -> Result<(), String> {
    let expected = VerdictKind::parse(&test.expect)
        .ok_or_else(|| format!("`expect` must be allow, modify, ask or deny, not `{}`", test.expect))?;
    let evaluation = PolicyInput::read(&test.given, tools)?.judge(set);
    let by: Vec<&str> = evaluation.policies.iter().map(|policy| policy.id.as_str()).collect();
    let came = evaluation.verdict.kind();
    if came != expected {
        let reason = evaluation.reason.as_deref().map_or_else(String::new, |reason| format!(" ({reason})"));
        let rules = if by.is_empty() { "no rule".to_owned() } else { by.join(", ") };
        return Err(format!("expected {}, got {} by {rules}{reason}", expected.as_str(), came.as_str()));
    }
    if let Some(wanted) = test.by.as_deref().filter(|wanted| !by.contains(wanted)) {
        return Err(format!("expected a decision by {wanted}, got one by {}", by.join(", ")));
    }
    let Some(wanted) = &test.becomes else { return Ok(()) };
    let became = match &evaluation.verdict {
        Verdict::Pass { content: Some(content), .. } => match &**content {
            Content::Result { value, .. } => value.clone().into_owned(),
            other => other.to_json(),
        },
        _ => return Err("expected a modification, got none".to_owned()),
    };
    if became == *wanted { Ok(()) } else { Err(format!("expected {wanted}, got {became}")) }
}

fn yaml() -> Options {
    options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
    }
}
