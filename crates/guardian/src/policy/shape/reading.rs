//! Derives the shape from a JSON Schema. Everything that applies to one value (the schema itself, its references, all
//! of `allOf`) is collected first; of alternatives, the shape is what all of them have in common.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Member, Shape};

/// The maximum nesting depth of records and sets.
const DEPTH_LIMIT: usize = 8;
/// The maximum number of members in all records of one tool.
const MEMBER_LIMIT: usize = 2_000;
/// The maximum number of schemas and properties visited for one tool: nested alternatives multiply.
const WORK_LIMIT: usize = 50_000;

/// The shape of an object with this schema.
pub(super) fn arguments(document: &Value) -> Shape {
    let mut reader = Reader { document, work: WORK_LIMIT, open: Vec::new() };
    let mut facets = Facets { types: Some(BTreeSet::from(["object"])), ..Facets::default() };
    facets.references.insert("#");
    reader.gather(document, &mut facets);
    let mut members = match reader.read(facets, 0).shape {
        Some(Shape::Record(members)) => members,
        _ => BTreeMap::new(),
    };
    if let Some((first, _)) = members.iter().nth(MEMBER_LIMIT) {
        let first = first.clone();
        members.split_off(&first);
    }
    let mut left = MEMBER_LIMIT;
    bounded(Shape::Record(members), &mut left)
}

struct Reader<'a> {
    document: &'a Value,
    /// The remaining work limit.
    work: usize,
    /// The references being resolved: one that occurs again is recursive.
    open: Vec<&'a str>,
}

/// The combined constraints of all schemas of one value.
#[derive(Clone, Default)]
struct Facets<'a> {
    /// `None` if every type is allowed.
    types: Option<BTreeSet<&'a str>>,
    /// Whether the allowed values are enumerated without null.
    lists_no_null: bool,
    properties: BTreeMap<&'a str, Vec<&'a Value>>,
    required: BTreeSet<&'a str>,
    items: Vec<&'a Value>,
    /// Whether the items of a list differ by their position.
    is_tuple: bool,
    /// Lists of schemas of which one applies.
    alternatives: Vec<&'a Vec<Value>>,
    /// The references that were followed.
    references: BTreeSet<&'a str>,
    /// Whether a reference could not be followed.
    is_partial: bool,
}

/// The shape of a value by some schemas.
struct Reading {
    /// `None` if only null is valid.
    shape: Option<Shape>,
    /// Whether null is valid.
    admits_null: bool,
}

impl<'a> Reader<'a> {
    /// Adds a schema and everything that applies together with it.
    fn gather(&mut self, schema: &'a Value, facets: &mut Facets<'a>) {
        if !self.spend(1) {
            facets.is_partial = true;
            return;
        }
        match schema {
            Value::Bool(true) => {}
            Value::Bool(false) => facets.narrow_types(BTreeSet::new()),
            Value::Object(keywords) => {
                facets.add(keywords);
                for part in list(keywords, "allOf") {
                    self.gather(part, facets);
                }
                self.follow(keywords, facets);
            }
            _ => facets.is_partial = true,
        }
    }

    /// Adds what the schema refers to.
    fn follow(&mut self, keywords: &'a Map<String, Value>, facets: &mut Facets<'a>) {
        let Some(reference) = keywords.get("$ref") else { return };
        let target = reference.as_str().filter(|reference| !self.open.contains(reference)).and_then(|reference| {
            let pointer = reference.strip_prefix('#')?;
            Some((reference, self.document.pointer(pointer)?))
        });
        match target {
            Some((reference, target)) => {
                if facets.references.insert(reference) {
                    self.gather(target, facets);
                }
            }
            None => facets.is_partial = true,
        }
    }

    /// Derives the shape from the combined constraints.
    fn read(&mut self, mut facets: Facets<'a>, depth: usize) -> Reading {
        let Some(alternatives) = facets.alternatives.pop() else {
            let outside = self.open.len();
            self.open.extend(&facets.references);
            let shape = self.shape(&facets, depth);
            self.open.truncate(outside);
            return Reading { shape, admits_null: facets.admit("null") && !facets.lists_no_null };
        };
        let mut common = Reading { shape: None, admits_null: false };
        for alternative in alternatives {
            if !self.spend(facets.properties.len()) {
                return Reading { shape: Some(Shape::Json), admits_null: true };
            }
            let mut facets = facets.clone();
            self.gather(alternative, &mut facets);
            common = common.or(self.read(facets, depth));
        }
        common
    }

    fn shape(&mut self, facets: &Facets<'a>, depth: usize) -> Option<Shape> {
        let Some(types) = &facets.types else { return Some(Shape::Json) };
        let mut types = types.clone();
        types.remove("null");
        if types.contains("number") {
            types.remove("integer");
        }
        let kind = types.pop_first()?;
        if !types.is_empty() || facets.is_partial {
            return Some(Shape::Json);
        }
        Some(match kind {
            "string" => Shape::Text,
            "integer" => Shape::Long,
            "number" => Shape::Decimal,
            "boolean" => Shape::Bool,
            "array" if depth < DEPTH_LIMIT => self.set(facets, depth),
            "object" if depth < DEPTH_LIMIT => self.record(facets, depth),
            _ => Shape::Json,
        })
    }

