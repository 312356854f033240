//! Reads the secret fields of a credential, from prompts or standard input. Never from arguments, which every user of the
//! machine can see.

use serde::Serialize;
use toolgate_model::credential::{AuthType, material_from_json};
use toolgate_model::secret::Material;
use toolgate_model::strict_json;
use zeroize::Zeroizing;

use super::Failure;
use crate::prompt;

pub(super) fn read(auth_type: AuthType, from_json: bool) -> Result<Material, Failure> {
    if from_json {
        return read_json();
    }
    match auth_type.usual_fields() {
        [] => Err(Failure::Usage(format!(
            "a credential of type {} has no fixed fields; pass them as a JSON object on standard input with --material-stdin",
            auth_type.as_str()
        ))),
        [_, _, ..] if !prompt::interactive() => Err(Failure::Usage(format!(
            "a credential of type {} has several fields; pass them as a JSON object on standard input with --material-stdin",
            auth_type.as_str()
        ))),
        fields => ask(fields),
    }
}

/// A request body with these members and the material.
pub(super) fn body_with(members: &impl Serialize, material: &Material) -> Zeroizing<Vec<u8>> {
    let head = serde_json::to_string(members).unwrap_or_default();
    let plaintext = material.to_plaintext();
    // Allocated once: a reallocation would leave a copy that is not wiped.
    let mut body = Zeroizing::new(Vec::with_capacity(head.len() + plaintext.len() + 16));
    body.extend_from_slice(head.strip_suffix('}').unwrap_or(&head).as_bytes());
    if head != "{}" {
        body.push(b',');
    }
    body.extend_from_slice(b"\"material\":");
    body.extend_from_slice(&plaintext);
    body.push(b'}');
    body
}

fn ask(fields: &[&str]) -> Result<Material, Failure> {
    let mut material = Material::new();
    for field in fields {
        if let Some(secret) = prompt::secret(field)? {
            material.insert((*field).to_owned(), secret);
        }
    }
    if material.is_empty() {
        return Err(Failure::Said("no secret was entered; nothing was changed".to_owned()));
    }
    Ok(material)
}

fn read_json() -> Result<Material, Failure> {
    let text = prompt::standard_input()?;
    let wrong =
        |reason: String| Failure::Said(format!("standard input must be a JSON object of secret fields: {reason}"));
    let value = strict_json::parse(text.as_bytes()).map_err(|error| wrong(error.to_string()))?;
    let material = material_from_json(value).map_err(|error| wrong(error.to_string()))?;
    if material.is_empty() { Err(wrong("it is empty".to_owned())) } else { Ok(material) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolgate_model::secret::Secret;

    use super::*;

    #[test]
    fn material_becomes_part_of_a_body_that_is_json() {
        let mut material = Material::new();
        material.insert("api_key".to_owned(), Secret::new("a\"}b".to_owned()));
        for members in [json!({}), json!({"label": "x}", "metadata": {"a": {}}})] {
            let Value::Object(mut expected) = members else { panic!("an object") };
            let body: Value = serde_json::from_slice(&body_with(&expected, &material)).unwrap();
            expected.insert("material".to_owned(), json!({"api_key": "a\"}b"}));
            assert_eq!(body, Value::Object(expected));
        }
    }
}
