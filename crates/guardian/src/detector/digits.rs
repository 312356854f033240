//! Groups of digits in a text and their surroundings, the basis for detecting card and phone numbers.

/// Adjacent digits, from `start` to before `end`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Group {
    pub(super) fn len(self) -> usize {
        self.end - self.start
    }

    pub(super) fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start..self.end).unwrap_or_default()
    }
}

/// How far to look around digits for the rest of a word.
const FAR_ENOUGH: usize = 64;
/// Hexadecimal ids and hashes, which may have many adjacent digits, are at least this long.
const MIN_HASH: usize = 24;

/// All groups, in order.
pub(super) fn groups(bytes: &[u8]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (position, byte) in bytes.iter().enumerate() {
        if !byte.is_ascii_digit() {
            continue;
        }
        match groups.last_mut() {
            Some(last) if last.end == position => last.end = position + 1,
            _ => groups.push(Group { start: position, end: position + 1 }),
        }
    }
    groups
}

/// The bytes between two groups.
pub(super) fn between(bytes: &[u8], first: Group, second: Group) -> &[u8] {
    bytes.get(first.end..second.start).unwrap_or_default()
}

/// The byte before this position.
pub(super) fn before(bytes: &[u8], position: usize) -> Option<u8> {
    bytes.get(position.checked_sub(1)?).copied()
}

/// Whether digits here follow a decimal point.
pub(super) fn is_fraction(bytes: &[u8], start: usize) -> bool {
    before(bytes, start) == Some(b'.')
        && before(bytes, start.saturating_sub(1)).is_some_and(|byte| byte.is_ascii_digit())
}

/// Whether these digits are part of a long hexadecimal word, such as a hash.
pub(super) fn is_in_hash(bytes: &[u8], start: usize, end: usize) -> bool {
    let is_letter = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphabetic());
    if !is_letter(before(bytes, start)) && !is_letter(bytes.get(end).copied()) {
        return false;
    }
    let (left, right) = around(bytes, start, end);
    let word_before = left.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric());
    let word_after = right.iter().take_while(|byte| byte.is_ascii_alphanumeric());
    let mut rest = word_before.chain(word_after);
    rest.clone().count() + (end - start) >= MIN_HASH && rest.all(u8::is_ascii_hexdigit)
}

/// Whether these digits are part of a UUID.
pub(super) fn is_in_uuid(bytes: &[u8], start: usize, end: usize) -> bool {
    let is_part = |byte: &&u8| byte.is_ascii_hexdigit() || **byte == b'-';
    let (left, right) = around(bytes, start, end);
    let from = start - left.iter().rev().take_while(is_part).count();
    let to = end + right.iter().take_while(is_part).count();
    let parts = bytes.get(from..to).unwrap_or_default().split(|&byte| byte == b'-').map(<[u8]>::len);
    to - from == 36 && parts.eq([8, 4, 4, 4, 12])
}

fn around(bytes: &[u8], start: usize, end: usize) -> (&[u8], &[u8]) {
    let left = bytes.get(start.saturating_sub(FAR_ENOUGH)..start).unwrap_or_default();
    let right = bytes.get(end..end.saturating_add(FAR_ENOUGH).min(bytes.len())).unwrap_or_default();
    (left, right)
}
