//! What keys may do, and what nothing may do.

use serde_json::json;
use toolgate_model::time::Timestamp;

use super::super::screen::Size;
use super::super::testing::{at, described, inbox, question, seen, type_slowly};
use super::*;
use crate::command::approvals::feed::News;

fn two() -> Inbox {
    inbox(vec![described(1, json!({})), described(2, json!({}))])
}

fn yes() -> ApproverDecision {
    ApproverDecision { approve: true, ..ApproverDecision::default() }
}

fn decides(id: &str, decision: ApproverDecision) -> Option<Effect> {
    Some(Effect::Decide { id: id.to_owned(), decision })
}

fn late() -> Timestamp {
    at(2_000)
}

#[test]
fn one_key_says_yes_or_no_to_the_chosen_call() {
    assert_eq!(type_slowly(&mut two(), "o"), decides("appr_1", yes()));
    assert_eq!(type_slowly(&mut two(), "d"), decides("appr_1", ApproverDecision::default()));
    assert_eq!(type_slowly(&mut two(), "jo"), decides("appr_2", yes()));
    assert_eq!(type_slowly(&mut two(), "jjjkkjd"), decides("appr_2", ApproverDecision::default()));
    assert_eq!(type_slowly(&mut two(), "q"), Some(Effect::Quit));
    assert_eq!(two().press(&[Input::Interrupt], at(0)), Some(Effect::Quit));
}

#[test]
fn enter_alone_decides_nothing_anywhere() {
    for before in ["", "j", "?", "s", "p", "r", "w", "u"] {
        let mut inbox = two();
        type_slowly(&mut inbox, before);
        for _ in 0..3 {
            assert_eq!(inbox.press(&[Input::Enter], late()), None, "after {before:?}");
        }
    }
    let mut inbox = inbox(vec![question(1)]);
    assert_eq!(type_slowly(&mut inbox, "a\n\n \n"), None);
}

#[test]
fn a_paste_decides_nothing() {
    for before in ["", "s", "p", "?"] {
        for pasted in ["o", "y", "oy\r", "q"] {
            let mut inbox = two();
            type_slowly(&mut inbox, before);
            let mode = inbox.mode.clone();
            assert_eq!(inbox.press(&[Input::Paste(pasted.to_owned())], late()), None);
            assert_eq!(inbox.mode, mode);
        }
    }
}

#[test]
fn keys_that_arrive_at_once_decide_nothing_and_neither_does_what_follows_them_closely() {
    let mut inbox = two();
    let burst: Vec<Input> = "so".chars().map(Input::Letter).collect();
    assert_eq!(inbox.press(&burst, late()), None);
    assert_eq!(inbox.press(&[Input::Letter('o')], at(2_100)), None);
    assert!(seen(&inbox).contains("had just changed"));
    assert_eq!(inbox.press(&[Input::Letter('o')], at(2_500)), decides("appr_1", yes()));
}

#[test]
fn a_key_that_was_typed_before_the_card_was_there_is_ignored() {
    let mut inbox = two();
    for letter in ['o', 'd', 's', 'y'] {
        assert_eq!(inbox.press(&[Input::Letter(letter)], at(499)), None, "{letter}");
    }
    assert_eq!(inbox.press(&[Input::Letter('o')], at(500)), decides("appr_1", yes()));
    assert_eq!(two().press(&[Input::Letter('q')], at(0)), Some(Effect::Quit), "leaving decides nothing");

    // The first one ends by itself; the second takes its place under the finger of the person.
    let mut inbox = two();
    inbox.receive(News::Happened(json!({"approval": described(1, json!({"status": "timed_out"}))})), late());
    assert_eq!(inbox.press(&[Input::Letter('o')], at(2_499)), None);
    assert_eq!(inbox.press(&[Input::Letter('o')], at(2_500)), decides("appr_2", yes()));
}

#[test]
fn a_clock_that_is_set_back_makes_no_key_count() {
    assert_eq!(two().press(&[Input::Letter('o')], at(-60_000)), None);
}

#[test]
fn a_rule_is_shown_before_it_stands_and_needs_a_yes_of_its_own() {
    for (letter, reach, place) in [
        ("s", Reach::Session, "in session work"),
        ("w", Reach::Workspace, "in /home/ann/shop"),
        ("u", Reach::User, "everywhere"),
    ] {
        let mut inbox = two();
        assert_eq!(type_slowly(&mut inbox, letter), None);
        let text = seen(&inbox);
        assert!(text.contains(&format!("Covers      every call of shell.Bash by coder, {place}\n")), "{text}");
        let standing = StandingRequest { reach: Some(reach), ..StandingRequest::default() };
        assert_eq!(
            type_slowly(&mut inbox, "y"),
            decides("appr_1", ApproverDecision { standing: Some(standing), ..yes() })
        );
    }
    for other in ["n", "o", "d", " ", "Y", "q"] {
        let mut inbox = two();
        assert_eq!(type_slowly(&mut inbox, "s"), None);
        assert_eq!(type_slowly(&mut inbox, other), None, "{other}");
    }
}

