//! Payment card numbers: 12 to 19 digits, also with single blanks or hyphens between them, or in groups separated by
//! points, underscores or slashes, with the prefix and length of an issuer and a valid check digit.

use std::ops::Range;

use super::digits::{self, Group};

const SHORTEST: usize = 12;
const LONGEST: usize = 19;

/// First and last prefix of an issuer, in six digits, and the minimum and maximum length.
struct Issuer(u32, u32, usize, usize);

const ISSUERS: [Issuer; 22] = [
    // Mir
    Issuer(220_000, 220_499, 16, 19),
    // Mastercard
    Issuer(222_100, 272_099, 16, 16),
    Issuer(510_000, 559_999, 16, 16),
    // Diners Club
    Issuer(300_000, 305_999, 14, 19),
    Issuer(309_500, 309_599, 14, 19),
    Issuer(360_000, 369_999, 14, 19),
    Issuer(380_000, 399_999, 14, 19),
    // American Express
    Issuer(340_000, 349_999, 15, 15),
    Issuer(370_000, 379_999, 15, 15),
    // JCB
    Issuer(352_800, 358_999, 16, 19),
    // Visa
    Issuer(400_000, 499_999, 13, 13),
    Issuer(400_000, 499_999, 16, 16),
    Issuer(400_000, 499_999, 19, 19),
    // Maestro, the only one with 12 digits
    Issuer(501_800, 501_899, 12, 19),
    Issuer(502_000, 502_099, 12, 19),
    Issuer(503_800, 503_899, 12, 19),
    Issuer(589_300, 589_399, 12, 19),
    Issuer(630_400, 630_499, 12, 19),
    Issuer(675_900, 676_399, 12, 19),
    // Maestro, Verve, Discover, UnionPay, RuPay, Hipercard and others
    Issuer(500_000, 509_999, 16, 19),
    Issuer(560_000, 699_999, 16, 19),
    Issuer(810_000, 829_999, 16, 19),
];

/// Fewer groups than this with separators other than blanks and hyphens are a decimal number or a date.
const MIN_GROUPS: usize = 3;

/// Finds the ranges of card numbers.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let groups = digits::groups(bytes);
    let mut found = Vec::new();
    let mut add = |separators: &[u8], any_grouping: bool| {
        let adjoin = |first: &Group, second: &Group| match digits::between(bytes, *first, *second) {
            [sign] => separators.contains(sign),
            _ => false,
        };
        for run in groups.chunk_by(adjoin) {
            let mut rest = run;
            while let Some((first, others)) = rest.split_first() {
                let taken = longest(bytes, rest, any_grouping && rest.len() == run.len());
                let taken = if any_grouping || taken >= MIN_GROUPS { taken } else { 0 };
                if let Some(last) = taken.checked_sub(1).and_then(|last| rest.get(last)) {
                    found.push(first.start..last.end);
                    rest = rest.get(taken..).unwrap_or_default();
                } else {
                    rest = others;
                }
            }
        }
    };
    add(b" -", true);
    add(b" -._/", false);
    found
}

/// The number of groups in the longest card number that begins with the first; 0 if there is none. A whole run may be a
/// card number in any grouping, a part of it only in the groupings of cards: a list of small numbers is not one.
fn longest(bytes: &[u8], groups: &[Group], from_start: bool) -> usize {
    let mut number = Number::default();
    let mut taken = 0;
    let mut is_grouped = groups.first().is_some_and(|first| first.len() >= 4);
    for (count, &group) in (1..).zip(groups) {
        if number.length + group.len() > LONGEST || !(is_grouped || from_start) {
            break;
        }
        group.of(bytes).iter().for_each(|&digit| number.push(digit));
        let may_end = is_grouped || (from_start && count == groups.len());
        is_grouped &= group.len() >= 3;
        if may_end && number.is_card() && stands_alone(bytes, groups, group) {
            taken = count;
        }
    }
    taken
}

fn stands_alone(bytes: &[u8], groups: &[Group], last: Group) -> bool {
    groups.first().is_some_and(|first| {
        !digits::is_fraction(bytes, first.start)
            && !digits::is_in_hash(bytes, first.start, last.end)
            && !digits::is_in_uuid(bytes, first.start, last.end)
    })
}

/// A number that is read digit by digit.
#[derive(Default)]
struct Number {
    length: usize,
    /// The first six digits.
    beginning: u32,
    /// The sums of the digits with those at odd, and with those at even positions doubled.
    sums: (u32, u32),
}

impl Number {
    fn push(&mut self, digit: u8) {
        let digit = u32::from(digit.saturating_sub(b'0'));
        let doubled = if digit < 5 { digit * 2 } else { digit * 2 - 9 };
        self.length += 1;
        let (odd, even) = if self.length.is_multiple_of(2) { (digit, doubled) } else { (doubled, digit) };
        self.sums.0 += odd;
        self.sums.1 += even;
        if self.length <= 6 {
            self.beginning = self.beginning * 10 + digit;
        }
    }

    /// The Luhn check: every second digit is doubled, the last one is not.
    fn is_card(&self) -> bool {
        let sum = if self.length.is_multiple_of(2) { self.sums.0 } else { self.sums.1 };
        self.length >= SHORTEST && sum.is_multiple_of(10) && self.has_issuer()
    }

    fn has_issuer(&self) -> bool {
        ISSUERS.iter().any(|Issuer(first, last, shortest, longest)| {
            (first..=last).contains(&&self.beginning) && (shortest..=longest).contains(&&self.length)
        })
    }
}
