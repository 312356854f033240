//! What detectors find, what they leave alone, and that nothing is left of what they name.

use super::*;

mod numbers;
mod planted;
mod values;
mod words;

/// Every kind that has a name.
const NAMED: [DetectorKind; 6] = [
    DetectorKind::Email,
    DetectorKind::Phone,
    DetectorKind::Card,
    DetectorKind::Iban,
    DetectorKind::NationalId,
    DetectorKind::Secret,
];

fn only(kind: &DetectorKind) -> Detectors {
    Detectors::new(std::slice::from_ref(kind)).unwrap()
}

fn all() -> Detectors {
    Detectors::new(&NAMED).unwrap()
}

fn custom(expression: &str) -> Detectors {
    only(&DetectorKind::parse(&format!("regex:{expression}")).unwrap())
}

/// All of each text is found, wherever it stands.
fn finds(kind: &DetectorKind, texts: &[&str]) {
    let detectors = only(kind);
    for text in texts {
        for (before, after) in
            [("", ""), ("see ", " please"), ("(", ")"), ("«", "»"), ("x: ", ", y"), ("12 a\n", "\n7 b")]
        {
            let redacted = detectors.redact(&format!("{before}{text}{after}"));
            assert_eq!(redacted, Some(format!("{before}{}{after}", kind.marker())), "{before}{text}{after}");
        }
    }
}

fn leaves(kind: &DetectorKind, texts: &[&str]) {
    for text in texts {
        assert_eq!(only(kind).redact(text), None, "{text}");
    }
}

#[test]
fn detectors_are_read_by_name() {
    let names = ["email", "phone", "card", "iban", "national-id", "secret"];
    assert_eq!(names.map(|name| DetectorKind::parse(name).unwrap()), NAMED);
    assert_eq!(DetectorKind::parse("regex:a+").unwrap(), DetectorKind::Custom("a+".to_owned()));
    for unknown in ["", "Email", "e-mail", "regex", "card "] {
        assert_eq!(DetectorKind::parse(unknown), Err(DetectorError::Unknown(unknown.to_owned())));
    }
}

#[test]
fn an_expression_that_is_broken_too_large_or_matches_nothing_is_refused() {
    for expression in ["", "a*", "x?", "^", "$", r"\b", "|a", "(?m)^", "a{0}"] {
        let refusal = DetectorKind::parse(&format!("regex:{expression}")).unwrap_err();
        assert_eq!(refusal, DetectorError::MatchesNothing(expression.to_owned()));
        assert!(Detectors::new(&[DetectorKind::Custom(expression.to_owned())]).is_err());
    }
    let deep = "(".repeat(100) + "a" + &")".repeat(100);
    for expression in ["(", "a{2,1}", r"\w{1000}{1000}", "(?P<n>a)(?P<n>b)", &deep] {
        let refusal = DetectorKind::parse(&format!("regex:{expression}")).unwrap_err();
        assert!(matches!(refusal, DetectorError::Expression { .. }), "{expression}");
    }
}

#[test]
fn a_marker_tells_the_kind_and_the_text_around_it_stays() {
    let text = "Ann <ann@example.com>, +49 30 1234567, 4111 1111 1111 1111; DE89 3704 0044 0532 0130 00, 123-45-6789.";
    let redacted = "Ann <[REDACTED-EMAIL]>, [REDACTED-PHONE], [REDACTED-CARD]; [REDACTED-IBAN], [REDACTED-ID].";
    assert_eq!(all().redact(text).as_deref(), Some(redacted));
    assert_eq!(custom("T-[0-9]+").redact("see T-12 and T-3").as_deref(), Some("see [REDACTED] and [REDACTED]"));
}

#[test]
fn a_text_that_has_nothing_is_not_touched() {
    for text in ["", "hello", "été 2024", "[REDACTED]", "100% of 5", "a[REDACTED-CARD]b[REDACTED-7]", "\u{200b}４２"]
    {
        assert_eq!(all().redact(text), None, "{text}");
        assert!(!all().occurs(text), "{text}");
    }
    assert_eq!(Detectors::new(&[]).unwrap().redact("ann@example.com"), None);
}

#[test]
fn findings_that_overlap_become_one_with_the_marker_of_the_longest() {
    let detectors = Detectors::new(&[DetectorKind::Email, DetectorKind::Custom("for ann".to_owned())]).unwrap();
    assert_eq!(detectors.redact("mail for ann@example.com!").as_deref(), Some("mail [REDACTED-EMAIL]!"));
    let address = "https://ann:hunter2@db.example.com/x";
    assert_eq!(all().redact(address).as_deref(), Some("https://[REDACTED-EMAIL]/x"));
}

#[test]
fn what_comes_together_when_something_is_cut_out_is_found_too() {
    let kinds = [DetectorKind::Card, DetectorKind::Custom(r"x\[RED".to_owned())];
    let detectors = Detectors::new(&kinds).unwrap();
    assert_eq!(detectors.redact("x4111111111111111").as_deref(), Some("[REDACTED]ACTED-CARD]"));
    assert_eq!(detectors.redact("x 4111111111111111").as_deref(), Some("x [REDACTED-CARD]"));
}

#[test]
fn a_text_that_does_not_come_to_rest_is_replaced_as_a_whole() {
    let kinds = [".[\\[]", "x"].map(|expression| DetectorKind::Custom(expression.to_owned()));
    let detectors = Detectors::new(&kinds).unwrap();
    assert_eq!(detectors.redact(&"abcdefghx".repeat(10)).as_deref(), Some("[REDACTED]"));
    assert!(!detectors.occurs("[REDACTED]"));
}

#[test]
fn expressions_that_match_markers_do_not_find_them() {
    assert_eq!(custom("[A-Z]+").redact("my TOKEN is").as_deref(), Some("my [REDACTED] is"));
    assert_eq!(custom("(?s).+").redact("anything").as_deref(), Some("[REDACTED]"));
    assert!(!custom("(?s).+").occurs("[REDACTED][REDACTED-2]"));
    assert!(custom("(?s).+").occurs("[REDACTED-1234567]"));
}

#[test]
fn the_cost_does_not_depend_on_what_the_text_is_made_of() {
    let long = ["1", "a@", "1 ", "4111 "];
    let pieces = [
        "5 4",
        "0 12",
        "+1 ",
        "(11) ",
        "x@a.b",
        "a.",
        "%40",
        "%",
        "１",
        "\u{200b}",
        "DE89",
        "DE89 ",
        "999-99-9999 ",
        "token=",
        "token=a1b2c3d4 ",
        "://a:",
        "a:b@",
        "eyJ.",
        "-----BEGIN ",
        "bearer ",
        "sk-",
        "[REDACTED",
        "A=\"",
        "é",
        "AB 12 ",
        "2345 6789 ",
        "12.345.",
    ];
    let texts = long.map(|piece| (piece, 1 << 20)).into_iter().chain(pieces.map(|piece| (piece, 1 << 16)));
    let detectors = all();
    for (piece, length) in texts {
        let text = piece.repeat(length / piece.len());
        let redacted = detectors.redact(&text);
        assert!(redacted.is_none_or(|redacted| !detectors.occurs(&redacted)), "{piece}");
    }
}
