//! Which numbers are accepted, and their representation. An accepted number denotes exactly what was written, in memory
//! and in its canonical text: what is hashed, compared, stored and sent is the same number.

use serde_json::Number;

/// Up to here every integer is exactly representable as a double.
const EXACT_INTEGERS: f64 = 9_007_199_254_740_992.0;

/// The number that a token denotes; `None` if it cannot be represented with all its digits.
///
/// A 64-bit integer is kept as one. Any other number is a double, and stands for the shortest decimal that parses to
/// that double; a token that denotes anything else would lose digits. An integer that is written like a double (`1.0`,
/// `1e2`) stays a double as long as doubles represent all integers.
pub(crate) fn exact(token: &str) -> Option<Number> {
    let written = Decimal::of(token)?;
    let is_plain = token != "-0" && !token.contains(['.', 'e', 'E']);
    let double = token.parse().ok().filter(|double: &f64| double.is_finite());
    let double = double
        .filter(|&double| Decimal::of(ryu_js::Buffer::new().format_finite(double)).is_some_and(|kept| kept == written));
    match double {
        Some(double) if !is_plain && double.abs() <= EXACT_INTEGERS => Number::from_f64(double),
        _ => written.integer().or_else(|| double.and_then(Number::from_f64)),
    }
}

/// The value of a decimal text: its significant digits, times ten to the exponent. Equal values are equal here.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    /// Neither begins nor ends with a zero; empty for zero.
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// Parses JSON notation, and what YAML adds to it: a plus sign, and no digits on one side of the point.
    fn of(token: &str) -> Option<Self> {
        let (mantissa, exponent) = token.split_once(['e', 'E']).unwrap_or((token, "0"));
        let (negative, mantissa) = match mantissa.strip_prefix('-') {
            Some(mantissa) => (true, mantissa),
            None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let all = format!("{whole}{fraction}");
        let digits = all.trim_end_matches('0');
        if digits.is_empty() {
            return Some(Self { negative: false, digits: String::new(), exponent: 0 });
        }
        let zeros = i64::try_from(all.len() - digits.len()).ok()?;
        let places = i64::try_from(fraction.len()).ok()?;
        let exponent = exponent.parse::<i64>().ok()?.checked_add(zeros)?.checked_sub(places)?;
        Some(Self { negative, digits: digits.trim_start_matches('0').to_owned(), exponent })
    }

    /// The value as a 64-bit integer, if it is one.
    fn integer(&self) -> Option<Number> {
        if self.digits.is_empty() {
            return Some(Number::from(0_u64));
        }
        let zeros = usize::try_from(self.exponent).ok().filter(|zeros| *zeros <= 20)?;
        let sign = if self.negative { "-" } else { "" };
        let text = format!("{sign}{}{}", self.digits, "0".repeat(zeros));
        text.parse::<u64>().map(Number::from).or_else(|_| text.parse::<i64>().map(Number::from)).ok()
    }
}
