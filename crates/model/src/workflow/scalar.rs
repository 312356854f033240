//! Plain YAML scalars, by the core schema of YAML 1.2. What readers of other versions interpret differently is refused.

use serde_json::Value;

use crate::strict_json::exact_number;

/// The value of a plain scalar.
pub(super) fn plain(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if is_ambiguous(unsigned) {
        return Err(format!("`{text}` is a number in some versions of YAML and a text in others; put it in quotes"));
    }
    if !is_numeral(unsigned) {
        return Ok(Value::String(text.to_owned()));
    }
    exact_number(text).map(Value::Number).ok_or_else(|| {
        format!("`{text}` has more digits or a larger exponent than can be represented exactly; put it in quotes")
    })
}

/// `[0-9]+` or `.[0-9]+` or `[0-9]+.[0-9]*`, with an optional exponent.
fn is_numeral(unsigned: &str) -> bool {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && is_digits(digits)
    });
    is_digits(whole) && is_digits(fraction) && !(whole.is_empty() && fraction.is_empty()) && exponent_fits
}

/// Octal, hexadecimal, infinite: numbers that JSON does not have, or that begin with a zero.
fn is_ambiguous(unsigned: &str) -> bool {
    let all =
        |digits: &str, is_digit: fn(&u8) -> bool| !digits.is_empty() && digits.bytes().all(|byte| is_digit(&byte));
    let lower = unsigned.to_ascii_lowercase();
    let prefixed = lower.strip_prefix("0x").is_some_and(|digits| all(digits, u8::is_ascii_hexdigit))
        || lower.strip_prefix("0o").is_some_and(|digits| all(digits, u8::is_ascii_digit));
    let zero = unsigned.strip_prefix('0').is_some_and(|digits| all(digits, u8::is_ascii_digit));
    prefixed || zero || lower == ".inf" || lower == ".nan"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plain_scalar_is_what_the_core_schema_says() {
        for (text, value) in [
            ("", json!(null)),
            ("true", json!(true)),
            ("yes", json!("yes")),
            ("12", json!(12)),
            ("-3", json!(-3)),
            ("1.5", json!(1.5)),
            (".5", json!(0.5)),
            ("1e3", json!(1000.0)),
            ("0", json!(0)),
            ("0.02", json!(0.02)),
            ("2024-01", json!("2024-01")),
            ("1_000", json!("1_000")),
            ("1.2.3", json!("1.2.3")),
            ("e5", json!("e5")),
            ("-", json!("-")),
            (".", json!(".")),
        ] {
            assert_eq!(plain(text), Ok(value), "{text}");
        }
        for text in ["007", "0x1F", "0o17", ".inf", "-.INF", ".nan", "1e999", "18446744073709551616"] {
            assert!(plain(text).is_err(), "{text}");
        }
    }
}
