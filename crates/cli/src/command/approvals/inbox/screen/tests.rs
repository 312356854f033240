//! What the whole screen looks like.

use serde_json::json;

use super::super::testing::{at, described, inbox, seen};
use super::*;

#[test]
fn every_line_has_the_width_of_the_terminal_whatever_is_shown() {
    let hostile = "\u{1b}[2J日本\u{202e}\r\n".repeat(50);
    let mut inbox = inbox(vec![
        described(
            1,
            json!({"agent_id": hostile, "tool": hostile, "description": hostile, "id": hostile, "reasons": [
            {"source": hostile, "text": hostile}], "arguments": {hostile.clone(): hostile}}),
        ),
        described(2, json!({})),
    ]);
    for (columns, rows) in [(30, 12), (31, 24), (80, 24), (200, 60), (29, 24), (80, 1), (1, 1)] {
        inbox.resize(Size { columns, rows });
        let lines = screen(&inbox, at(2_000));
        assert_eq!(lines.len(), usize::from(rows));
        for line in lines {
            let text = line.plain();
            assert_eq!(width(&text), usize::from(columns), "{text:?}");
            assert!(!text.chars().any(|letter| letter.is_control() || letter == '\u{202e}'), "{text:?}");
        }
    }
}

#[test]
fn the_list_shows_time_risk_agent_tool_and_what_it_is() {
    let mut inbox = inbox(vec![described(1, json!({})), described(2, json!({"risk": {"level": "high"}}))]);
    let text = seen(&inbox);
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows[0], "Toolgate approvals · 2 pending · live · http://gate");
    assert_eq!(rows[1], "> 4:58     medium !  coder             shell.Bash                run the tests");
    assert_eq!(rows[2], "  4:58     HIGH !!   coder             shell.Bash                run the tests");
    assert!(rows[3].starts_with("── appr_1 ──"));
    assert!(rows[rows.len() - 1].starts_with("o once · d deny"));
    inbox.sending = Some("appr_1".to_owned());
    assert!(seen(&inbox).contains("> sending"));
}

#[test]
fn the_chosen_one_is_always_in_the_list() {
    let mut inbox = inbox((1..=60).map(|number| described(number, json!({}))).collect());
    for place in [0, 1, 30, 59] {
        inbox.selected = Some(inbox.waiting[place].id.clone());
        assert_eq!(seen(&inbox).lines().filter(|line| line.starts_with("> ")).count(), 1, "{place}");
    }
}

#[test]
fn the_footer_says_when_keys_do_not_count() {
    let mut inbox = inbox(vec![described(1, json!({}))]);
    inbox.resize(Size { columns: 80, rows: 40 });
    assert!(seen(&inbox).contains("Enter, and keys within 0.5 s"));
}

#[test]
fn the_end_of_a_long_line_stays_visible_while_it_is_written() {
    let text = writing("Reason: ", &"日本語 ".repeat(50), 40).plain();
    assert!(width(&text) <= 40 && text.ends_with("語 _"), "{text}");
}

#[test]
fn an_empty_inbox_says_so() {
    assert!(seen(&inbox(Vec::new())).contains("No call waits for approval."));
}
