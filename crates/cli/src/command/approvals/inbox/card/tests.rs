//! What a card must show.

use serde_json::json;

use super::super::testing::{approval, at, question};
use super::*;

fn text(approval: &Approval, cells: usize) -> String {
    let lines = card(approval, at(2_000), cells);
    assert!(lines.iter().all(|line| width(&line.plain()) <= cells.max(INDENT + 4)), "wider than {cells}");
    lines.iter().map(|line| format!("{}\n", line.plain().trim_end())).collect()
}

#[test]
fn a_card_says_why_a_decision_covers_this_call_only() {
    let described =
        text(&approval(1, json!({"offers": [], "no_offer_reason": "a policy asks about every such call"})), 100);
    assert!(described.contains("Scope         only this call: a policy asks about every such call"), "{described}");
    assert!(!text(&approval(1, json!({})), 100).contains("Covers"));
}

#[test]
fn everything_that_a_person_needs_is_on_the_card() {
    let text = text(&approval(1, json!({"approvers": {"needed": 2, "given": 1}, "groups": ["ops"]})), 100);
    for part in [
        "Tool          shell.Bash (exec)",
        "Caller        coder",
        "Session       work of ann",
        "Directory     /home/ann/shop",
        "Time left     4:58",
        "Approvers     1 of 2 have approved",
        "Required      members of ops",
        "Reason        the tool asks for it (tool)",
        "Risk          medium !",
        "! reaches the network",
        "= granted   cargo test",
        "+ new       npm ci",
        "no rule",
        "│ cargo test && npm ci",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

#[test]
fn arguments_are_shown_exactly_and_whole() {
    let long = format!("start\u{1b}[2K\u{202e}evil  \nRisk          low\n{}", "x日".repeat(400));
    let shown = text(&approval(1, json!({"arguments": {"command": long, "count": 5, "number": "5"}})), 60);
    assert!(shown.contains("│ start\\u{1b}[2K\\u{202e}evil␠␠"), "{shown}");
    // A line that looks like one of the card's is marked as text.
    assert!(shown.contains("│ Risk          low") && shown.contains("\nRisk          medium !"), "{shown}");
    assert!(shown.contains("  count       5\n") && shown.contains("  number      │ 5\n"), "{shown}");
    assert_eq!(shown.matches('x').count() - shown.matches("ex").count(), 400);
    assert_eq!(shown.matches('日').count(), 400);
}

#[test]
fn names_that_begin_alike_stay_apart() {
    let arguments = json!({"a_very_long_name_of_one": "1", "a_very_long_name_of_two": 2});
    let text = text(&approval(1, json!({"arguments": arguments})), 60);
    assert!(text.contains("a_very_long_name_of_one\n") && text.contains("a_very_long_name_of_two\n"), "{text}");
}

#[test]
fn what_a_guardian_changed_is_shown_as_a_difference() {
    let changes = json!({
        "original_arguments": {"to": "all", "body": "a\nb"}, "arguments": {"body": "a\nc", "dry_run": true},
    });
    let text = text(&approval(1, changes), 80);
    for part in
        ["  body\n  │ a\n- │ b\n+ │ c\n", "  dry_run\n- │ (nothing)\n+ │ true\n", "  to\n- │ all\n+ │ (nothing)\n"]
    {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

#[test]
fn an_edit_is_shown_as_a_difference() {
    let arguments = json!({"file_path": "/a", "old_string": "one\ntwo", "new_string": "one\nthree"});
    let text = text(&approval(1, json!({"arguments": arguments})), 80);
    assert!(text.contains("  │ one\n- │ two\n+ │ three\n"), "{text}");
    assert!(text.contains("file_path   │ /a"), "{text}");
}

#[test]
fn a_question_is_shown_with_its_options_by_number() {
    let text = text(&Approval::read(&question(1)).unwrap(), 80);
    assert!(
        text.contains("│ Which colour?") && text.contains("  1           red") && text.contains("  2           blue")
    );
}

#[test]
fn what_is_not_understood_is_taken_for_dangerous() {
    let changes = json!({"risk": {"level": "purple"}, "parts": [{"text": "x", "state": "fine"}], "arguments": null});
    let text = text(&approval(1, changes), 80);
    assert!(text.contains("HIGH !!") && text.contains("! risky     x") && text.contains("not shown"), "{text}");
}

#[test]
fn any_width_can_be_shown() {
    for cells in [0, 1, 10, 17, 18, 30, 200] {
        text(&approval(1, json!({"description": "日本".repeat(90)})), cells);
    }
}

#[test]
fn the_time_that_is_left_is_told_in_minutes_or_hours() {
    let left = |milliseconds: i64| time_left(&approval(1, json!({"expires_at": at(milliseconds)})), at(0));
    assert_eq!([left(300_000), left(59_999), left(-1), left(7_260_000)], ["5:00", "0:59", "expired", "2h01"]);
    assert_eq!(time_left(&approval(1, json!({"expires_at": null})), at(0)), "unlimited");
}
