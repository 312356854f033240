//! Quotes input of the host in errors: short, with invisible characters escaped.

use super::MAX_ECHO;
use crate::output::is_deceptive;

/// The beginning of the text, at most [`MAX_ECHO`] bytes, cut between characters.
pub fn echoed(text: &str) -> String {
    let mut echo = String::new();
    for letter in text.chars() {
        let shown = if is_plain(letter) { letter.to_string() } else { letter.escape_unicode().to_string() };
        if echo.len() + shown.len() > MAX_ECHO {
            break;
        }
        echo.push_str(&shown);
    }
    echo
}

fn is_plain(letter: char) -> bool {
    !letter.is_control() && !is_deceptive(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_short_and_cut_between_characters() {
        assert_eq!(echoed("cargo test"), "cargo test");
        assert_eq!(echoed(&"x".repeat(500)).len(), MAX_ECHO);
        // 120 is no multiple of 3, so the last character has no place any more.
        assert_eq!(echoed(&"€".repeat(100)), "€".repeat(40));
        assert_eq!(echoed(&format!("{}€", "x".repeat(119))), "x".repeat(119));
    }

    #[test]
    fn an_echo_shows_what_cannot_be_seen() {
        assert_eq!(echoed("a\u{1b}[31m\u{202e}b\0"), "a\\u{1b}[31m\\u{202e}b\\u{0}");
        assert!(echoed(&"\u{7}".repeat(200)).len() <= MAX_ECHO);
    }
}
