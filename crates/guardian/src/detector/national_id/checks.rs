//! Checks of capital letters and digits in the format of a country's number. The formats guarantee the number of
//! characters that each check needs; otherwise the check fails.

/// Excludes areas, groups and serials that were never issued.
pub(super) fn united_states(number: &[u8]) -> bool {
    let area = number.get(..3).unwrap_or_default();
    let is_area = area != b"000" && area != b"666" && !area.starts_with(b"9");
    is_area && number.get(3..5) != Some(b"00") && number.get(5..) != Some(b"0000")
}

/// Excludes unused letters and prefixes; the last letter is one of the first four.
pub(super) fn united_kingdom(number: &[u8]) -> bool {
    let unused: [&[u8]; 7] = [b"BG", b"GB", b"KN", b"NK", b"NT", b"TN", b"ZZ"];
    let [first, second, .., last] = number else { return false };
    let has_letters = !b"DFIQUV".contains(first) && !b"DFIOQUV".contains(second) && b"ABCD".contains(last);
    has_letters && !unused.iter().any(|unused| number.starts_with(unused))
}

/// Of the first ten digits exactly one occurs more than once, and not more than three times; ISO 7064, MOD 11,10.
pub(super) fn germany(number: &[u8]) -> bool {
    let Some((&check, first)) = number.split_last() else { return false };
    if first.starts_with(b"0") {
        return false;
    }
    let times = (b'0'..=b'9').map(|digit| first.iter().filter(|&&own| own == digit).count()).filter(|&times| times > 1);
    let repeated: Vec<usize> = times.collect();
    let product = first.iter().fold(10, |product, &digit| {
        let sum = (value(digit) + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    matches!(repeated.as_slice(), [2 | 3]) && (11 - product) % 10 == value(check)
}

/// The complement to a multiple of 97; the two departments of Corsica have letters.
pub(super) fn france(number: &[u8]) -> bool {
    let Some((first, key)) = number.split_at_checked(13) else { return false };
    let [sex, _, _, month @ .., _, _, _, _, _, _, _, _] = first else { return false };
    let [_, _, _, _, _, department @ .., _, _, _, _, _, _] = first else { return false };
    let is_begun = b"123478".contains(sex) && (1..=12).contains(&joined(month));
    let corsica = match department {
        b"2A" => Some(19),
        b"2B" => Some(18),
        department if department.iter().all(u8::is_ascii_digit) => None,
        _ => return false,
    };
    let read = joined(first);
    // A department with a letter is subtracted again, whatever it was read as, and replaced by its number.
    let read = corsica.map_or(read, |corsica| read - joined(department) * 1_000_000 + corsica * 1_000_000);
    is_begun && 97 - read % 97 == joined(key)
}

/// The check letter is the remainder modulo 23; the first letter of a foreigner's number is a digit.
pub(super) fn spain(number: &[u8]) -> bool {
    let Some((letter, digits)) = number.split_last() else { return false };
    if digits.first().is_some_and(|first| first.is_ascii_alphabetic() && !b"XYZ".contains(first)) {
        return false;
    }
    let read = digits.iter().fold(0, |sum: usize, &digit| {
        let value = match digit {
            b'X' => 0,
            b'Y' => 1,
            b'Z' => 2,
            digit => value(digit),
        };
        sum * 10 + usize::try_from(value).unwrap_or_default()
    });
    b"TRWAGMYFPDXBNJZSQVHLCKE".get(read % 23) == Some(letter)
}

/// The check letter is the sum of the character values at odd and even positions. A word without a digit is not a
/// number.
pub(super) fn italy(number: &[u8]) -> bool {
    const ODD: [u32; 26] =
        [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23];
    let Some((&check, first)) = number.split_last() else { return false };
    let sum: u32 = (1..)
        .zip(first)
        .map(|(place, &character): (usize, &u8)| {
            // Digits count as the letters with the same index.
            let even = if character.is_ascii_digit() { value(character) } else { letter(character) };
            let odd = || usize::try_from(even).ok().and_then(|even| ODD.get(even)).copied().unwrap_or_default();
            if place.is_multiple_of(2) { even } else { odd() }
        })
        .sum();
    first.iter().any(u8::is_ascii_digit) && has_italian_signs(first) && sum % 26 == letter(check)
}

/// Digits, or the letters that replace them, at the positions of digits; a letter for the month.
fn has_italian_signs(number: &[u8]) -> bool {
    let is_number = |byte: &u8| byte.is_ascii_digit() || b"LMNPQRSTUV".contains(byte);
    let has_numbers = |range| number.get(range).is_some_and(|part: &[u8]| part.iter().all(is_number));
    let has_month = number.get(8).is_some_and(|month| b"ABCDEHLMPRST".contains(month));
    has_month && has_numbers(6..8) && has_numbers(9..11) && has_numbers(12..15)
}

/// The Verhoeff scheme: a permutation by position, combined in the symmetry group of the pentagon.
pub(super) fn india(number: &[u8]) -> bool {
    if number.starts_with(b"0") || number.starts_with(b"1") {
        return false;
    }
    const PERMUTATION: [u32; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let permuted = |digit: u32| usize::try_from(digit).ok().and_then(|digit| PERMUTATION.get(digit)).copied();
    let sum = number.iter().rev().enumerate().fold(0, |sum, (place, &digit)| {
        let permuted = (0..place % 8).fold(value(digit), |digit, _| permuted(digit).unwrap_or_default());
        pentagon(sum, permuted)
    });
    sum == 0
}

/// Composes two symmetries: the first five are rotations, the others reflections.
fn pentagon(first: u32, second: u32) -> u32 {
    match (first < 5, second < 5) {
        (true, true) => (first + second) % 5,
        (true, false) => 5 + (first + second) % 5,
        (false, true) => 5 + (first - second) % 5,
        (false, false) => (first + 5 - second % 5) % 5,
    }
}

/// Two weighted check digits; a number of one repeated digit is invalid.
pub(super) fn brazil(number: &[u8]) -> bool {
    let check = |length: usize| {
        let digits = number.iter().take(length);
        let sum: u32 = (2..).zip(digits.rev()).map(|(weight, &digit)| weight * value(digit)).sum();
        sum * 10 % 11 % 10
    };
    let has = |place: usize, expected: u32| number.get(place).is_some_and(|&digit| value(digit) == expected);
    let has_others = number.iter().any(|digit| number.first() != Some(digit));
    has_others && has(9, check(9)) && has(10, check(10))
}

/// The number that these digits form.
fn joined(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |sum, &digit| sum * 10 + u64::from(value(digit)))
}

fn value(digit: u8) -> u32 {
    u32::from(digit.saturating_sub(b'0'))
}

fn letter(letter: u8) -> u32 {
    u32::from(letter.saturating_sub(b'A'))
}
