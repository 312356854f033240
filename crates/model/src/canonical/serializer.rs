//! A serde serializer that writes canonical JSON into a buffer without an intermediate [`Value`](serde_json::Value).
//! Members are written in the order in which they come; only an object whose members were out of order is sorted
//! afterwards.

use std::fmt::Display;
use std::io::Write;

use serde::ser::{Serialize, Serializer};
use thiserror::Error;

use self::compound::{List, Object};
use super::write_string;

mod compound;

#[cfg(test)]
mod tests;

/// Why a value has no canonical JSON.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CanonicalError {
    #[error("the name of a member must be a string, a number or a boolean")]
    MemberName,
    #[error("{0}")]
    Custom(String),
}

impl serde::ser::Error for CanonicalError {
    fn custom<T: Display>(message: T) -> Self {
        Self::Custom(message.to_string())
    }
}

/// Appends the canonical text of a value to `out`.
pub(crate) fn write_serialized<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
    value.serialize(Canonical { out })
}

pub(crate) struct Canonical<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Canonical<'a> {
    fn integer(self, number: impl Display) -> Result<(), CanonicalError> {
        // Writing to a Vec cannot fail.
        drop(write!(self.out, "{number}"));
        Ok(())
    }

    fn literal(self, text: &str) -> Result<(), CanonicalError> {
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn list(self) -> List<'a> {
        List::begin(self.out, "]")
    }

    fn object(self) -> Object<'a> {
        Object::begin(self.out, "}")
    }

    /// Opens the object around the content of a variant.
    fn variant(&mut self, name: &str) {
        self.out.push(b'{');
        write_string(name, self.out);
        self.out.push(b':');
    }
}

impl<'a> Serializer for Canonical<'a> {
    type Ok = ();
    type Error = CanonicalError;
    type SerializeSeq = List<'a>;
    type SerializeTuple = List<'a>;
    type SerializeTupleStruct = List<'a>;
    type SerializeTupleVariant = List<'a>;
    type SerializeMap = Object<'a>;
    type SerializeStruct = Object<'a>;
    type SerializeStructVariant = Object<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), CanonicalError> {
        self.literal(if value { "true" } else { "false" })
    }

    fn serialize_i8(self, value: i8) -> Result<(), CanonicalError> {
        self.integer(value)
    }

    fn serialize_i16(self, value: i16) -> Result<(), CanonicalError> {
        self.integer(value)
    }

    fn serialize_i32(self, value: i32) -> Result<(), CanonicalError> {
        self.integer(value)
    }

    fn serialize_i64(self, value: i64) -> Result<(), CanonicalError> {
        self.integer(value)
    }

    fn serialize_u8(self, value: u8) -> Result<(), CanonicalError> {
        self.integer(value)
    }

    fn serialize_u16(self, value: u16) -> Result<(), CanonicalError> {
        self.integer(value)
    }

    fn serialize_u32(self, value: u32) -> Result<(), CanonicalError> {
        self.integer(value)
    }

    fn serialize_u64(self, value: u64) -> Result<(), CanonicalError> {
        self.integer(value)
    }

    fn serialize_f32(self, value: f32) -> Result<(), CanonicalError> {
        self.serialize_f64(f64::from(value))
    }

    /// A number that JSON cannot represent becomes null, as in serde_json.
    fn serialize_f64(self, value: f64) -> Result<(), CanonicalError> {
        if !value.is_finite() {
            return self.serialize_unit();
        }
        self.literal(ryu_js::Buffer::new().format_finite(value))
    }

    fn serialize_char(self, value: char) -> Result<(), CanonicalError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), CanonicalError> {
        write_string(value, self.out);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), CanonicalError> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), CanonicalError> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), CanonicalError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), CanonicalError> {
        self.literal("null")
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), CanonicalError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), CanonicalError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), CanonicalError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), CanonicalError> {
        self.variant(variant);
        write_serialized(value, self.out)?;
        self.literal("}")
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<List<'a>, CanonicalError> {
        Ok(self.list())
    }

    fn serialize_tuple(self, _length: usize) -> Result<List<'a>, CanonicalError> {
        Ok(self.list())
    }

    fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<List<'a>, CanonicalError> {
        Ok(self.list())
    }

    fn serialize_tuple_variant(
        mut self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<List<'a>, CanonicalError> {
        self.variant(variant);
        Ok(List::begin(self.out, "]}"))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Object<'a>, CanonicalError> {
        Ok(self.object())
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Object<'a>, CanonicalError> {
        Ok(self.object())
    }

    fn serialize_struct_variant(
        mut self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Object<'a>, CanonicalError> {
        self.variant(variant);
        Ok(Object::begin(self.out, "}}"))
    }
}
