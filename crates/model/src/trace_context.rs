//! W3C Trace Context: the position of a call in a distributed trace, in the headers `traceparent` and `tracestate`. A
//! value that violates the specification is ignored, and never an error.

use std::fmt;

/// The longest `tracestate` that is passed on, in bytes.
pub const MAX_TRACE_STATE: usize = 512;

/// The id of a trace. Never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// The id of one span of a trace. Never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

/// The contents of `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    pub trace: TraceId,
    /// The parent of the next span.
    pub span: SpanId,
    /// Whether the sender records the trace.
    pub sampled: bool,
}

impl TraceId {
    /// `None` for all zeros.
    pub fn new(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl SpanId {
    /// `None` for all zeros.
    pub fn new(bytes: [u8; 8]) -> Option<Self> {
        (bytes != [0; 8]).then_some(Self(bytes))
    }

    pub fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

impl TraceParent {
    /// Parses the header. Of a version after 00, which may have further fields, the fields of version 00 are used.
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.splitn(5, '-');
        let version: [u8; 1] = hexadecimal(fields.next()?)?;
        let trace = TraceId::new(hexadecimal(fields.next()?)?)?;
        let span = SpanId::new(hexadecimal(fields.next()?)?)?;
        let [flags] = hexadecimal(fields.next()?)?;
        match (version, fields.next()) {
            ([0xff], _) | ([0], Some(_)) => None,
            _ => Some(Self { trace, span, sampled: flags & 1 == 1 }),
        }
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", u64::from_be_bytes(self.0))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The value of `tracestate` as it is passed on: unchanged, or `None` if it is too long or not plain text.
pub fn trace_state(text: &str) -> Option<&str> {
    let is_plain = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    let text = text.trim();
    (!text.is_empty() && text.len() <= MAX_TRACE_STATE && text.bytes().all(is_plain)).then_some(text)
}

/// Parses exactly this many bytes of lower-case hexadecimal digits.
fn hexadecimal<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

fn digit(letter: u8) -> Option<u8> {
    match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn a_position_reads_back_from_its_header() {
        for (flags, sampled) in [("00", false), ("01", true), ("03", true), ("fe", false)] {
            let read = TraceParent::parse(&format!("00-{TRACE}-{SPAN}-{flags}")).unwrap();
            assert_eq!((read.trace.to_string().as_str(), read.span.to_string().as_str()), (TRACE, SPAN));
            assert_eq!(read.sampled, sampled);
            let written = read.to_string();
            assert_eq!(written, format!("00-{TRACE}-{SPAN}-0{}", u8::from(sampled)));
            assert_eq!(TraceParent::parse(&written), Some(read));
        }
    }

    #[test]
    fn a_later_version_is_read_by_its_first_fields() {
        for text in [format!("01-{TRACE}-{SPAN}-01"), format!("cc-{TRACE}-{SPAN}-01-what-the-future-says")] {
            assert!(TraceParent::parse(&text).unwrap().sampled, "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_position() {
        let zeros = "0".repeat(32);
        for text in [
            String::new(),
            "00".to_owned(),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("00-{TRACE}-{SPAN}-01-"),
            format!("01-{TRACE}-{SPAN}-01x"),
            format!("00-{zeros}-{SPAN}-01"),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}"),
            format!("0-{TRACE}-{SPAN}-01"),
            format!(" 00-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", "\u{e9}".repeat(16)),
            "-".repeat(55),
        ] {
            assert_eq!(TraceParent::parse(&text), None, "{text}");
        }
    }

    #[test]
    fn the_state_of_vendors_is_passed_on_unchanged_or_not_at_all() {
        assert_eq!(
            trace_state(" rojo=00f067aa0ba902b7,congo=t61rcWkgMzE "),
            Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE")
        );
        let longest = "a".repeat(MAX_TRACE_STATE);
        assert_eq!(trace_state(&longest), Some(longest.as_str()));
        for text in ["", "  ", &format!("{longest}a"), "a=1\r\nb: 2", "a=\u{e9}"] {
            assert_eq!(trace_state(text), None, "{text}");
        }
    }
}
