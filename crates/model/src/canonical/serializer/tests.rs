//! Whatever serde can express is written as the canonical form of the value that serde_json makes of it.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::canonical::tests::any_value;
use crate::canonical::to_canonical_string;

fn written<T: Serialize + ?Sized>(value: &T) -> String {
    let mut out = b"before".to_vec();
    write_serialized(value, &mut out).unwrap();
    String::from_utf8(out).unwrap().strip_prefix("before").unwrap().to_owned()
}

#[track_caller]
fn same<T: Serialize + ?Sized>(value: &T) {
    assert_eq!(written(value), to_canonical_string(&serde_json::to_value(value).unwrap()));
}

#[derive(serde::Serialize)]
struct Sorted {
    a: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<u8>,
    c: Option<u8>,
    inner: Unsorted,
}

#[derive(Clone, serde::Serialize)]
struct Unsorted {
    z: Vec<&'static str>,
    #[serde(flatten)]
    more: BTreeMap<&'static str, Value>,
    a: Shape,
}

#[derive(Clone, serde::Serialize)]
enum Shape {
    Unit,
    One(f64),
    Pair(i8, char),
    Named { z: (), a: bool },
}

#[test]
fn structs_maps_and_variants_are_written_in_canonical_form() {
    let more = BTreeMap::from([("k,\"}", json!({"b": [1, {"d": ",", "c": "\\\""}], "a": null})), ("b", json!(2.5))]);
    for a in [Shape::Unit, Shape::One(1.0), Shape::Pair(-8, '\u{1f600}'), Shape::Named { z: (), a: true }] {
        let inner = Unsorted { z: vec!["]", "\"", ","], more: more.clone(), a };
        same(&inner);
        same(&Sorted { a: "\n", b: None, c: None, inner: inner.clone() });
        same(&Sorted { a: "", b: Some(1), c: Some(2), inner });
    }
}

#[test]
fn names_that_are_numbers_are_quoted_and_sorted_as_texts() {
    same(&HashMap::from([(9, "a"), (10, "b"), (-1, "c")]));
    same(&HashMap::from([(true, 1), (false, 2)]));
    assert_eq!(
        write_serialized(&BTreeMap::from([((), 1)]), &mut Vec::new()),
        Err(CanonicalError::MemberName),
        "null is no name"
    );
    assert_eq!(write_serialized(&HashMap::from([([1], 1)]), &mut Vec::new()), Err(CanonicalError::MemberName));
}

#[test]
fn what_json_has_no_number_for_is_null() {
    same(&[f64::NAN, f64::INFINITY, -0.0, 5e-324]);
    same(&[f32::MAX, 0.5]);
    same(&(u64::MAX, i64::MIN, "x", [0_u8; 2]));
}

proptest! {
    #[test]
    fn every_value_is_written_as_the_writer_of_values_writes_it(value in any_value()) {
        prop_assert_eq!(written(&value), to_canonical_string(&value));
    }

    #[test]
    fn members_are_sorted_whatever_order_they_come_in(members in any::<HashMap<String, i8>>()) {
        prop_assert_eq!(written(&members), to_canonical_string(&json!(members)));
    }
}
