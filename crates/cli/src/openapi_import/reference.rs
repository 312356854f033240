//! JSON pointers, and references within a document. References to other documents are reported and never fetched.

use serde_json::Value;

use super::Import;
use super::finding::Kind;

/// Longer chains of references are assumed to be circular.
const HOP_LIMIT: usize = 16;

/// A part of the document, and its pointer.
#[derive(Debug, Clone)]
pub(super) struct Part<'a> {
    pub(super) value: &'a Value,
    pub(super) pointer: String,
}

impl<'a> Part<'a> {
    /// A member, if it is there and not null.
    pub(super) fn get(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(Self { value, pointer: below(&self.pointer, name) })
    }

    /// The members of an object, or none.
    pub(super) fn members(&self) -> Vec<(&'a str, Self)> {
        let members = self.value.as_object().into_iter().flatten();
        members.map(|(name, value)| (name.as_str(), Self { value, pointer: below(&self.pointer, name) })).collect()
    }

    /// The elements of a list, or none.
    pub(super) fn elements(&self) -> Vec<Self> {
        let elements = self.value.as_array().into_iter().flatten().enumerate();
        elements.map(|(index, value)| Self { value, pointer: below(&self.pointer, &index.to_string()) }).collect()
    }

    /// A member that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.value.get(name).and_then(Value::as_str)
    }

    /// Whether a member is true.
    pub(super) fn is(&self, name: &str) -> bool {
        self.value.get(name) == Some(&Value::Bool(true))
    }
}

impl<'a> Import<'a> {
    /// Resolves the references of a schema. In 3.1, keywords beside a reference apply, so such a reference is kept.
    pub(super) fn resolve_schema(&mut self, part: Part<'a>) -> Result<Part<'a>, String> {
        if self.is_older {
            return self.resolve(part);
        }
        let mut part = part;
        for _ in 0..HOP_LIMIT {
            match part.text("$ref") {
                Some(reference) if part.members().len() == 1 => part = self.target(reference)?,
                _ => return Ok(part),
            }
        }
        Err("its references are circular".to_owned())
    }

    /// Follows references until there is something else.
    pub(super) fn resolve(&mut self, part: Part<'a>) -> Result<Part<'a>, String> {
        let mut part = part;
        for _ in 0..HOP_LIMIT {
            let Some(reference) = part.value.get("$ref") else { return Ok(part) };
            let reference = reference.as_str().ok_or("its $ref is not a string")?;
            for (name, sibling) in part.members() {
                if name != "$ref" {
                    self.findings.add(Kind::ReferenceSibling, &sibling.pointer, name);
                }
            }
            part = self.target(reference)?;
        }
        Err("its references are circular".to_owned())
    }

    /// What a reference leads to.
    pub(super) fn target(&mut self, reference: &str) -> Result<Part<'a>, String> {
        let Some(pointer) = local_pointer(reference) else {
            return Err(format!("{reference} refers to another document"));
        };
        let Some(value) = self.document.pointer(&pointer) else {
            return Err(format!("{reference} leads nowhere"));
        };
        self.used.insert(pointer.clone());
        Ok(Part { value, pointer })
    }
}

/// The pointer of a member.
pub(super) fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The pointer in a reference that stays inside the document. References may be percent-encoded.
pub(super) fn local_pointer(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    if !fragment.is_empty() && !fragment.starts_with('/') {
        return None;
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            plain => plain,
        });
    }
    String::from_utf8(bytes).ok()
}
