//! Reads a response: its body up to the limit, counted after decompression, and not a byte more. The caller enforces
//! the deadline.

use std::io::Write;

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, Response, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use self::sink::Sink;
use crate::error::SendError;

mod sink;

#[cfg(test)]
mod tests;

/// The default limit of a body.
pub const DEFAULT_BODY_LIMIT: usize = 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundResponse {
    /// A redirect is a response like any other; it is not followed.
    pub status: u16,
    /// Without those that describe the compression of the body.
    pub headers: HeaderMap,
    /// The body, expanded, up to the limit.
    pub body: Vec<u8>,
    /// Whether the body exceeded the limit and was cut.
    pub truncated: bool,
}

/// Reads a response to its end or to the limit.
pub(crate) async fn read(response: Response<Incoming>, limit: usize) -> Result<InboundResponse, SendError> {
    let (head, mut body) = response.into_parts();
    let mut headers = head.headers;
    check_framing(head.status.as_u16(), &headers)?;
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let sink = Sink::new(limit, expected);
    let mut reader = if body.is_end_stream() { Reader::Plain(sink) } else { Reader::new(&mut headers, sink)? };
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broken(&error))?;
        // A frame without data contains trailers, which are not used.
        if let Ok(data) = frame.into_data()
            && !reader.take(&data)?
        {
            break;
        }
    }
    let (body, truncated) = reader.finish()?;
    Ok(InboundResponse { status: head.status.as_u16(), headers, body, truncated })
}

/// The error for a connection without a valid response, without repeating anything that was received.
pub(crate) fn broken(error: &hyper::Error) -> SendError {
    let reason = if error.is_parse_too_large() {
        "has a head that is too large"
    } else if error.is_parse() {
        "is not valid HTTP"
    } else {
        "ended before it was complete"
    };
    SendError::BrokenResponse { reason }
}

/// Refuses responses whose end is ambiguous.
pub(crate) fn check_framing(status: u16, headers: &HeaderMap) -> Result<(), SendError> {
    let refused = |reason| Err(SendError::BrokenResponse { reason });
    if status == 101 {
        return refused("switches to another protocol, which was not requested");
    }
    let mut transfer = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (transfer.next(), transfer.next()) {
        (None, _) => Ok(()),
        (Some(_), None) if headers.contains_key(header::CONTENT_LENGTH) => {
            refused("has both Content-Length and Transfer-Encoding, which allows response smuggling")
        }
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => refused("uses a transfer encoding other than chunked"),
    }
}

/// The body so far, behind whatever expands it.
enum Reader {
    Plain(Sink),
    Gzip(Packed<MultiGzDecoder<Sink>>),
    Zlib(Packed<ZlibDecoder<Sink>>),
    Deflate(Packed<DeflateDecoder<Sink>>),
    /// `deflate` means a zlib stream, but some services send a raw one: the first byte tells.
    EitherDeflate(Sink),
}

impl Reader {
    fn new(headers: &mut HeaderMap, sink: Sink) -> Result<Self, SendError> {
        let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
        let reader = match (codings.next().map(|coding| coding.as_bytes().trim_ascii()), codings.next()) {
            (None, _) => return Ok(Self::Plain(sink)),
            (Some(coding), None) if coding.is_empty() || coding.eq_ignore_ascii_case(b"identity") => {
                return Ok(Self::Plain(sink));
            }
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip") => {
                Self::Gzip(Packed::new(sink, MultiGzDecoder::new))
            }
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"deflate") => Self::EitherDeflate(sink),
            _ => return Err(SendError::UnsupportedEncoding),
        };
        headers.remove(header::CONTENT_ENCODING);
        headers.remove(header::CONTENT_LENGTH);
        Ok(reader)
    }

    /// Adds a chunk of the body; returns whether more may come.
    fn take(&mut self, data: &[u8]) -> Result<bool, SendError> {
        match self {
            Self::Plain(sink) => Ok(sink.take(data)),
            Self::Gzip(packed) => packed.take(data, |decoder| decoder.get_ref()),
            Self::Zlib(packed) => packed.take(data, |decoder| decoder.get_ref()),
            Self::Deflate(packed) => packed.take(data, |decoder| decoder.get_ref()),
            Self::EitherDeflate(sink) => {
                let Some(first) = data.first() else { return Ok(true) };
                let sink = std::mem::take(sink);
                // In a zlib stream the low half of the first byte is 8, which no sane bare stream begins with.
                *self = if first & 0x0f == 8 {
                    Self::Zlib(Packed::new(sink, ZlibDecoder::new))
                } else {
                    Self::Deflate(Packed::new(sink, DeflateDecoder::new))
                };
                self.take(data)
            }
        }
    }

    fn finish(self) -> Result<(Vec<u8>, bool), SendError> {
        match self {
            Self::Plain(sink) | Self::EitherDeflate(sink) => Ok((sink.body, sink.overflowed)),
            Self::Gzip(packed) => packed.finish(|decoder| decoder.get_mut(), MultiGzDecoder::try_finish),
            Self::Zlib(packed) => packed.finish(|decoder| decoder.get_mut(), ZlibDecoder::try_finish),
            Self::Deflate(packed) => packed.finish(|decoder| decoder.get_mut(), DeflateDecoder::try_finish),
        }
    }
}

/// A decoder, and how many more compressed bytes it accepts: a stream that expands to nothing must also end.
struct Packed<D> {
    decoder: D,
    room: usize,
    cut: bool,
}

impl<D: Write> Packed<D> {
    fn new(sink: Sink, decoder: impl FnOnce(Sink) -> D) -> Self {
        let room = sink.limit.saturating_add(sink.limit / 8).saturating_add(1024);
        Self { decoder: decoder(sink), room, cut: false }
    }

    fn take(&mut self, data: &[u8], sink: impl Fn(&D) -> &Sink) -> Result<bool, SendError> {
        let written = self.decoder.write_all(data).and_then(|()| self.decoder.flush());
        self.room = self.room.saturating_sub(data.len());
        self.cut = sink(&self.decoder).overflowed || self.room == 0;
        if written.is_err() && !self.cut {
            return Err(BROKEN_PACKING);
        }
        Ok(!self.cut)
    }

    fn finish<E>(
        mut self,
        sink: impl Fn(&mut D) -> &mut Sink,
        end: impl Fn(&mut D) -> Result<(), E>,
    ) -> Result<(Vec<u8>, bool), SendError> {
        let ended = end(&mut self.decoder);
        let sink = std::mem::take(sink(&mut self.decoder));
        let truncated = self.cut || sink.overflowed;
        if ended.is_err() && !truncated {
            return Err(BROKEN_PACKING);
        }
        Ok((sink.body, truncated))
    }
}

const BROKEN_PACKING: SendError =
    SendError::BrokenResponse { reason: "says that it is compressed, but cannot be expanded" };
