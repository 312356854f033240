//! The shape of a value, which determines how it can be sent.

use crate::openapi_import::Import;
use crate::openapi_import::reference::Part;

/// How deep alternatives are looked into.
const DEPTH_LIMIT: usize = 8;

/// What a value may be.
#[derive(Debug, Default)]
pub(super) struct Shape<'a> {
    /// The schemas of the objects that it may be.
    pub(super) objects: Vec<Part<'a>>,
    /// The schemas of what else it may be.
    pub(super) others: Vec<Part<'a>>,
    /// Whether a list is among those.
    pub(super) has_list: bool,
}

impl<'a> Import<'a> {
    /// Looks at a schema, its reference and its alternatives.
    pub(super) fn shape(&mut self, schema: Option<&Part<'a>>) -> Shape<'a> {
        let mut shape = Shape::default();
        if let Some(schema) = schema {
            self.collect_shape(schema, 0, &mut shape);
        }
        shape
    }

    fn collect_shape(&mut self, part: &Part<'a>, depth: usize, shape: &mut Shape<'a>) {
        let reference = part.text("$ref").map(|reference| self.target(reference));
        // Invalid references are reported when the schema is converted.
        let Some(part) = reference.unwrap_or_else(|| Ok(part.clone())).ok().filter(|_| depth < DEPTH_LIMIT) else {
            return;
        };
        let alternatives = ["anyOf", "oneOf"].iter().filter_map(|keyword| part.get(keyword));
        let mut alternatives: Vec<Part<'a>> = alternatives.flat_map(|list| list.elements()).collect();
        // An allOf of one is how documents put a remark beside a reference.
        if let Some([one]) = part.get("allOf").map(|list| list.elements()).as_deref() {
            alternatives.push(one.clone());
        }
        if part.text("$ref").is_some() {
            alternatives.push(part.clone());
        }
        if !alternatives.is_empty() {
            alternatives.iter().for_each(|alternative| self.collect_shape(alternative, depth + 1, shape));
            return;
        }
        let is = |kind: &str| {
            let Some(kinds) = part.value.get("type") else { return false };
            kinds.as_str() == Some(kind) || kinds.as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
        };
        if is("object") || part.get("properties").is_some() {
            shape.objects.push(part);
        } else {
            shape.has_list |= is("array") || part.get("items").is_some();
            shape.others.push(part);
        }
    }
}
