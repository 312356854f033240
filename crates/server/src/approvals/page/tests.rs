//! What holds for the page whatever its script does: the policy that the browser enforces.

use super::*;

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    text.split_once(start).unwrap().1.split_once(end).unwrap().0
}

#[test]
fn the_policy_names_the_script_and_the_style_that_are_on_the_page() {
    let html = std::str::from_utf8(&PAGE.html).unwrap();
    assert!(!html.contains("{{"), "a place was left open");
    let policy = PAGE.policy.to_str().unwrap();
    for (start, end) in [("<script>", "</script>"), ("<style>", "</style>")] {
        let hash = sha256(between(html, start, end).as_bytes());
        assert!(policy.contains(&format!("'sha256-{hash}'")), "{start}");
    }
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
}

#[test]
fn there_is_one_script_and_no_handler_target_or_foreign_address() {
    let html = std::str::from_utf8(&PAGE.html).unwrap();
    assert_eq!((html.matches("<script").count(), html.matches("</script").count()), (1, 1));
    for forbidden in [" onclick", " onsubmit", " onload", " action=", " src=", " href=", "http://", "https://"] {
        assert!(!TEMPLATE.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn the_script_writes_text_only_and_keeps_nothing() {
    let forbidden = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "localStorage",
        "sessionStorage",
        "cookie",
    ];
    for word in forbidden {
        assert!(!SCRIPT.contains(word), "{word}");
    }
}

#[test]
fn nothing_that_decides_is_in_a_form_or_sends_one() {
    let form = between(TEMPLATE, "<form", "</form>");
    assert!(!form.contains("approve") && !form.contains("deny"), "{form}");
    for id in ["approve", "deny"] {
        assert!(TEMPLATE.contains(&format!("<button type=\"button\" id=\"{id}\"")), "{id}");
    }
}
