//! JSON with comments, as editors write their settings: comments, and commas before closing brackets, are blanked, so that the
//! rest can be parsed as JSON.

use super::json_text::comment_length;

/// The text with a space for each byte of a comment and for each comma before a closing bracket.
pub fn blanked(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // Where the last comma is, if nothing but blanks and comments follows it, and a value precedes it.
    let mut comma: Option<usize> = None;
    let mut previous = '{';
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let length = match letter {
            '"' => string_length(rest),
            _ => comment_length(rest).unwrap_or(letter.len_utf8()),
        };
        let is_comment = comment_length(rest).is_some();
        let (token, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        match letter {
            _ if is_comment => plain.extend(token.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' })),
            '}' | ']' => {
                if let Some(comma) = comma.take() {
                    plain.replace_range(comma..comma + 1, " ");
                }
                plain.push(letter);
            }
            _ => {
                match letter {
                    ',' => comma = (!"{[,".contains(previous)).then_some(plain.len()),
                    blank if blank.is_ascii_whitespace() => {}
                    _ => comma = None,
                }
                plain.push_str(token);
            }
        }
        if !is_comment && !letter.is_ascii_whitespace() {
            previous = letter;
        }
        rest = behind;
    }
    plain
}

/// The length of the string at the start of the text, with its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (place, letter) in text.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parsed(text: &str) -> Value {
        let plain = blanked(text);
        assert_eq!(plain.len(), text.len(), "positions stay the same");
        serde_json::from_str(&plain).unwrap_or_else(|error| panic!("{error}: {plain}"))
    }

    #[test]
    fn comments_and_last_commas_are_left_out_and_strings_are_not_searched() {
        let text = "// é\n{\"a\": \"// no /* \\\" comment\", /* x\n, } */ \"b\": [1, 2, // two\n ],\n}";
        assert_eq!(parsed(text), json!({"a": "// no /* \" comment", "b": [1, 2]}));
        assert_eq!(parsed("{}// end"), json!({}));
        assert_eq!(parsed("[{},\n]"), json!([{}]));
    }

    #[test]
    fn what_is_wrong_without_comments_stays_wrong() {
        for text in ["{\"a\" 1}", "{,}", "[1,,]", "{\"a\": 1 /}", "{\"a\": \"x}", "{ /* "] {
            assert!(serde_json::from_str::<Value>(&blanked(text)).is_err(), "{text}");
        }
    }
}
