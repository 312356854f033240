//! What the gate finds about a policy set, told as a compiler tells it: the file, the line, the rule, what is wrong and
//! what helps.

use std::path::Path;

use serde_json::Value;

use crate::client::ClientError;
use crate::command::Failure;
use crate::output::{Report, at, clean, plain};

/// Whether a set can be applied, and what stands in the way.
pub(super) fn checked(folder: &Path, answer: Value) -> Report {
    let (problems, failed) = (list(&answer, "problems"), failed_tests(&answer));
    let mut text = problem_lines(folder, problems);
    let warnings = list(&answer, "warnings");
    warnings.iter().for_each(|warning| text.push_str(&format!("warning: {}", problem_line(folder, warning))));
    failed.iter().for_each(|test| text.push_str(&test_lines(folder, test)));
    let right = problems.is_empty() && failed.is_empty();
    text.push_str(&match right {
        true if !warnings.is_empty() => format!("{}; {} warnings\n", counted(&answer), warnings.len()),
        true => format!("{}; nothing is wrong\n", counted(&answer)),
        false => format!("{} problems, {} failed tests\n", problems.len(), failed.len()),
    });
    Report::new(answer, text).refused_if(!right)
}

/// What came of every test.
pub(super) fn tested(folder: &Path, answer: Value) -> Report {
    let (problems, tests, failed) = (list(&answer, "problems"), list(&answer, "tests"), failed_tests(&answer).len());
    let mut text = problem_lines(folder, problems);
    tests.iter().for_each(|test| text.push_str(&test_lines(folder, test)));
    let right = problems.is_empty() && failed == 0;
    text.push_str(&match (problems.len(), tests.len()) {
        (0, 0) => "there are no tests; write some into a *.test.yaml file beside the rules\n".to_owned(),
        (0, tests) => format!("{tests} tests, {failed} failed\n"),
        (problems, _) => format!("{problems} problems; the tests were not run\n"),
    });
    Report::new(answer, text).refused_if(!right)
}

/// A refusal with the problems that it is about.
pub(super) fn explained(folder: &Path, error: ClientError) -> Failure {
    let sentence = error.to_string();
    let ClientError::Refused { body, .. } = error else { return Failure::Client(error) };
    let refused = at(&body, "error");
    let mut text = problem_lines(folder, list(refused, "problems"));
    list(refused, "failed_tests").iter().for_each(|test| text.push_str(&test_lines(folder, test)));
    if text.is_empty() {
        return Failure::Explained { text: sentence, body };
    }
    Failure::Explained { text: format!("the policies were not taken [{}]\n{text}", plain(at(refused, "code"))), body }
}

fn problem_lines(folder: &Path, problems: &[Value]) -> String {
    problems.iter().map(|problem| problem_line(folder, problem)).collect()
}

fn problem_line(folder: &Path, problem: &Value) -> String {
    let mut line = place(folder, problem);
    if let Some(number) = at(problem, "line").as_u64() {
        line.push_str(&format!(":{number}"));
    }
    if let Some(policy) = at(problem, "policy_id").as_str() {
        line.push_str(&format!(": rule {}", clean(policy)));
    }
    line.push_str(&format!(": {}\n", plain(at(problem, "message"))));
    if let Some(help) = at(problem, "help").as_str() {
        line.push_str(&format!("  help: {}\n", clean(help)));
    }
    line
}

fn test_lines(folder: &Path, test: &Value) -> String {
    let (place, name) = (place(folder, test), plain(at(test, "name")));
    match at(test, "failure").as_str() {
        None => format!("ok      {place}: {name}\n"),
        Some(failure) => {
            let lines: String = failure.lines().map(|line| format!("  {}\n", clean(line))).collect();
            format!("FAILED  {place}: {name}\n{lines}")
        }
    }
}

fn failed_tests(answer: &Value) -> Vec<&Value> {
    list(answer, "tests").iter().filter(|test| !at(test, "failure").is_null()).collect()
}

/// How much is in the set.
fn counted(answer: &Value) -> String {
    let rules = list(answer, "rules");
    let shadowed = rules.iter().filter(|rule| at(rule, "shadow") == &Value::Bool(true)).count();
    format!("{} rules ({shadowed} in shadow), {} tests", rules.len(), list(answer, "tests").len())
}

fn place(folder: &Path, finding: &Value) -> String {
    match at(finding, "file").as_str() {
        Some(file) if !file.is_empty() => clean(&folder.join(file).display().to_string()),
        _ => clean(&folder.display().to_string()),
    }
}

fn list<'a>(answer: &'a Value, name: &str) -> &'a [Value] {
    at(answer, name).as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use serde_json::json;

    use super::*;

    fn problem() -> Value {
        json!({
            "file": "shell.cedar", "policy_id": "no-exec", "line": 12, "message": "there is no tool \u{1b}`shell.Bsh`",
            "help": "did you mean `shell.Bash`?",
        })
    }

    #[test]
    fn a_problem_is_told_with_its_place_its_rule_and_what_helps() {
        let bare = json!({"file": "", "policy_id": null, "line": null, "message": "too long", "help": null});
        let report = checked(Path::new("policies"), json!({"ok": false, "problems": [problem(), bare]}));
        assert!(report.refused);
        assert_eq!(
            report.text,
            "policies/shell.cedar:12: rule no-exec: there is no tool \\u{1b}`shell.Bsh`\n  help: did you mean \
             `shell.Bash`?\npolicies: too long\n2 problems, 0 failed tests\n"
        );
    }

    #[test]
    fn a_set_with_a_failing_test_is_not_right() {
        let passed = json!({"file": "a.test.yaml", "name": "reads pass", "passed": true, "failure": null});
        let failed =
            json!({"file": "a.test.yaml", "name": "exec asks", "passed": false, "failure": "expected ask\ngot deny"});
        let rules = json!([{"id": "a", "shadow": true}, {"id": "b", "shadow": false}]);
        let answer = json!({"ok": false, "problems": [], "rules": rules, "tests": [passed, failed]});
        let shown = "FAILED  p/a.test.yaml: exec asks\n  expected ask\n  got deny\n";
        let report = checked(Path::new("p"), answer.clone());
        assert_eq!((report.text, report.refused), (format!("{shown}0 problems, 1 failed tests\n"), true));
        let report = tested(Path::new("p"), answer);
        let text = format!("ok      p/a.test.yaml: reads pass\n{shown}2 tests, 1 failed\n");
        assert_eq!((report.text, report.refused), (text, true));
        let report = checked(Path::new("p"), json!({"problems": [], "rules": rules, "tests": [passed]}));
        assert_eq!(report.text, "2 rules (1 in shadow), 1 tests; nothing is wrong\n");
        assert!(!report.refused && !tested(Path::new("p"), json!({"problems": [], "tests": []})).refused);
    }

    #[test]
    fn a_refusal_lists_its_problems_and_another_stays_as_it_is() {
        let refused = |error: Value| {
            let body = Box::new(json!({"status": "denied", "error": error}));
            explained(Path::new("p"), ClientError::Refused { status: StatusCode::BAD_REQUEST, body }).to_string()
        };
        let described = refused(json!({"code": "POLICY_INVALID", "message": "m", "problems": [problem()]}));
        assert!(
            described.starts_with("the policies were not taken [POLICY_INVALID]\np/shell.cedar:12: rule no-exec: ")
        );
        assert_eq!(refused(json!({"code": "FORBIDDEN", "message": "no"})), "no [FORBIDDEN]");
    }
}
