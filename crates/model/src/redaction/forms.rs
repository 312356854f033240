//! From a secret to the patterns that find it: its relevant parts, and for each the encodings in which none of its
//! characters are recognizable.

use zeroize::Zeroizing;

use super::pattern::{Kind, Pattern, alike, fold};
use crate::arguments::MIN_SECRET;
use crate::canonical::write_string;

/// A shorter secret is searched for only as a separate word, and in no encoding: it would be found everywhere.
const SEARCHABLE: usize = 4;
/// A shorter line of a secret is not sensitive on its own.
const LINE: usize = 16;
/// A value for a header often includes the name of the scheme.
const SCHEMES: [&str; 3] = ["basic", "bearer", "token"];
/// The number of bytes that the forms of most secrets take, for each byte of the secret.
const BYTES_PER_BYTE: usize = 32;
/// Ends the list of forms that start with the same byte.
const END: u32 = u32::MAX;
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// All forms of the secrets of one call. They are built for every call, so their bytes share one allocation, which is
/// wiped when it is dropped and before it is replaced by a larger one.
pub(super) struct Forms {
    bytes: Zeroizing<Vec<u8>>,
    forms: Vec<Form>,
    /// For every byte the first form that may start with it.
    starts: Box<[u32; 256]>,
}

#[derive(Clone, Copy)]
struct Form {
    start: u32,
    end: u32,
    kind: Kind,
    /// Whether it is searched for in arguments.
    in_arguments: bool,
    /// The next form that starts with the same byte.
    next: u32,
}

impl Forms {
    pub(super) fn none() -> Self {
        Self { bytes: Zeroizing::default(), forms: Vec::new(), starts: Box::new([END; 256]) }
    }

    /// Adds the forms of this secret and of the parts that are secrets themselves. Surrounding white space is not part
    /// of it; white space alone is not a secret.
    pub(super) fn add(&mut self, secret: &str) {
        self.reserve(secret.len().saturating_mul(BYTES_PER_BYTE));
        Collecting { is_long: secret.len() >= MIN_SECRET, forms: self }.collect(secret);
    }

    pub(super) fn patterns(&self, in_arguments: bool) -> impl Iterator<Item = Pattern<'_>> {
        let is_wanted = move |form: &&Form| form.in_arguments || !in_arguments;
        self.forms.iter().filter(is_wanted).filter_map(|form| self.pattern(form))
    }

    /// The patterns that may start with this byte.
    pub(super) fn starting_with(&self, byte: u8, in_arguments: bool) -> impl Iterator<Item = Pattern<'_>> {
        let form = |position: u32| usize::try_from(position).ok().and_then(|position| self.forms.get(position));
        let first = self.starts.get(usize::from(byte)).copied().unwrap_or(END);
        let same = std::iter::successors(form(first), move |previous| form(previous.next));
        same.filter(move |form| form.in_arguments || !in_arguments).filter_map(|form| self.pattern(form))
    }

    pub(super) fn may_start_with(&self, byte: u8) -> bool {
        self.starts.get(usize::from(byte)).is_some_and(|first| *first != END)
    }

    fn pattern(&self, form: &Form) -> Option<Pattern<'_>> {
        let place = usize::try_from(form.start).ok()?..usize::try_from(form.end).ok()?;
        Some(Pattern { bytes: self.bytes.get(place)?, kind: form.kind })
    }

    /// Reserves more bytes. The old allocation is wiped.
    fn reserve(&mut self, more: usize) {
        let needed = self.bytes.len().saturating_add(more);
        if needed > self.bytes.capacity() {
            let mut larger = Zeroizing::new(Vec::with_capacity(needed.max(self.bytes.capacity().saturating_mul(2))));
            larger.extend_from_slice(&self.bytes);
            self.bytes = larger;
        }
    }
}

/// Adds the forms of one secret.
struct Collecting<'a> {
    forms: &'a mut Forms,
    /// Whether the secret is long enough to be searched for in arguments.
    is_long: bool,
}

