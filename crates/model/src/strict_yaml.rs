//! The numbers of a YAML text: those that would lose digits are rejected, as in JSON. The YAML parser hands over a
//! number as a double if it is not a 64-bit integer, so this examines the text itself.

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle};
use thiserror::Error;

use crate::strict_json::exact_number;

/// A number in YAML that cannot be represented exactly.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the number at line {line}, column {column} has more digits or a larger exponent than can be represented exactly; put it \
     in quotes to make it a string"
)]
pub struct InexactNumber {
    /// Counted from 1.
    pub line: usize,
    /// The character within the line, counted from 1.
    pub column: usize,
}

/// Checks every number of a text. Invalid YAML is left to the parser.
pub fn check_numbers(text: &str) -> Result<(), InexactNumber> {
    for (event, span) in Parser::new_from_str(text).map_while(Result::ok) {
        if let Event::Scalar(token, style, _, tag) = event
            && tag.map_or(style == ScalarStyle::Plain, |tag| {
                ["float", "int"].iter().any(|kind| tag.is_yaml_core_schema_tag(kind))
            })
            && is_double(token.trim())
            && exact_number(token.trim()).is_none()
        {
            return Err(InexactNumber { line: span.start.line(), column: span.start.col() + 1 });
        }
    }
    Ok(())
}

/// Whether a plain scalar is a number that is not parsed as a 64-bit integer.
fn is_double(token: &str) -> bool {
    let unsigned = token.strip_prefix(['+', '-']).unwrap_or(token);
    let is_numeral = unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    is_numeral && token.parse::<f64>().is_ok() && token.parse::<u64>().is_err() && token.parse::<i64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_would_lose_digits_are_refused_where_they_stand() {
        for number in [
            "18446744073709551616",
            "-9223372036854775809",
            "+18446744073709551616",
            "1e-400",
            "1e999",
            "5000.00000000000000000000001",
            ".10000000000000001",
        ] {
            for text in [format!("a: 1\nb: [x, {number}]\n"), format!("a: 1\nb: {{x: {number}}}\n")] {
                let error = check_numbers(&text).unwrap_err();
                assert_eq!((error.line, error.column), (2, 8), "{number}: {error}");
            }
            assert!(check_numbers(&format!("a: !!float '{number}'\n")).is_err(), "{number}");
            assert_eq!(check_numbers(&format!("a: '{number}'\nb: \"{number}\"\nc: >-\n  {number}\n")), Ok(()));
        }
    }

    #[test]
    fn every_other_text_passes() {
        let text = "a: 9007199254740993\nb: -0\nc: 1.50\nd: 1e3\ne: .5\nf: 3.\ng: 2024-01-01\nh: 1.2.3\ni: .inf\nj: nan\n\
                    k: 0xffffffffffffffffffff\nl: 1_000\nm: &n 18446744073709551615\no: *n\n";
        assert_eq!(check_numbers(text), Ok(()));
    }
}
