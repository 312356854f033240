//! Exports that were tampered with in every way we could think of, and what the verifier says to each.

use serde_json::json;

use super::*;
use crate::canonical::to_canonical_string;
use crate::checkpoint::{CheckpointError, SigningKey, TreeHead, sign};
use crate::merkle::{append, block_tiles};
use crate::time::Timestamp;

const SIZES: [u64; 7] = [0, 1, 2, 255, 256, 257, 1000];

fn key() -> SigningKey {
    SigningKey::from_seed(&[9; 32]).unwrap()
}

fn tenant() -> TenantId {
    TenantId::parse("acme").unwrap()
}

fn event(sequence: u64) -> String {
    let data = json!({"amount": 1.1 * sequence as f64, "big": u64::MAX - sequence, "café": [null, true]});
    to_canonical_string(&json!({"id": format!("event_{sequence}"), "tenant": "acme", "type": "x.y", "data": data}))
}

#[test]
fn an_export_that_could_not_go_on_says_why() {
    let mut export = Export::of(2);
    let damaged = ExportError::DamagedEvent { sequence: 1, reason: "not a JSON object".to_owned() };
    export.0.truncate(Export::place(1));
    export.0.push(String::from_utf8(broken_line(&damaged.to_string())).unwrap().trim_end().to_owned());
    let text = export.0.join("\n") + "\n";
    let error = verify(text.as_bytes(), key().public_key()).unwrap_err().to_string();
    assert!(error.contains("event 1 is damaged in the ledger: not a JSON object"), "{error}");
    assert_eq!(broken_reason(export.0[2].as_bytes()), None);
}