impl Collecting<'_> {
    fn collect(&mut self, secret: &str) {
        let secret = secret.trim_ascii();
        self.collect_forms(secret);
        // Keys are often stored in one line with escaped line breaks, and used with real ones.
        if secret.starts_with("-----BEGIN") && secret.contains("\\n") {
            self.collect_forms(Zeroizing::new(secret.replace("\\n", "\n")).trim_ascii());
        }
        if let Some((scheme, value)) = secret.split_once(' ')
            && SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known))
        {
            self.collect_forms(value.trim_ascii());
        }
        if let Some(password) = password_of_url(secret) {
            self.collect_forms(password);
            let decoded = percent_decoded(password);
            if let Some(decoded) = std::str::from_utf8(&decoded).ok().filter(|decoded| *decoded != password) {
                self.collect_forms(decoded.trim_ascii());
            }
        }
    }

    fn collect_forms(&mut self, secret: &str) {
        if secret.len() < SEARCHABLE {
            return self.form(Kind::Token, secret.bytes());
        }
        if secret.contains(['\n', '\r']) {
            self.collect_lines(secret);
        } else {
            self.form(Kind::Text, secret.bytes());
        }
        self.collect_base64(secret.as_bytes());
        self.collect_hex(secret.as_bytes());
        self.collect_utf16(secret);
        // Most secrets consist of characters that nothing escapes.
        if secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')) {
            return;
        }
        for escaped in [json_escaped(secret), percent_encoded(secret, b"-._~"), form_encoded(secret)] {
            if *escaped != secret.as_bytes() {
                self.collect_base64(&escaped);
            }
        }
    }

    /// In UTF-16, with either byte order. Zeros between ASCII characters are skipped anywhere, so the text needs its
    /// own form only if it has other characters.
    fn collect_utf16(&mut self, secret: &str) {
        let mut bytes = Zeroizing::new(Vec::with_capacity(secret.len() * 2));
        for bytes_of in [u16::to_le_bytes, u16::to_be_bytes] {
            bytes.clear();
            bytes.extend(secret.encode_utf16().flat_map(bytes_of));
            self.collect_base64(&bytes);
            self.collect_hex(&bytes);
            if !secret.is_ascii() {
                self.form(Kind::Text, bytes.iter().copied().filter(|byte| *byte != 0));
            }
        }
    }

    fn collect_lines(&mut self, secret: &str) {
        self.form(Kind::Lines, secret.bytes().filter(|byte| !byte.is_ascii_whitespace()));
        // The first and last line of a key file are the same in all of them.
        let is_sensitive = |line: &&str| line.len() >= LINE && !line.starts_with("-----");
        for line in secret.split(['\n', '\r']).map(str::trim_ascii).filter(is_sensitive) {
            self.form(Kind::Text, line.bytes());
            self.collect_base64(line.as_bytes());
        }
    }

    fn collect_hex(&mut self, secret: &[u8]) {
        self.encoded(Kind::Hex, secret.len() * 2, |out| {
            for byte in secret {
                out.extend_from_slice(&[hex_digit(byte >> 4, b'a'), hex_digit(byte & 0xf, b'a')]);
            }
        });
    }

    /// Base64 writes six bits as a character. For each of the three alignments of the secret in a longer text, the
    /// pattern has the characters with bits of the secret only: they begin with its first, fifth or third bit.
    fn collect_base64(&mut self, secret: &[u8]) {
        for (skipped, before) in [(0_u32, false), (4, true), (2, true)] {
            let unused = usize::try_from(skipped).unwrap_or_default();
            let characters = (secret.len() * 8).saturating_sub(unused) / 6;
            let kind = Kind::Base64 { before, after: unused + characters * 6 < secret.len() * 8 };
            let start = self.forms.bytes.len();
            self.encoded(kind, characters + 8, |out| {
                // Three bytes are four characters; the fourth byte completes the last of them if bits are skipped.
                for place in (0..secret.len()).step_by(3) {
                    let mut four = [0; 4];
                    four.iter_mut().zip(secret.iter().skip(place)).for_each(|(byte, of_secret)| *byte = *of_secret);
                    let four = u32::from_be_bytes(four);
                    out.extend([26, 20, 14, 8].map(|bits: u32| {
                        let six = usize::try_from((four >> (bits - skipped)) & 0x3f).unwrap_or_default();
                        BASE64.get(six).copied().unwrap_or_default()
                    }));
                }
                // The rest has bits that are not of the secret.
                out.truncate(start + characters);
            });
        }
    }

    /// Adds one form of at most this many bytes.
    fn encoded(&mut self, kind: Kind, most: usize, write: impl FnOnce(&mut Vec<u8>)) {
        self.forms.reserve(most);
        let start = self.forms.bytes.len();
        write(&mut self.forms.bytes);
        self.end_form(kind, start);
    }

    /// Adds one form, unless it would be found everywhere.
    fn form(&mut self, kind: Kind, bytes: impl Iterator<Item = u8>) {
        let start = self.forms.bytes.len();
        for byte in bytes {
            if self.forms.bytes.len() == self.forms.bytes.capacity() {
                self.forms.reserve(start.max(BYTES_PER_BYTE));
            }
            self.forms.bytes.push(byte);
        }
        self.end_form(kind, start);
    }

    fn end_form(&mut self, kind: Kind, start: usize) {
        let (position, end) = (self.forms.forms.len(), self.forms.bytes.len());
        let first = self.forms.bytes.get(start).copied().filter(|first| !first.is_ascii_whitespace());
        // INVARIANT: no material has billions of forms.
        let (Some(first), Ok(place), Ok(range_start), Ok(range_end)) =
            (first.map(fold), u32::try_from(position), u32::try_from(start), u32::try_from(end))
        else {
            return;
        };
        let in_arguments = self.is_long && end - start >= MIN_SECRET;
        let mut next = END;
        for byte in alike(first) {
            if let Some(head) = self.forms.starts.get_mut(usize::from(byte)) {
                if *head != place {
                    next = *head;
                }
                *head = place;
            }
        }
        self.forms.forms.push(Form { start: range_start, end: range_end, kind, in_arguments, next });
    }
}

