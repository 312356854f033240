//! Problems and test results of a policy set, in the style of a compiler: file, line, rule, message and help.

use std::path::Path;

use serde::de::DeserializeOwned;
use toolgate_api::policies::{CheckedPolicies, PolicyProblem, PolicyTest};

use crate::client::{ClientError, Refused};
use crate::command::Failure;
use crate::output::{Report, clean};

pub(super) fn checked(folder: &Path, found: &CheckedPolicies) -> Report {
    let failed = failed_tests(found);
    let mut text = problem_lines(folder, &found.problems);
    found.warnings.iter().for_each(|warning| text.push_str(&format!("warning: {}", problem_line(folder, warning))));
    failed.iter().for_each(|test| text.push_str(&test_lines(folder, test)));
    let right = found.problems.is_empty() && failed.is_empty();
    text.push_str(&match right {
        true if !found.warnings.is_empty() => format!("{}; {} warnings\n", counted(found), found.warnings.len()),
        true => format!("{}; no problems\n", counted(found)),
        false => format!("{} problems, {} failed tests\n", found.problems.len(), failed.len()),
    });
    Report::new(found, text).refused_if(!right)
}

pub(super) fn tested(folder: &Path, found: &CheckedPolicies) -> Report {
    let failed = failed_tests(found).len();
    let mut text = problem_lines(folder, &found.problems);
    found.tests.iter().for_each(|test| text.push_str(&test_lines(folder, test)));
    let right = found.problems.is_empty() && failed == 0;
    text.push_str(&match (found.problems.len(), found.tests.len()) {
        (0, 0) => "no tests; add some to a *.test.yaml file beside the rules\n".to_owned(),
        (0, tests) => format!("{tests} tests, {failed} failed\n"),
        (problems, _) => format!("{problems} problems; the tests were not run\n"),
    });
    Report::new(found, text).refused_if(!right)
}

/// A refusal with its problems.
pub(super) fn explained(folder: &Path, error: ClientError) -> Failure {
    let sentence = error.to_string();
    let ClientError::Refused { body, .. } = error else { return Failure::Client(error) };
    let mut text = problem_lines(folder, &list::<PolicyProblem>(&body, "problems"));
    list(&body, "failed_tests").iter().for_each(|test| text.push_str(&test_lines(folder, test)));
    if text.is_empty() {
        return Failure::explained(sentence, &body);
    }
    Failure::explained(format!("the policies were refused [{}]\n{text}", clean(body.code())), &body)
}

fn problem_lines(folder: &Path, problems: &[PolicyProblem]) -> String {
    problems.iter().map(|problem| problem_line(folder, problem)).collect()
}

fn problem_line(folder: &Path, problem: &PolicyProblem) -> String {
    let mut line = place(folder, &problem.file);
    if let Some(number) = problem.line {
        line.push_str(&format!(":{number}"));
    }
    if let Some(policy) = &problem.policy_id {
        line.push_str(&format!(": rule {}", clean(policy)));
    }
    line.push_str(&format!(": {}\n", clean(&problem.message)));
    if let Some(help) = &problem.help {
        line.push_str(&format!("  help: {}\n", clean(help)));
    }
    line
}

fn test_lines(folder: &Path, test: &PolicyTest) -> String {
    let (place, name) = (place(folder, &test.file), clean(&test.name));
    match &test.failure {
        None => format!("ok      {place}: {name}\n"),
        Some(failure) => {
            let lines: String = failure.lines().map(|line| format!("  {}\n", clean(line))).collect();
            format!("FAILED  {place}: {name}\n{lines}")
        }
    }
}

fn failed_tests(found: &CheckedPolicies) -> Vec<&PolicyTest> {
    found.tests.iter().filter(|test| test.failure.is_some()).collect()
}

fn counted(found: &CheckedPolicies) -> String {
    let shadowed = found.rules.iter().filter(|rule| rule.shadow).count();
    format!("{} rules ({shadowed} in shadow mode), {} tests", found.rules.len(), found.tests.len())
}

fn place(folder: &Path, file: &str) -> String {
    match file {
        "" => clean(&folder.display().to_string()),
        file => clean(&folder.join(file).display().to_string()),
    }
}

fn list<T: DeserializeOwned>(refused: &Refused, name: &str) -> Vec<T> {
    refused.detail(name).and_then(|items| serde_json::from_value(items.clone()).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use serde_json::{Value, json};

    use super::*;

    /// What the gate finds, with these members.
    fn found(members: Value) -> CheckedPolicies {
        let mut all = json!({"ok": false, "problems": [], "rules": [], "tests": [], "warnings": []});
        all.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    fn rule(id: &str, shadow: bool) -> Value {
        json!({"id": id, "file": "a.cedar", "effect": "deny", "shadow": shadow, "reason": null, "description": null})
    }

    fn problem() -> Value {
        json!({
            "file": "shell.cedar", "policy_id": "no-exec", "line": 12, "message": "there is no tool \u{1b}`shell.Bsh`",
            "help": "did you mean `shell.Bash`?",
        })
    }

    #[test]
    fn a_problem_is_told_with_its_place_its_rule_and_what_helps() {
        let bare = json!({"file": "", "policy_id": null, "line": null, "message": "too long", "help": null});
        let report = checked(Path::new("policies"), &found(json!({"problems": [problem(), bare]})));
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
        let rules = json!([rule("a", true), rule("b", false)]);
        let answer = found(json!({"rules": rules, "tests": [passed, failed]}));
        let shown = "FAILED  p/a.test.yaml: exec asks\n  expected ask\n  got deny\n";
        let report = checked(Path::new("p"), &answer);
        assert_eq!((report.text, report.refused), (format!("{shown}0 problems, 1 failed tests\n"), true));
        let report = tested(Path::new("p"), &answer);
        let text = format!("ok      p/a.test.yaml: reads pass\n{shown}2 tests, 1 failed\n");
        assert_eq!((report.text, report.refused), (text, true));
        let report = checked(Path::new("p"), &found(json!({"rules": rules, "tests": [passed]})));
        assert_eq!(report.text, "2 rules (1 in shadow mode), 1 tests; no problems\n");
        assert!(!report.refused && !tested(Path::new("p"), &found(json!({}))).refused);
    }

    #[test]
    fn a_refusal_lists_its_problems_and_another_stays_as_it_is() {
        let refused = |code: &str, message: &str, details: Value| {
            let body = Box::new(Refused::sample(code, message, details));
            explained(Path::new("p"), ClientError::Refused { status: StatusCode::BAD_REQUEST, body }).to_string()
        };
        let described = refused("POLICY_INVALID", "m", json!({"problems": [problem()]}));
        assert!(described.starts_with("the policies were refused [POLICY_INVALID]\np/shell.cedar:12: rule no-exec: "));
        assert_eq!(refused("FORBIDDEN", "no", json!({})), "no [FORBIDDEN]");
    }
}
