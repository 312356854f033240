//! Names of tools: from the operation id, or else method and path. Operations with the same name all get a suffix from method
//! and path, so that no name depends on the order of operations.

use std::collections::BTreeMap;

use toolgate_model::service::ToolName;

use super::Import;
use super::finding::Kind;
use super::operation::Operation;
use super::text::{identifier, with_suffix};

impl<'a> Import<'a> {
    /// The names of these operations, in their order, each once.
    pub(super) fn names(&mut self, operations: &[Operation<'a>]) -> Vec<ToolName> {
        let plain: Vec<String> = operations.iter().map(|operation| self.plain_name(operation)).collect();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for name in &plain {
            *counts.entry(name.as_str()).or_default() += 1;
        }
        let mut names = Vec::new();
        for (operation, plain) in operations.iter().zip(&plain) {
            let suffix = format!(".{:08x}", digest(operation.method, operation.path));
            let mut name = plain.clone();
            if counts.get(plain.as_str()).is_some_and(|count| *count > 1) {
                name = with_suffix(plain, &suffix);
                self.findings.add(Kind::NameCollision, &operation.part.pointer, format!("{plain} is {name}"));
            }
            names.push(distinct(name, &names));
        }
        names
    }

    fn plain_name(&mut self, operation: &Operation<'a>) -> String {
        let id = operation.part.text("operationId").filter(|id| !id.trim().is_empty());
        let fitting = id.and_then(identifier);
        if let Some((id, name)) = id.zip(fitting.as_deref()).filter(|(id, name)| id != name) {
            self.findings.add(Kind::NameRewritten, &operation.part.pointer, format!("{id} is {name}"));
        }
        let from_path = || identifier(&format!("{}{}", operation.method, operation.path.replace(['{', '}'], "")));
        fitting.or_else(from_path).unwrap_or_else(|| operation.method.to_owned())
    }
}

/// The name, or one like it that is not taken.
fn distinct(name: String, taken: &[ToolName]) -> ToolName {
    let mut number = 1;
    let mut text = name.clone();
    loop {
        match ToolName::parse(&text) {
            Ok(parsed) if !taken.contains(&parsed) => return parsed,
            _ => {
                number += 1;
                text = with_suffix(&name, &format!(".{number}"));
            }
        }
    }
}

/// FNV-1a over method and path: short, stable, and nothing depends on it but a name.
fn digest(method: &str, path: &str) -> u32 {
    let bytes = method.bytes().chain([b' ']).chain(path.bytes());
    bytes.fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