fn json_escaped(secret: &str) -> Zeroizing<Vec<u8>> {
    let mut quoted = Zeroizing::new(Vec::with_capacity(secret.len() * 6 + 2));
    write_string(secret, &mut quoted);
    quoted.pop();
    quoted.drain(..1);
    quoted
}

fn percent_encoded(secret: &str, kept: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut encoded = Zeroizing::new(Vec::with_capacity(secret.len() * 3));
    for byte in secret.bytes() {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            encoded.push(byte);
        } else {
            encoded.extend([b'%', hex_digit(byte >> 4, b'A'), hex_digit(byte & 0xf, b'A')]);
        }
    }
    encoded
}

fn form_encoded(secret: &str) -> Zeroizing<Vec<u8>> {
    let mut encoded = percent_encoded(secret, b"*-._ ");
    encoded.iter_mut().filter(|byte| **byte == b' ').for_each(|byte| *byte = b'+');
    encoded
}

/// The password in `scheme://user:password@host`, as written there.
fn password_of_url(secret: &str) -> Option<&str> {
    let (_, rest) = secret.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user_info, _) = authority.rsplit_once('@')?;
    let (_, password) = user_info.split_once(':')?;
    Some(password)
}

fn percent_decoded(text: &str) -> Zeroizing<Vec<u8>> {
    let mut decoded = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut at = 0;
    while let Some(&byte) = text.as_bytes().get(at) {
        let escaped = if byte == b'%' { hex_byte(text.as_bytes(), at + 1) } else { None };
        decoded.push(escaped.unwrap_or(byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    decoded
}

/// The byte that the digits of `%XX` stand for.
fn hex_byte(text: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    u8::try_from(digit(at)? * 16 + digit(at + 1)?).ok()
}

fn hex_digit(value: u8, ten: u8) -> u8 {
    if value < 10 { b'0' + value } else { ten + (value - 10) }
}
