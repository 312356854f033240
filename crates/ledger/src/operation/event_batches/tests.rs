//! Batches of events: what is written can be read, in full and by heading.

use super::*;

fn heading(run: &str) -> String {
    let terms =
        [Some("admin"), Some("worker"), None, Some("tool.invoked"), Some(run), None, Some("pay\n\"ments\".\tcharge")];
    serde_json::to_string(&Heading(terms.map(Term::of), 1_000)).unwrap()
}

fn text(events: u64) -> String {
    let lines: Vec<String> =
        (0..events).flat_map(|number| [heading(&number.to_string()), format!("{{\"n\":{number}}}")]).collect();
    lines.join("\n")
}

#[test]
fn a_batch_is_read_as_it_was_written() {
    for events in [1, 2, 100] {
        let text = text(events);
        let stored = encode(&text);
        assert_eq!(stored.first() == Some(&COMPRESSED), events == 100, "short texts are not worth it");
        let batch = Batch { first: 7, text: decode(&stored).unwrap() };
        let read: Vec<BatchEvent<'_>> = batch.events().collect::<Result<_, _>>().unwrap();
        assert_eq!(read.len() as u64, events);
        for (number, event) in (0..).zip(&read) {
            assert_eq!((event.sequence, event.canonical), (7 + number, format!("{{\"n\":{number}}}").as_str()));
            assert_eq!(event.heading.get(Field::Run), Some(number.to_string().as_str()));
            assert_eq!(event.heading.get(Field::Tool), Some("pay\n\"ments\".\tcharge"));
            assert_eq!((event.heading.get(Field::Intent), event.heading.1), (None, 1_000));
        }
    }
}

#[test]
fn a_heading_that_a_migration_wrote_is_read() {
    let spaced = r#"[["admin", null, null, "key.created", null, null, null], 12]"#;
    let heading: Heading<'_> = serde_json::from_str(spaced).unwrap();
    assert_eq!(heading.terms().collect::<Vec<_>>(), [(Field::Actor, "admin"), (Field::Kind, "key.created")]);
    assert_eq!(heading.1, 12);
}

#[test]
fn a_damaged_batch_is_an_error_and_no_panic() {
    let text = text(60);
    let stored = encode(&text).into_owned();
    assert_eq!(stored.first(), Some(&COMPRESSED));
    for length in 0..stored.len() {
        let cut = stored.get(..length).unwrap();
        let whole = decode(cut).is_ok_and(|text| Batch { first: 0, text }.events().filter(Result::is_ok).count() == 60);
        assert!(!whole, "{length}");
    }
    for position in 0..stored.len() {
        let mut changed = stored.clone();
        *changed.get_mut(position).unwrap() ^= 0x55;
        if let Ok(text) = decode(&changed) {
            let _ = Batch { first: 0, text }.events().count();
        }
    }
    assert!(decode(&[COMPRESSED, 0xff, 0xff, 0xff, 0xff, 0]).is_err(), "it claims four gigabytes");
}