#[test]
fn a_prefix_is_shown_with_its_examples_and_can_be_changed_before_it_stands() {
    let mut inbox = two();
    type_slowly(&mut inbox, "p");
    let text = seen(&inbox);
    for part in [
        "commands of shell.Bash that begin with `cargo test` by coder, in session work",
        "+ covered   cargo test --all",
        "- excluded  cargo publish",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    type_slowly(&mut inbox, "pw");
    let text = seen(&inbox);
    assert!(text.contains("begin with `npm ci` by coder, in /home/ann/shop\n"), "{text}");
    let standing = StandingRequest {
        prefix: Some("npm ci".to_owned()),
        reach: Some(Reach::Workspace),
        ..StandingRequest::default()
    };
    assert_eq!(type_slowly(&mut inbox, "y"), decides("appr_1", ApproverDecision { standing: Some(standing), ..yes() }));
}

#[test]
fn a_prefix_that_is_gone_never_becomes_every_call() {
    let mut inbox = two();
    type_slowly(&mut inbox, "p");
    inbox.receive(News::Happened(json!({"approval": described(1, json!({"offers": []}))})), at(0));
    assert_eq!(type_slowly(&mut inbox, "y"), None);
}

#[test]
fn what_cannot_be_covered_cannot_be_asked_for() {
    let never = || inbox(vec![described(1, json!({"coverable": false}))]);
    let homeless = || inbox(vec![described(1, json!({"session": null, "offers": [{"scope": "always"}]}))]);
    for letters in ["s", "w", "u", "p"] {
        assert_eq!(type_slowly(&mut never(), &format!("{letters}y")), None, "{letters}");
    }
    for letters in ["s", "w", "p"] {
        assert_eq!(type_slowly(&mut homeless(), &format!("{letters}y")), None, "{letters}");
    }
    assert!(type_slowly(&mut homeless(), "uy").is_some());
}

#[test]
fn a_no_may_say_why() {
    let mut inbox = two();
    let reason = ApproverDecision { reason: Some("o no, q?".to_owned()), ..ApproverDecision::default() };
    assert_eq!(type_slowly(&mut inbox, "ro no, q?\n"), decides("appr_1", reason));

    let mut inbox = two();
    type_slowly(&mut inbox, "rab");
    inbox.press(&[Input::Backspace], late());
    inbox.press(&[Input::Paste("c\nd\u{1b}".to_owned())], late());
    assert!(seen(&inbox).contains("Reason: ac d_"), "{}", seen(&inbox));
    // An enter that came with other keys is part of what they are.
    assert_eq!(inbox.press(&[Input::Letter('x'), Input::Enter], late()), None);
    inbox.press(&[Input::Escape], late());
    assert_eq!((inbox.mode.clone(), inbox.sending.clone()), (Mode::Browse, None));
}

#[test]
fn a_question_is_answered_by_number_or_words_and_never_by_a_bare_yes() {
    for (typed, answer) in [("2", "blue"), ("red", "red"), ("3", "3"), ("green", "green"), (" 1 ", "red")] {
        let answer = ApproverDecision { answer: Some(answer.to_owned()), ..yes() };
        assert_eq!(type_slowly(&mut inbox(vec![question(1)]), &format!("a{typed}\n")), decides("appr_1", answer));
    }
    for letters in ["o", "sy", "uy", "py"] {
        assert_eq!(type_slowly(&mut inbox(vec![question(1)]), letters), None);
    }
    assert_eq!(type_slowly(&mut two(), "a1\n"), None);
    assert_eq!(chosen("2", &["3".to_owned(), "2".to_owned(), "1".to_owned()]), "2");
}

#[test]
fn keys_that_were_meant_for_a_call_that_ended_touch_no_other() {
    for before in ["s", "p", "rbecause "] {
        let mut inbox = two();
        type_slowly(&mut inbox, before);
        inbox.receive(News::Happened(json!({"approval": described(1, json!({"status": "cancelled"}))})), at(1_000));
        assert_eq!(type_slowly(&mut inbox, "yodd\no"), None, "{before}");
        assert!(seen(&inbox).contains("no longer pending"), "{}", seen(&inbox));
        inbox.press(&[Input::Escape], late());
        assert_eq!(inbox.mode, Mode::Browse);
    }
}

#[test]
fn nothing_is_approved_before_its_end_was_on_the_screen() {
    let lines = "line\n".repeat(110);
    let mut inbox = inbox(vec![described(1, json!({"arguments": {"content": lines}}))]);
    for letters in ["o", "sy", "py"] {
        assert_eq!(type_slowly(&mut inbox, letters), None);
        assert_eq!(inbox.mode, Mode::Browse);
    }
    assert!(seen(&inbox).contains("more lines"));
    inbox.press(&[Input::PageDown], late());
    assert_eq!(type_slowly(&mut inbox, "o"), None);
    inbox.press(&[Input::PageDown], late());
    inbox.press(&[Input::PageDown], late());
    assert_eq!(type_slowly(&mut inbox, "o"), decides("appr_1", yes()));
    inbox.sending = None;
    inbox.resize(Size { columns: 100, rows: 30 });
    assert_eq!(type_slowly(&mut inbox, "o"), None);
    inbox.press(&[Input::End], late());
    assert_eq!(type_slowly(&mut inbox, "o"), decides("appr_1", yes()));
    inbox.sending = None;
    assert_eq!(type_slowly(&mut inbox, "d"), decides("appr_1", ApproverDecision::default()));
}

#[test]
fn nothing_is_approved_in_a_window_that_shows_nothing() {
    for (columns, rows) in [(100, 0), (100, 5), (20, 50), (0, 0)] {
        let mut inbox = two();
        inbox.resize(Size { columns, rows });
        inbox.press(&[Input::End], late());
        assert_eq!(type_slowly(&mut inbox, "o"), None, "{columns}x{rows}");
        assert_eq!(seen(&inbox).lines().count(), usize::from(rows));
    }
}

#[test]
fn one_answer_is_on_its_way_at_a_time() {
    let mut inbox = two();
    assert!(type_slowly(&mut inbox, "o").is_some());
    assert_eq!(type_slowly(&mut inbox, "ojosy"), None);
}
