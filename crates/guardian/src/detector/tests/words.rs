//! Addresses and secrets: what must be found, and what must be left alone.

use super::*;

#[test]
fn emails() {
    let emails = [
        "ann@example.com",
        "ann.b+tag@mail.example.co.uk",
        "o'neil@example.ie",
        "ann_1%x@ex-ample.org",
        "a@b.co",
        "ann%40example.com",
        "ann%2Btag%40example%2ecom",
        "ann&#64;example.com",
        "ann&commat;example&period;com",
        "ann%2540example.com",
        "ann\\u0040example.com",
        "ANN@EXAMPLE.COM",
        "rené@exämple.fr",
        "用户@例子.公司",
        "ann@xn--80ak6aa92e.xn--p1ai",
        "ann＠example．com",
        "ann@例子。公司",
        "R&D#1@example.com",
        "a\u{200b}nn@exa\u{200d}mple.c\u{ad}om",
        "𝐚𝐧𝐧@example.com",
    ];
    finds(&DetectorKind::Email, &emails);
    let plain = [
        "ann@localhost",
        "@ann",
        "ann@",
        "ann @ example.com",
        "package@1.2.3",
        "root@192.168.0.1",
        "a@b.c",
        "@media.print",
        "user@@",
        "x@.com",
        "x@-a.com",
        "a@b..com",
        "50% @ 3.5",
    ];
    leaves(&DetectorKind::Email, &plain);
}

#[test]
fn what_surrounds_an_email_stays() {
    let detectors = only(&DetectorKind::Email);
    for (text, redacted) in [
        ("**ann@example.com**.", "**[REDACTED-EMAIL]**."),
        ("https://x.example/?mail=ann@example.com&y=1", "https://x.example/?mail=[REDACTED-EMAIL]&y=1"),
        ("mailto:ann@example.com?subject=a", "mailto:[REDACTED-EMAIL]?subject=a"),
        ("ann@example.com.", "[REDACTED-EMAIL]."),
        ("写信给 ann@example.com谢谢", "写信给 [REDACTED-EMAIL]谢谢"),
        ("ann@example.com;bob@example.com", "[REDACTED-EMAIL];[REDACTED-EMAIL]"),
    ] {
        assert_eq!(detectors.redact(text).as_deref(), Some(redacted), "{text}");
    }
}

#[test]
fn secrets() {
    let random = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fG3iJ6lM9oP2rS5u";
    let token = |prefix: &str| format!("{prefix}{random}");
    let prefixes = ["ghp_", "github_pat_", "glpat-", "xoxb-", "sk_live_", "AIza", "sk-", "sk-ant-api03-", "tgk_"];
    let mut tokens: Vec<String> = prefixes.map(token).to_vec();
    tokens.push("AKIAABCDEFGHIJKLMN23".to_owned());
    tokens.push(format!("eyJ{random}.eyJ{random}.{random}"));
    tokens.push(format!("-----BEGIN RSA PRIVATE KEY-----\n{random}\n-----END RSA PRIVATE KEY-----"));
    let texts: Vec<&str> = tokens.iter().map(String::as_str).collect();
    finds(&DetectorKind::Secret, &texts);
    let plain = [
        "sk-learn tutorial",
        "password: required",
        "token=",
        "token_count: 123456ab",
        "max_tokens=a1b2c3d4e5",
        "the bearer of this letter",
        "Basic information",
        "let token = self.make_token();",
        "password=[REDACTED-SECRET]",
        "https://example.com:8080/a1b2c3d4@x",
        "Bearer [REDACTED-SECRET] a1b2c3d4",
        "3f786850e387550fdab836ed7e6dc881",
        "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----",
        "pin: 1234",
    ];
    leaves(&DetectorKind::Secret, &plain);
}

#[test]
fn secrets_are_told_by_what_stands_before_them() {
    let detectors = only(&DetectorKind::Secret);
    let marker = DetectorKind::Secret.marker();
    for (before, secret, after) in [
        ("Authorization: Bearer ", "abc12345", "\nHost: x"),
        ("authorization: basic ", "dXNlcjpwYXNz", ""),
        ("postgres://", "ann:hunter2", "@db/x"),
        ("password=", "tr0ub4dor", "&user=ann"),
        ("PASSWORD = '", "tr0ub4dor", "'"),
        ("{\"api_key\": \"", "0123456789abcdef", "\"}"),
        ("{\\\"api_key\\\": \\\"", "0123456789abcdef", "\\\"}"),
        ("aws_secret_access_key=", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY", "\n"),
        ("token: ", "q7Xz==kk12", ", next"),
        ("url?access_token=", "q7Xz9kk12", "&end"),
        ("cut off: ", "-----BEGIN PRIVATE KEY-----\nMIIEvQ", ""),
    ] {
        let redacted = detectors.redact(&format!("{before}{secret}{after}"));
        assert_eq!(redacted, Some(format!("{before}{marker}{after}")), "{before}{secret}{after}");
    }
}