#[test]
fn what_a_caller_nested_as_deep_as_it_may_is_exported_and_verified() {
    use crate::strict_json::{MAX_DEPTH, parse};
    let text = format!("{}1{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    let deepest = parse(text.as_bytes()).unwrap();
    let stored = to_canonical_string(&json!({"id": "event_0", "data": {"returned": {"inputs": {"deep": deepest}}}}));
    let leaves = [leaf_hash(stored.as_bytes())];
    let tiles = append(0, &Tiles::new(), &leaves).unwrap().tiles;
    let head =
        TreeHead { tenant: tenant(), size: 1, root: crate::merkle::root(1, &tiles).unwrap(), time: Timestamp::EPOCH };
    let mut export = header_line(&tenant(), &sign(&head, &key()).unwrap(), key().public_key());
    export.extend(block_line(0, 1, &tiles).unwrap());
    export.extend(event_line(0, &stored).unwrap());
    export.extend(end_line(1));
    assert_eq!(verify(export.as_slice(), key().public_key()).unwrap().size, 1);
}

/// An export as lines, to be tampered with.
#[derive(Clone)]
struct Export(Vec<String>);

impl Export {
    fn of(size: u64) -> Self {
        // The log has gone on since the head was signed: its tiles hold more than the export shows.
        let leaves: Vec<Hash> = (0..size + 3).map(|sequence| leaf_hash(event(sequence).as_bytes())).collect();
        let tiles = append(0, &Tiles::new(), &leaves).unwrap().tiles;
        let root = crate::merkle::root(size, &tiles).unwrap();
        let head = TreeHead { tenant: tenant(), size, root, time: Timestamp::EPOCH };
        let mut bytes = header_line(&tenant(), &sign(&head, &key()).unwrap(), key().public_key());
        for block in 0..size.div_ceil(BLOCK_EVENTS) {
            let fetched = block_tiles(block, size).into_iter().map(|tile| (tile, tiles[&tile].clone())).collect();
            bytes.extend(block_line(block, size, &fetched).unwrap());
            for sequence in block * BLOCK_EVENTS..size.min((block + 1) * BLOCK_EVENTS) {
                bytes.extend(event_line(sequence, &event(sequence)).unwrap());
            }
        }
        bytes.extend(end_line(size));
        Self(String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect())
    }

    /// Where an event stands in the list of lines; its line number is one more.
    fn place(sequence: u64) -> usize {
        usize::try_from(2 + sequence + sequence / BLOCK_EVENTS).unwrap()
    }

    fn edit(&mut self, place: usize, change: impl FnOnce(&mut Value)) {
        let mut value = serde_json::from_str(&self.0[place]).unwrap();
        change(&mut value);
        self.0[place] = to_canonical_string(&value);
    }

    /// Gives every event the number of the place where it now stands.
    fn renumber(&mut self) {
        let mut next = 0;
        for line in &mut self.0 {
            let mut value: Value = serde_json::from_str(line).unwrap();
            if value.get("sequence").is_some() {
                value["sequence"] = json!(next);
                *line = to_canonical_string(&value);
                next += 1;
            }
        }
    }

    fn text(&self) -> String {
        self.0.iter().map(|line| format!("{line}\n")).collect()
    }

    fn verify(&self) -> Result<VerifiedExport, VerifyError> {
        verify(self.text().as_bytes(), key().public_key())
    }

    /// The kind of fault and the event it names.
    fn fault(&self) -> (&'static str, Option<u64>) {
        let error = self.verify().unwrap_err();
        (error.kind(), error.sequence())
    }
}

/// Events at the borders of blocks and in between.
fn samples(size: u64) -> impl Iterator<Item = u64> {
    let last = size.checked_sub(1).filter(|last| *last > 256);
    [0, 17, 254, 255, 256].into_iter().chain(last).filter(move |sequence| *sequence < size)
}

/// Runs a check on every sample of every size.
fn for_each_event(check: impl Fn(Export, u64, u64)) {
    for size in SIZES {
        let export = Export::of(size);
        samples(size).for_each(|sequence| check(export.clone(), sequence, size));
    }
}

#[test]
fn an_untouched_export_verifies() {
    for size in SIZES {
        let verified = Export::of(size).verify().unwrap();
        assert_eq!((verified.size, verified.tenant, verified.time), (size, tenant(), Timestamp::EPOCH));
    }
    assert!(verify(Export::of(3).text().trim_end().as_bytes(), key().public_key()).is_ok());
}

#[test]
fn a_changed_event_is_named() {
    for_each_event(|export, sequence, _| {
        let changes: [fn(&mut Value); 4] = [
            |event| event["type"] = json!("x.z"),
            |event| event["data"]["amount"] = json!(0.5),
            |event| event["more"] = json!(null),
            |event| drop(event.as_object_mut().unwrap().remove("tenant")),
        ];
        for change in changes {
            let mut export = export.clone();
            export.edit(Export::place(sequence), change);
            assert_eq!(export.fault(), ("changed", Some(sequence)));
        }
    });
    let mut export = Export::of(20);
    export.edit(Export::place(17), |event| event["id"] = json!("other"));
    let message = export.verify().unwrap_err().to_string();
    assert_eq!(message, "event 17 (line 20) was changed: it is not the event that was logged");
}

#[test]
fn a_change_that_the_hash_does_not_see_is_named_too() {
    for_each_event(|export, sequence, _| {
        let place = Export::place(sequence);
        let line = export.0[place].clone();
        for changed in [
            line.replace(":", ": "),
            line.replace("\"x.y\"", "\"x.\\u0079\""),
            line.replace("{\"data\"", "{ \"data\""),
            // Both are the same integer.
            line.replace(&(u64::MAX - sequence).to_string(), &format!("{}.0", u64::MAX - sequence)),
        ] {
            let mut export = export.clone();
            export.0[place] = changed;
            assert_eq!(export.fault(), ("changed", Some(sequence)), "{}", export.0[place]);
        }
    });
}

#[test]
fn a_changed_or_removed_number_is_named() {
    for_each_event(|export, sequence, _| {
        for number in [json!(sequence + 1), json!("0"), json!(-1), json!(null)] {
            let mut export = export.clone();
            export.edit(Export::place(sequence), |event| event["sequence"] = number);
            assert_eq!(export.fault(), ("changed", Some(sequence)));
        }
        let mut export = export.clone();
        export.edit(Export::place(sequence), |event| drop(event.as_object_mut().unwrap().remove("sequence")));
        assert_eq!(export.fault(), ("changed", Some(sequence)));
    });
}

#[test]
fn a_change_with_a_matching_leaf_shows_the_block_as_forged() {
    for_each_event(|mut export, sequence, size| {
        let place = Export::place(sequence);
        export.edit(place, |event| event["type"] = json!("x.z"));
        let Value::Object(event) = serde_json::from_str(&export.0[place]).unwrap() else { panic!() };
        let first = sequence / BLOCK_EVENTS * BLOCK_EVENTS;
        let position = usize::try_from(sequence - first).unwrap();
        export.edit(Export::place(first) - 1, |block| block["leaves"][position] = json!(exported_leaf(&event)));
        let error = export.verify().unwrap_err();
        let last = (first + 255).min(size - 1);
        assert!(
            matches!(error, VerifyError::BlockForged { sequence, last: end, .. } if sequence == first && end == last)
        );
    });
}

#[test]
fn a_removed_event_is_named_whether_or_not_the_rest_is_renumbered() {
    for_each_event(|mut export, sequence, _| {
        export.0.remove(Export::place(sequence));
        assert_eq!(export.fault(), ("missing", Some(sequence)));
        export.renumber();
        assert_eq!(export.fault(), ("missing", Some(sequence)));
    });
}

#[test]
fn a_removed_event_is_named_even_if_the_next_one_was_changed() {
    let mut export = Export::of(257);
    export.edit(Export::place(18), |event| event["type"] = json!("x.z"));
    export.0.remove(Export::place(17));
    assert_eq!(export.fault(), ("missing", Some(17)));
}

#[test]
fn swapped_and_moved_events_are_named() {
    for_each_event(|export, sequence, size| {
        let (block, place) = (sequence / BLOCK_EVENTS, Export::place(sequence));
        for other in [sequence + 1, sequence + 9].into_iter().filter(|other| *other < size && other / 256 == block) {
            for renumbered in [false, true] {
                let mut swapped = export.clone();
                swapped.0.swap(place, Export::place(other));
                let mut delayed = export.clone();
                let line = delayed.0.remove(place);
                delayed.0.insert(Export::place(other), line);
                for mut export in [swapped, delayed] {
                    if renumbered {
                        export.renumber();
                    }
                    assert_eq!(export.fault(), ("out_of_order", Some(sequence)), "{sequence} {other}");
                }
            }
        }
    });
}

#[test]
fn events_swapped_across_blocks_are_named() {
    let mut export = Export::of(1000);
    export.0.swap(Export::place(10), Export::place(300));
    assert_eq!(export.fault().1, Some(10));
    export.renumber();
    assert_eq!(export.fault(), ("changed", Some(10)));
}

#[test]
fn a_duplicated_event_is_an_inserted_one() {
    for_each_event(|mut export, sequence, _| {
        let place = Export::place(sequence);
        export.0.insert(place, export.0[place].clone());
        assert_eq!(export.fault(), ("inserted", Some(sequence + 1)));
        export.renumber();
        assert_eq!(export.fault(), ("inserted", Some(sequence + 1)));
    });
}

#[test]
fn an_event_that_was_never_logged_is_an_inserted_one() {
    for_each_event(|mut export, sequence, _| {
        let line = String::from_utf8(event_line(sequence, r#"{"id":"forged"}"#).unwrap()).unwrap();
        export.0.insert(Export::place(sequence), line.trim_end().to_owned());
        assert_eq!(export.fault(), ("inserted", Some(sequence)));
        export.renumber();
        assert_eq!(export.fault(), ("inserted", Some(sequence)));
    });
}

#[test]
fn an_event_behind_a_block_or_behind_the_last_is_an_inserted_one() {
    for size in SIZES {
        let line = String::from_utf8(event_line(size, r#"{"id":"forged"}"#).unwrap()).unwrap().trim_end().to_owned();
        let mut export = Export::of(size);
        export.0.insert(export.0.len() - 1, line.clone());
        assert_eq!(export.fault(), ("inserted", Some(size)));
        if size > BLOCK_EVENTS {
            let mut export = Export::of(size);
            export.0.insert(Export::place(BLOCK_EVENTS) - 1, line);
            assert_eq!(export.fault(), ("inserted", Some(BLOCK_EVENTS)));
        }
    }
}

#[test]
fn a_truncated_export_names_the_first_event_that_is_gone() {
    for size in SIZES {
        let text = Export::of(size).text();
        let newlines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        let cuts = newlines.iter().enumerate().take(newlines.len() - 1);
        // Every line of the small ones, and those around the borders of blocks.
        for (line, at) in cuts.filter(|(line, _)| size < 3 || line % 257 < 4 || line + 4 > newlines.len()) {
            for cut in [at + 1, at + 2] {
                let error = verify(&text.as_bytes()[..cut], key().public_key()).unwrap_err();
                assert_eq!(error.kind(), "truncated", "{error}");
                let awaited = (0..size).find(|sequence| Export::place(*sequence) > line);
                assert_eq!(error.sequence(), awaited, "{error}");
            }
        }
    }
    for text in ["", "\n", "{", "{\"export\":\"toolgate-audit\"}\n"] {
        assert_eq!(verify(text.as_bytes(), key().public_key()).unwrap_err().kind(), "header");
    }
}

#[test]
fn events_cut_off_at_the_end_are_missing_even_with_an_end_line() {
    for_each_event(|mut export, sequence, size| {
        export.0.truncate(Export::place(sequence));
        for end in [size, sequence] {
            let mut export = export.clone();
            export.0.push(format!("{{\"end\":{end}}}"));
            assert_eq!(export.fault(), ("missing", Some(sequence)));
        }
    });
}

#[test]
fn a_header_that_was_changed_is_refused() {
    for size in SIZES {
        let export = Export::of(size);
        let with = |change: &dyn Fn(&mut Value)| {
            let mut export = export.clone();
            export.edit(0, change);
            export.verify().unwrap_err()
        };
        let smaller = size.saturating_sub(1);
        for other in [smaller, size + 1].into_iter().filter(|other| *other != size) {
            let error = with(&|header| {
                let note =
                    header["checkpoint"].as_str().unwrap().replace(&format!("\n{size}\n"), &format!("\n{other}\n"));
                header["checkpoint"] = json!(note);
            });
            assert!(matches!(error, VerifyError::Head(CheckpointError::Signature)), "{error}");
        }
        assert_eq!(with(&|header| header["tenant"] = json!("other")).kind(), "header");
        assert_eq!(with(&|header| header["version"] = json!(2)).kind(), "header");
        assert_eq!(with(&|header| header["export"] = json!("other")).kind(), "header");
        assert_eq!(with(&|header| header["extra"] = json!(1)).kind(), "header");
        assert_eq!(with(&|header| header["checkpoint"] = json!("")).kind(), "head");
    }
}

#[test]
fn only_the_key_that_was_given_is_trusted() {
    let other = SigningKey::from_seed(&[8; 32]).unwrap();
    let error = verify(Export::of(2).text().as_bytes(), other.public_key()).unwrap_err();
    assert!(matches!(error, VerifyError::Head(CheckpointError::OtherKey)));
    // A log that was made anew and signed with a key of its own, which it brings along.
    let head = TreeHead { tenant: tenant(), size: 0, root: crate::merkle::empty_root(), time: Timestamp::EPOCH };
    let mut forged = header_line(&tenant(), &sign(&head, &other).unwrap(), other.public_key());
    forged.extend(end_line(0));
    assert_eq!(verify(forged.as_slice(), key().public_key()).unwrap_err().kind(), "head");
}

#[test]
fn a_block_line_that_was_changed_removed_or_moved_is_noticed() {
    let block = |number: u64| Export::place(number * BLOCK_EVENTS) - 1;
    let export = Export::of(1000);
    let with = |change: &dyn Fn(&mut Export)| {
        let mut export = export.clone();
        change(&mut export);
        export.fault()
    };
    for number in 0..4 {
        let first = Some(number * BLOCK_EVENTS);
        let changes: [fn(&mut Value); 5] = [
            |block| block["proof"][0] = block["leaves"][0].clone(),
            |block| drop(block["proof"].as_array_mut().unwrap().pop()),
            |block| drop(block["leaves"].as_array_mut().unwrap().pop()),
            |block| block["leaves"].as_array_mut().unwrap().swap(0, 1),
            |block| block["leaves"] = json!([]),
        ];
        for change in changes {
            assert_eq!(with(&|export| export.edit(block(number), change)), ("block_forged", first));
        }
        assert_eq!(with(&|export| drop(export.0.remove(block(number)))), ("block_forged", first));
        assert_eq!(with(&|export| export.edit(block(number), |block| block["more"] = json!(1))), ("malformed", first));
        let longer = with(&|export| export.0.insert(block(number), export.0[block(number)].clone()));
        assert_eq!(longer, ("missing", first));
    }
    assert_eq!(with(&|export| drop(export.0.drain(block(1)..block(2)))), ("missing", Some(256)));
    assert_eq!(with(&|export| export.0.swap(block(1), block(2))), ("missing", Some(256)));
    let repeated = |export: &mut Export| {
        let copy = export.0[block(1)..block(2)].to_vec();
        export.0.splice(block(2)..block(2), copy);
    };
    assert_eq!(with(&repeated), ("inserted", Some(512)));
}

#[test]
fn a_line_that_cannot_be_read_is_named() {
    let export = Export::of(300);
    let place = Export::place(270);
    let line = export.0[place].clone();
    for bad in ["", "x", "[]", "null", &line.replacen('{', "{\"id\":\"first\",", 1), &format!("{line}{line}")] {
        let mut export = export.clone();
        export.0[place] = bad.to_owned();
        let error = export.verify().unwrap_err();
        assert_eq!(
            (error.kind(), error.sequence(), error.line()),
            ("malformed", Some(270), Some(274)),
            "{bad}: {error}"
        );
    }
    let mut bytes = export.text().into_bytes();
    let at = bytes.windows(9).position(|window| window == b"event_270").unwrap();
    bytes[at] = 0xff;
    assert_eq!(verify(bytes.as_slice(), key().public_key()).unwrap_err().sequence(), Some(270));
}

#[test]
fn an_endless_line_is_refused_without_being_read_to_its_end() {
    let mut export = Export::of(3);
    export.0.truncate(Export::place(1));
    let endless = std::io::Read::chain(std::io::Cursor::new(export.text()), std::io::repeat(b'a'));
    let error = verify(std::io::BufReader::new(endless), key().public_key()).unwrap_err();
    assert!(matches!(error, VerifyError::LineTooLong { sequence: Some(1), line: 4 }), "{error}");
}

#[test]
fn nothing_may_follow_the_end_and_the_end_must_fit() {
    for size in SIZES {
        let mut export = Export::of(size);
        export.0.push(String::new());
        assert_eq!(export.fault(), ("trailing_data", None));
        let end = export.0.len() - 1;
        export.0[end] = export.0[end - 1].clone();
        assert_eq!(export.fault(), ("trailing_data", None));
        export.0.truncate(end - 1);
        export.0.push(format!("{{\"end\":{}}}", size + 1));
        assert_eq!(export.fault(), ("end", None));
    }
}

#[test]
fn every_single_damaged_byte_of_a_small_export_is_noticed() {
    let text = Export::of(3).text();
    let header = text.find('\n').unwrap();
    // The key in the header is for information only, and the last newline may be missing.
    let informational = text.find("\"public_key\"").unwrap()..header;
    for position in (0..text.len() - 1).filter(|position| !informational.contains(position)) {
        let mut bytes = text.clone().into_bytes();
        bytes[position] ^= 1;
        assert!(verify(bytes.as_slice(), key().public_key()).is_err(), "byte {position}");
    }
}

#[test]
fn a_damaged_event_of_the_ledger_is_not_exported() {
    for bad in ["", "[]", "{\"a\":1,\"a\":2}", "{\"sequence\":0}"] {
        let error = event_line(5, bad).unwrap_err();
        assert!(matches!(error, ExportError::DamagedEvent { sequence: 5, .. }), "{error}");
    }
    assert_eq!(block_line(0, 1, &Tiles::new()).unwrap_err(), {
        ExportError::Tile(TileError::Missing(TileCoordinate { level: 0, index: 0 }))
    });
}
