//! What redaction costs, in steps: for random secrets in texts of random pieces, a text twice as long may cost some
//! twice as many. A square would be four times as many. To search for longer:
//! `PROPTEST_CASES=10000 cargo test --release -p toolgate-model --lib redaction::tests::cost`.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use serde_json::Value;

use super::super::steps;
use super::redactor;

/// How much longer the longer text is.
const LONGER: usize = 2;
/// How many halves more than that it may cost: places near the end of a text have fewer ways to be read.
const HALVES: u64 = 3;
/// What any text may cost.
const FREE: u64 = 200_000;
/// How long the shorter text is at least: in a text that is no longer than an escape may be, each place has fewer ways to
/// be read.
const SHORT: usize = 2048;

/// What escapes are made of, and what secrets are.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&[u8]> = vec![
        b"\\",
        b"%",
        b"&",
        b"%25",
        b"%5C",
        b"%5c",
        b"\\\\",
        b"\\u005c",
        b"\\x5c",
        b"&amp;",
        b"&#",
        b"&#48",
        b"&#x26;",
        b"&#0",
        b"%25%32%35",
        b"\\u0025",
        b"u00",
        b"a",
        b"aa",
        b"a\0",
        b"\0",
        b"\n",
        b"=",
        b"YWFh",
        b"61",
        b"%61",
        b"&#97;",
        b"\\u0061",
        b"+",
        b" ",
        b"\"",
        b";",
        b"0",
    ];
    let known = select(known).prop_map(<[u8]>::to_vec);
    prop_oneof![4 => known, 1 => vec(any::<u8>(), 1..4)]
}

fn secret() -> impl Strategy<Value = String> {
    prop_oneof!["a{8,24}", "[a%\\\\&]{8,16}", "[%\\\\&+ u0-9a-f\"]{8,24}", "[A-Za-z0-9_+/=.-]{8,32}"]
        .prop_filter("white space around a secret is no part of it", |secret| secret.trim_ascii().len() >= 8)
}

/// The pieces, each so many times in a row.
fn text(pieces: &[(Vec<u8>, usize)], times: usize) -> Vec<u8> {
    pieces.iter().flat_map(|(piece, row)| piece.repeat(row * times)).collect()
}

/// Few: unoptimised, they take some seconds together.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(), failure_persistence: None, rng_seed: RngSeed::Fixed(17), ..ProptestConfig::default()
    })]

    #[test]
    fn steps_grow_with_the_length_of_the_text(
        secrets in vec(secret(), 1..2), pieces in vec((piece(), 1..6_usize), 1..4), whole in 1..3_usize,
    ) {
        let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
        let redactor = redactor(&secrets);
        // Longer rows, and more of them.
        let cost = |rows: usize, repeated: usize| {
            let mut bytes = text(&pieces, rows).repeat(repeated);
            let json = String::from_utf8(bytes.clone()).ok().map(Value::String);
            steps::of(|| {
                redactor.redact_cut_off(&mut bytes);
                if let Some(mut json) = json {
                    redactor.redact_json(&mut json);
                }
            })
        };
        let more = u64::try_from(LONGER).unwrap();
        let rows = SHORT.div_ceil(text(&pieces, 1).len() * whole);
        let short = cost(rows, whole);
        for longer in [cost(rows * LONGER, whole), cost(rows, whole * LONGER)] {
            prop_assert!(longer <= short * more * HALVES / 2 + FREE, "{} steps became {}", short, longer);
        }
    }
}
