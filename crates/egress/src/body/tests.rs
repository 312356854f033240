//! Bounded decompression.

use std::io::Read;

use flate2::Compression;
use flate2::read::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http::HeaderValue;
use proptest::prelude::*;

use super::*;

fn headers(codings: &[&'static str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for coding in codings {
        headers.append(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    headers
}

/// Decodes chunks with these content codings.
fn expand(codings: &[&'static str], pieces: &[&[u8]], limit: usize) -> Result<(Vec<u8>, bool), SendError> {
    let mut reader = Reader::new(&mut headers(codings), Sink::new(limit, 0))?;
    for piece in pieces {
        if !reader.take(piece)? {
            break;
        }
    }
    reader.finish()
}

fn read_all(mut source: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes).unwrap();
    bytes
}

fn gzip(text: &[u8]) -> Vec<u8> {
    read_all(GzEncoder::new(text, Compression::best()))
}

#[test]
fn gzip_zlib_and_bare_deflate_are_expanded_however_they_are_cut() {
    let text = b"a text that a service compressed although it was asked not to".repeat(20);
    let packed = [
        ("gzip", gzip(&text)),
        (" X-GZIP ", gzip(&text)),
        ("deflate", read_all(ZlibEncoder::new(&*text, Compression::default()))),
        ("deflate", read_all(DeflateEncoder::new(&*text, Compression::default()))),
    ];
    for (coding, packed) in packed {
        for size in [1, 7, packed.len()] {
            let pieces: Vec<&[u8]> = packed.chunks(size).collect();
            assert_eq!(expand(&[coding], &pieces, 10_000), Ok((text.clone(), false)), "{coding} by {size}");
        }
    }
}

#[test]
fn unknown_and_stacked_encodings_are_refused() {
    let refused: [&[&'static str]; 7] =
        [&["br"], &["zstd"], &["compress"], &["gzip, gzip"], &["gzip", "gzip"], &["identity, gzip"], &["gzip;q=1"]];
    for codings in refused {
        assert_eq!(expand(codings, &[b"text"], 100), Err(SendError::UnsupportedEncoding), "{codings:?}");
    }
    assert_eq!(expand(&["identity"], &[b"text"], 100), Ok((b"text".to_vec(), false)));
}

#[test]
fn a_body_that_fits_exactly_is_whole_and_one_byte_more_is_not() {
    assert_eq!(expand(&[], &[b"1234", b"5678"], 8), Ok((b"12345678".to_vec(), false)));
    assert_eq!(expand(&[], &[b"1234", b"56789"], 8), Ok((b"12345678".to_vec(), true)));
    assert_eq!(expand(&["gzip"], &[&gzip(b"12345678")], 8), Ok((b"12345678".to_vec(), false)));
    assert_eq!(expand(&["gzip"], &[&gzip(b"123456789")], 8), Ok((b"12345678".to_vec(), true)));
    assert_eq!(expand(&[], &[b"1"], 0), Ok((Vec::new(), true)));
}

#[test]
fn a_bomb_fills_the_limit_and_no_more_memory_than_that() {
    let bomb = gzip(&vec![0; 16 * 1024 * 1024]);
    let limit = 256 * 1024;
    let (body, truncated) = expand(&["gzip"], &[&bomb], limit).unwrap();
    assert!(truncated && body.len() == limit && body.capacity() <= 2 * limit, "{}", body.capacity());
}

#[test]
fn a_packed_stream_that_expands_to_nothing_ends_too() {
    // Stored blocks of length zero, which a decoder swallows for ever.
    let nothing = [0, 0, 0, 0xff, 0xff].repeat(1000);
    let pieces: Vec<&[u8]> = std::iter::repeat_n(&*nothing, 100).collect();
    assert_eq!(expand(&["deflate"], &pieces, 1000), Ok((Vec::new(), true)));
}

#[test]
fn damaged_packing_is_a_broken_answer() {
    let mut damaged = gzip(b"some text that is long enough");
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(expand(&["gzip"], &[&damaged], 100), Err(BROKEN_PACKING));
    assert_eq!(expand(&["gzip"], &[b"not gzip at all"], 100), Err(BROKEN_PACKING));
    let half = gzip(b"some text that is long enough");
    assert_eq!(expand(&["gzip"], &[&half[..half.len() / 2]], 100), Err(BROKEN_PACKING));
}

#[test]
fn the_headers_of_an_expanded_body_no_longer_tell_how_it_was_packed() {
    let mut headers = headers(&["gzip"]);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("17"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    assert!(Reader::new(&mut headers, Sink::new(10, 0)).is_ok());
    assert_eq!(headers.keys().collect::<Vec<_>>(), [header::CONTENT_TYPE]);
}

#[test]
fn the_word_of_a_service_about_its_length_sets_little_memory_aside() {
    assert!(Sink::new(usize::MAX, usize::MAX).body.capacity() <= 64 * 1024);
}

proptest! {
    #[test]
    fn no_packed_bytes_expand_beyond_the_limit(bytes: Vec<u8>, limit in 0_usize..100) {
        for coding in ["gzip", "deflate"] {
            if let Ok((body, _)) = expand(&[coding], &[&bytes], limit) {
                prop_assert!(body.len() <= limit);
            }
        }
    }
}