    fn set(&mut self, facets: &Facets<'a>, depth: usize) -> Shape {
        if facets.is_tuple || facets.items.is_empty() {
            return Shape::Json;
        }
        let item = self.below(&facets.items, depth);
        Shape::Set(Box::new(item.shape.unwrap_or(Shape::Json)))
    }

    fn record(&mut self, facets: &Facets<'a>, depth: usize) -> Shape {
        if facets.properties.is_empty() || !self.spend(facets.properties.len()) {
            return Shape::Json;
        }
        let mut members = BTreeMap::new();
        for (&name, schemas) in &facets.properties {
            let reading = self.below(schemas, depth);
            // A member that can only be null is never visible to rules.
            if let Some(shape) = reading.shape {
                let required = facets.required.contains(name) && !reading.admits_null;
                members.insert(name.to_owned(), Member { shape, required });
            }
        }
        Shape::Record(members)
    }

    fn below(&mut self, schemas: &[&'a Value], depth: usize) -> Reading {
        let mut facets = Facets::default();
        for schema in schemas {
            self.gather(schema, &mut facets);
        }
        self.read(facets, depth + 1)
    }

    /// Consumes work; returns false if the limit is reached.
    fn spend(&mut self, work: usize) -> bool {
        match self.work.checked_sub(work) {
            Some(left) => self.work = left,
            None => self.work = 0,
        }
        self.work > 0
    }
}

impl<'a> Facets<'a> {
    /// Adds the keywords of one schema.
    fn add(&mut self, keywords: &'a Map<String, Value>) {
        match keywords.get("type") {
            None => {}
            Some(Value::String(name)) => self.narrow_types(BTreeSet::from([name.as_str()])),
            Some(names) => {
                self.narrow_types(names.as_array().into_iter().flatten().filter_map(Value::as_str).collect())
            }
        }
        let listed = |values: &[Value]| !values.contains(&Value::Null);
        self.lists_no_null |= keywords.get("const").is_some_and(|value| !value.is_null());
        self.lists_no_null |= keywords.get("enum").and_then(Value::as_array).is_some_and(|values| listed(values));
        for (name, schema) in keywords.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.properties.entry(name).or_default().push(schema);
        }
        self.required.extend(list(keywords, "required").iter().filter_map(Value::as_str));
        self.items.extend(keywords.get("items"));
        self.is_tuple |= keywords.contains_key("prefixItems");
        self.is_partial |= keywords.contains_key("$dynamicRef");
        self.alternatives.extend(["anyOf", "oneOf"].iter().filter_map(|&name| keywords.get(name)?.as_array()));
    }

    /// Intersects the allowed types with these. Every integer is a number.
    fn narrow_types(&mut self, named: BTreeSet<&'a str>) {
        let Some(allowed) = self.types.take() else {
            self.types = Some(named);
            return;
        };
        let is_in = |types: &BTreeSet<&str>, name: &str| {
            types.contains(name) || (name == "integer" && types.contains("number"))
        };
        let both = allowed.union(&named).filter(|name| is_in(&allowed, name) && is_in(&named, name));
        self.types = Some(both.copied().collect());
    }

    fn admit(&self, name: &str) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(name))
    }
}

impl Reading {
    /// The shape of a value that matches either.
    fn or(self, other: Self) -> Self {
        let shape = match (self.shape, other.shape) {
            (Some(left), Some(right)) => Some(common(left, right)),
            (left, right) => left.or(right),
        };
        Self { shape, admits_null: self.admits_null || other.admits_null }
    }
}

/// The common shape of two shapes.
fn common(left: Shape, right: Shape) -> Shape {
    match (left, right) {
        (Shape::Record(left), Shape::Record(right)) => Shape::Record(common_members(left, right)),
        (Shape::Set(left), Shape::Set(right)) => Shape::Set(Box::new(common(*left, *right))),
        (left, right) if left == right => left,
        _ => Shape::Json,
    }
}

/// A member that only one of the two has is optional.
fn common_members(left: BTreeMap<String, Member>, mut right: BTreeMap<String, Member>) -> BTreeMap<String, Member> {
    let mut members = BTreeMap::new();
    for (name, member) in left {
        let member = match right.remove(&name) {
            Some(other) => {
                Member { shape: common(member.shape, other.shape), required: member.required && other.required }
            }
            None => Member { required: false, ..member },
        };
        members.insert(name, member);
    }
    members.extend(right.into_iter().map(|(name, member)| (name, Member { required: false, ..member })));
    members
}

/// Replaces records beyond the member limit.
fn bounded(shape: Shape, left: &mut usize) -> Shape {
    match shape {
        Shape::Record(members) => {
            let Some(rest) = left.checked_sub(members.len()) else { return Shape::Json };
            *left = rest;
            let member = |(name, member): (String, Member)| {
                (name, Member { shape: bounded(member.shape, left), required: member.required })
            };
            Shape::Record(members.into_iter().map(member).collect())
        }
        Shape::Set(item) => Shape::Set(Box::new(bounded(*item, left))),
        other => other,
    }
}

fn list<'a>(keywords: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    keywords.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
