//! Repeats a host's input in an error: short, and without characters that could mislead a reader.

use super::MAX_ECHO;

/// The beginning of the text, at most [`MAX_ECHO`] bytes, cut between two characters; invisible characters are escaped.
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
    let deceptive = matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    !letter.is_control() && !deceptive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_short_and_cut_between_characters() {
        assert_eq!(echoed("cargo test"), "cargo test");
        assert_eq!(echoed(&"x".repeat(500)).len(), MAX_ECHO);
        // 120 is not a multiple of 3, so the last character does not fit.
        assert_eq!(echoed(&"€".repeat(100)), "€".repeat(40));
        assert_eq!(echoed(&format!("{}€", "x".repeat(119))), "x".repeat(119));
    }

    #[test]
    fn an_echo_shows_what_cannot_be_seen() {
        assert_eq!(echoed("a\u{1b}[31m\u{202e}b\0"), "a\\u{1b}[31m\\u{202e}b\\u{0}");
        assert!(echoed(&"\u{7}".repeat(200)).len() <= MAX_ECHO);
    }
}
