//! Lists and objects, written element by element.

use std::ops::Range;

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};

use super::{CanonicalError, write_serialized};

pub(crate) struct List<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
    close: &'static str,
}

impl<'a> List<'a> {
    pub(super) fn begin(out: &'a mut Vec<u8>, close: &'static str) -> Self {
        out.push(b'[');
        Self { out, empty: true, close }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        write_serialized(value, self.out)
    }

    fn finish(self) -> Result<(), CanonicalError> {
        self.out.extend_from_slice(self.close.as_bytes());
        Ok(())
    }
}

pub(crate) struct Object<'a> {
    out: &'a mut Vec<u8>,
    /// The position of the first member.
    start: usize,
    /// The position of the last name, without its quotes.
    last: Range<usize>,
    /// Whether all names so far are in order.
    sorted: bool,
    close: &'static str,
}

impl<'a> Object<'a> {
    pub(super) fn begin(out: &'a mut Vec<u8>, close: &'static str) -> Self {
        out.push(b'{');
        let start = out.len();
        Self { out, start, last: 0..0, sorted: true, close }
    }

    /// INVARIANT: the names of fields are ASCII and need no escaping.
    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), CanonicalError> {
        self.separate();
        self.out.push(b'"');
        let place = self.out.len();
        self.out.extend_from_slice(name.as_bytes());
        self.compare(place..self.out.len());
        self.out.extend_from_slice(b"\":");
        write_serialized(value, self.out)
    }

    fn name<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), CanonicalError> {
        self.separate();
        let quote = self.out.len();
        write_serialized(name, self.out)?;
        match self.out.get(quote) {
            Some(b'"') => {}
            // Values written without quotes: numbers and booleans.
            Some(b'-' | b'0'..=b'9' | b't' | b'f') => {
                self.out.insert(quote, b'"');
                self.out.push(b'"');
            }
            _ => return Err(CanonicalError::MemberName),
        }
        let name = quote + 1..self.out.len().saturating_sub(1);
        let written = self.out.get(name.clone()).unwrap_or_default();
        // The order is that of UTF-16, which equals byte order for plain names only; the others are sorted.
        self.sorted &= written.iter().all(|byte| byte.is_ascii() && *byte != b'\\');
        self.compare(name);
        Ok(())
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.out.push(b':');
        write_serialized(value, self.out)
    }

    fn finish(self) -> Result<(), CanonicalError> {
        if !self.sorted {
            sort_members(self.out, self.start);
        }
        self.out.extend_from_slice(self.close.as_bytes());
        Ok(())
    }

    fn separate(&mut self) {
        if self.out.len() > self.start {
            self.out.push(b',');
        }
    }

    fn compare(&mut self, name: Range<usize>) {
        self.sorted &= self.out.get(self.last.clone()) < self.out.get(name.clone());
        self.last = name;
    }
}

/// Sorts the members from here to the end.
fn sort_members(out: &mut Vec<u8>, start: usize) {
    let written = out.split_off(start);
    let mut members = members(&written);
    members.sort_by(|(left, _), (right, _)| left.encode_utf16().cmp(right.encode_utf16()));
    for (place, (_, member)) in members.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(member);
    }
}

/// The members of a written object, each with its name.
fn members(mut rest: &[u8]) -> Vec<(String, &[u8])> {
    let mut members = Vec::new();
    while !rest.is_empty() {
        let (member, behind) = rest.split_at(member_length(rest));
        let name = serde_json::Deserializer::from_slice(member).into_iter().next();
        // INVARIANT: what was written is JSON, and begins with the name.
        members.push((name.and_then(Result::ok).unwrap_or_default(), member));
        rest = behind.get(1..).unwrap_or_default();
    }
    members
}

/// The length up to the first comma that separates members.
fn member_length(written: &[u8]) -> usize {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    let ends = |byte: &u8| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            b',' => return !in_text && depth == 0,
            _ => {}
        }
        false
    };
    written.iter().position(ends).unwrap_or(written.len())
}

macro_rules! elements {
    ($($trait:ident $method:ident;)+) => {$(
        impl $trait for List<'_> {
            type Ok = ();
            type Error = CanonicalError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
                self.element(value)
            }

            fn end(self) -> Result<(), CanonicalError> {
                self.finish()
            }
        }
    )+};
}

elements! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

macro_rules! fields {
    ($($trait:ident;)+) => {$(
        impl $trait for Object<'_> {
            type Ok = ();
            type Error = CanonicalError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), CanonicalError> {
                self.field(name, value)
            }

            fn end(self) -> Result<(), CanonicalError> {
                self.finish()
            }
        }
    )+};
}

fields! {
    SerializeStruct;
    SerializeStructVariant;
}

impl SerializeMap for Object<'_> {
    type Ok = ();
    type Error = CanonicalError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), CanonicalError> {
        self.name(name)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.value(value)
    }

    fn end(self) -> Result<(), CanonicalError> {
        self.finish()
    }
}
