//! The escaped spellings of one character: `%41`, `\u0041`, `\x41`, `\"`, `&#65;`, `&amp;` and the like, also where the
//! sign that introduces the escape is itself escaped.

/// Four times escaped, one backslash is sixteen, the first of which is the introducer.
const LONGEST_BACKSLASH: usize = 15;

/// Whether an escape can start with this byte.
pub(super) fn is_introducer(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&')
}

/// Calls `visit` for every escape that starts at `at`, with the bytes that it stands for and the position after it.
/// The escape may be wrapped in others, `nesting` deep.
pub(super) fn escapes_at(text: &[u8], at: usize, nesting: usize, visit: &mut dyn FnMut(&[u8], usize)) {
    introducers_at(text, at, nesting, &mut |introducer, next| match introducer {
        b'%' => percent(text, next, visit),
        b'\\' => backslash(text, next, nesting, visit),
        _ => entity(text, next, visit),
    });
}

/// The byte that `%XX` after its sign stands for.
pub(super) fn hex_byte(text: &[u8], at: usize) -> Option<u8> {
    number(text.get(at..at + 2)?, 16).and_then(|value| u8::try_from(value).ok())
}

fn introducers_at(text: &[u8], at: usize, nesting: usize, visit: &mut dyn FnMut(u8, usize)) {
    let Some(&byte) = text.get(at).filter(|byte| is_introducer(**byte)) else { return };
    visit(byte, at + 1);
    if nesting > 0 {
        escapes_at(text, at, nesting - 1, &mut |spelled, end| {
            // Backslashes that are escaped by backslashes are taken all at once.
            if let [inner] = *spelled
                && is_introducer(inner)
                && (byte, inner) != (b'\\', b'\\')
            {
                visit(inner, end);
            }
        });
    }
}

fn percent(text: &[u8], at: usize, visit: &mut dyn FnMut(&[u8], usize)) {
    if let Some(byte) = hex_byte(text, at) {
        visit(&[byte], at + 2);
    } else if text.get(at) == Some(&b'u') {
        code_point(text.get(at + 1..at + 5), 16, at + 5, visit);
    }
}

fn backslash(text: &[u8], at: usize, nesting: usize, visit: &mut dyn FnMut(&[u8], usize)) {
    // Every escaping doubles the backslashes, so any number of them may stand before the letter, or for one backslash.
    let run = backslashes_at(text, at);
    for length in 1..=run.min(LONGEST_BACKSLASH) {
        visit(b"\\", at + length);
    }
    let at = at + run;
    let Some(&letter) = text.get(at) else { return };
    match letter {
        b'n' => visit(b"\n", at + 1),
        b'r' => visit(b"\r", at + 1),
        b't' => visit(b"\t", at + 1),
        b'b' => visit(b"\x08", at + 1),
        b'f' => visit(b"\x0c", at + 1),
        b'v' => visit(b"\x0b", at + 1),
        b'x' => {
            if let Some(byte) = hex_byte(text, at + 1) {
                visit(&[byte], at + 3);
            }
        }
        b'u' => unicode(text, at + 1, nesting, visit),
        b'U' => code_point(text.get(at + 1..at + 9), 16, at + 9, visit),
        _ if letter.is_ascii_punctuation() => {
            visit(&[letter], at + 1);
            // In JSON inside JSON the quote after the backslash has a backslash of its own.
            if nesting > 0 {
                escapes_at(text, at, nesting - 1, &mut |spelled, end| {
                    if spelled.iter().all(u8::is_ascii_punctuation) {
                        visit(spelled, end);
                    }
                });
            }
        }
        _ => {}
    }
}

/// What stands after `\u`: four digits, a pair of surrogates, or any digits in braces.
fn unicode(text: &[u8], at: usize, nesting: usize, visit: &mut dyn FnMut(&[u8], usize)) {
    if text.get(at) == Some(&b'{') {
        let digits = digits_at(text, at + 1, 16);
        let end = at + 1 + digits.len();
        if text.get(end) == Some(&b'}') {
            code_point(Some(digits), 16, end + 1, visit);
        }
        return;
    }
    let Some(unit) = text.get(at..at + 4).and_then(|digits| number(digits, 16)) else { return };
    if !(0xD800..0xDC00).contains(&unit) {
        return code_point(text.get(at..at + 4), 16, at + 4, visit);
    }
    introducers_at(text, at + 4, nesting, &mut |introducer, next| {
        let next = next + backslashes_at(text, next);
        let low = text.get(next + 1..next + 5).and_then(|digits| number(digits, 16));
        if introducer == b'\\'
            && text.get(next) == Some(&b'u')
            && let Some(low @ 0xDC00..0xE000) = low
        {
            character(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00), next + 5, visit);
        }
    });
}

fn backslashes_at(text: &[u8], at: usize) -> usize {
    text.get(at..).unwrap_or_default().iter().take_while(|byte| **byte == b'\\').count()
}

fn entity(text: &[u8], at: usize, visit: &mut dyn FnMut(&[u8], usize)) {
    const NAMES: [(&[u8], &[u8]); 5] =
        [(b"amp;", b"&"), (b"lt;", b"<"), (b"gt;", b">"), (b"quot;", b"\""), (b"apos;", b"'")];
    let rest = text.get(at..).unwrap_or_default();
    if let Some((name, byte)) = NAMES.into_iter().find(|(name, _)| rest.starts_with(name)) {
        return visit(byte, at + name.len());
    }
    let (from, radix) = match rest {
        [b'#', b'x' | b'X', ..] => (at + 2, 16),
        [b'#', ..] => (at + 1, 10),
        _ => return,
    };
    let digits = digits_at(text, from, radix);
    let end = from + digits.len();
    if text.get(end) == Some(&b';') {
        code_point(Some(digits), radix, end + 1, visit);
    }
}

/// The digits from here on, at most eight.
fn digits_at(text: &[u8], at: usize, radix: u32) -> &[u8] {
    let rest = text.get(at..).unwrap_or_default();
    let length = rest.iter().take(8).take_while(|byte| char::from(**byte).is_digit(radix)).count();
    rest.get(..length).unwrap_or_default()
}

fn code_point(digits: Option<&[u8]>, radix: u32, end: usize, visit: &mut dyn FnMut(&[u8], usize)) {
    if let Some(value) = digits.and_then(|digits| number(digits, radix)) {
        character(value, end, visit);
    }
}

fn character(value: u32, end: usize, visit: &mut dyn FnMut(&[u8], usize)) {
    if let Some(character) = char::from_u32(value) {
        visit(character.encode_utf8(&mut [0; 4]).as_bytes(), end);
    }
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    digits
        .iter()
        .try_fold(0_u32, |value, digit| value.checked_mul(radix)?.checked_add(char::from(*digit).to_digit(radix)?))
}
