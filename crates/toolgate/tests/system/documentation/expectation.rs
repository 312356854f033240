//! Whether what was printed is what the page says, where `...` stands for anything.

/// What stands for anything.
const ANYTHING: &str = "...";

/// Whether these lines fit: `...` alone for any lines, inside a line for any text.
pub fn fits(expected: &[String], printed: &[&str]) -> bool {
    match (expected.split_first(), printed.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((first, below)), rest) if first == ANYTHING => {
            fits(below, printed) || rest.is_some_and(|(_, others)| fits(expected, others))
        }
        (Some(_), None) => false,
        (Some((first, below)), Some((line, others))) => line_fits(first, line) && fits(below, others),
    }
}

fn line_fits(expected: &str, line: &str) -> bool {
    let mut parts = expected.split(ANYTHING);
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

#[test]
fn a_mark_stands_for_any_text_and_alone_for_any_lines() {
    let check = |expected: &str, printed: &str| {
        let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
        fits(&expected, &printed.lines().collect::<Vec<_>>())
    };
    for (expected, printed) in [
        ("", ""),
        ("...", ""),
        ("...", "one\ntwo"),
        ("one\n...\nfour", "one\ntwo\nthree\nfour"),
        ("id vault_...", "id vault_01"),
        ("{...\"a\":1...}", "{\"b\":2,\"a\":1}"),
        ("a...b...c", "abc"),
    ] {
        assert!(check(expected, printed), "{expected:?} should fit {printed:?}");
    }
    for (expected, printed) in
        [("", "one"), ("one", ""), ("one\n...", "two"), ("a...a", "a"), ("...x", "xy"), ("a", "ab")]
    {
        assert!(!check(expected, printed), "{expected:?} should not fit {printed:?}");
    }
}
