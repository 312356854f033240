//! Which texts have the shape of a secret.

use super::*;

/// As many random letters and digits as any token has.
const RANDOM: &str = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fG3iJ6lM9oP2rS5uV8xY1";

fn of(prefix: &str, length: usize) -> String {
    prefix.chars().chain(RANDOM.chars().cycle().take(length)).collect()
}

fn tokens() -> Vec<String> {
    let mut tokens: Vec<String> = ["gho_", "ghp_", "ghr_", "ghs_", "ghu_", "npm_", "tgk_"].map(|p| of(p, 46)).to_vec();
    tokens.extend(["sk_live_", "sk_test_", "rk_live_"].map(|prefix| of(prefix, 24)));
    tokens.extend(["xoxa-2-", "xoxb-", "xoxp-", "xoxr-", "xoxs-", "glpat-", "whsec_"].map(|prefix| of(prefix, 20)));
    tokens.extend(["sk-", "sk-proj-", "sk-ant-api03-", "github_pat_", "ya29."].map(|prefix| of(prefix, 30)));
    tokens.extend(["AIza", "hf_", "pypi-AgEI", "shpat_"].map(|prefix| of(prefix, 35)));
    tokens.push(format!("SG.{}.{}", of("", 22), of("", 43)));
    tokens.push(format!("dop_v1_{}", "0123456789abcdef".repeat(4)));
    tokens.push(format!("eyJ{}.eyJ{}.{}", of("", 20), of("", 30), of("", 43)));
    tokens.extend(["AKIA", "ASIA"].map(|prefix| format!("{prefix}ABCDEFGHIJKLMN23")));
    tokens.push("sk-canary-rfc0064-0123".to_owned());
    tokens
}

#[test]
fn tokens_of_issuers_are_found_wherever_they_stand() {
    for token in tokens() {
        for text in [
            token.clone(),
            format!("Use {token}, please"),
            format!("KEY={token}"),
            format!("{{\"k\":\"{token}\"}}"),
            format!("https://example.com/a?k={token}&b"),
            format!("é{token}é"),
        ] {
            assert!(shape::occurs(&text), "{text}");
        }
    }
}

#[test]
fn a_prefix_inside_a_word_or_without_enough_behind_it_is_none() {
    for token in tokens() {
        let start: String = token.chars().take(10).collect();
        assert!(!shape::occurs(&start), "{start}");
        let glued = format!("x{token}");
        assert!(!shape::occurs(&glued), "{glued}");
    }
}

#[test]
fn keys_headers_and_addresses_are_found() {
    let begin = |label: &str| format!("cat <<E\n-----BEGIN {label}-----\nMIIE");
    let secret = [
        begin("PRIVATE KEY"),
        begin("RSA PRIVATE KEY"),
        begin("OPENSSH PRIVATE KEY"),
        begin("PGP PRIVATE KEY BLOCK"),
        "Bearer abc12345".to_owned(),
        "curl -H 'authorization: bearer abcdefghijklmnopqrstuvwxyz'".to_owned(),
        "Basic dXNlcjpwYXNz".to_owned(),
        "Authorization: BASIC dTpw".to_owned(),
        "Basic dXNlcjpwYXNzdw==".to_owned(),
        "postgres://ann:hunter2@db/x".to_owned(),
        "redis://:pw@h".to_owned(),
        "see https://a and ftp://b:c@d".to_owned(),
    ];
    for text in secret {
        assert!(shape::occurs(&text), "{text}");
    }
}

#[test]
fn ordinary_texts_are_left_alone() {
    let plain = [
        "",
        "sk-learn tutorial",
        "sk-learn-tutorial-for-beginners",
        "risk-assessment-2024-results-final",
        "task-1234567890abcdef12345",
        "ASIAPACIFICREGIONALOFFICES",
        "AKIAABCDEFGHIJKLMN234",
        "npm_config_registry",
        "github_pat_is_a_prefix_of_tokens",
        "xoxo-love-2024-forever-yours",
        "the bearer of this letter, Bearer Certificates, bearer responsibilities",
        "Basic information about the basic plan: basic arithmetic",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----",
        "https://example.com:8080/path/@someone?at=12:30@noon",
        "git@github.com:owner/repository.git",
        "ssh://git@example.com/repository",
        "mail ann@example.com: see http://example.com",
        "eyJ is how base64 of an object begins. eyJ it is.",
        "3f786850e387550fdab836ed7e6dc881de23001b",
        "018f3c5e-7a1b-7c3d-9e2f-1a2b3c4d5e6f",
        "[redacted]",
    ];
    for text in plain {
        assert!(!shape::occurs(text), "{text}");
    }
}

#[test]
fn a_text_of_nothing_but_prefixes_is_gone_through_once() {
    for piece in ["sk-", "eyJ-", "eyJ.", "://a:", "-----BEGIN ", "bearer ", "basic a"] {
        assert!(!shape::occurs(&piece.repeat(50_000)), "{piece}");
    }
}
