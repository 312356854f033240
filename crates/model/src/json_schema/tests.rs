//! What a schema allows is what its type reads.

use schemars::schema_for;
use serde::de::DeserializeOwned;

use super::*;
use crate::grant::GrantStatus;
use crate::permission::Permission;
use crate::principal::PrincipalKind;

/// Every word of the schema's `enum` is read, and this other one is not.
fn reads_its_words<T: JsonSchema + DeserializeOwned>() {
    let schema = schema_for!(T).to_value();
    let words = schema["enum"].as_array().unwrap();
    assert!(!words.is_empty());
    for word in words {
        assert!(serde_json::from_value::<T>(word.clone()).is_ok(), "{word} of {}", T::schema_name());
    }
    assert!(serde_json::from_value::<T>(json!("something else")).is_err());
}

#[test]
fn the_words_of_a_schema_are_those_of_its_type() {
    reads_its_words::<AuthType>();
    reads_its_words::<CredentialStatus>();
    reads_its_words::<GrantStatus>();
    reads_its_words::<InvocationStatus>();
    reads_its_words::<Permission>();
    reads_its_words::<PrincipalKind>();
}

#[test]
fn the_pattern_of_an_id_fits_the_ids_of_its_kind() {
    let fits = |schema: Schema, text: &str| {
        let validator = jsonschema::validator_for(&schema.to_value()).unwrap();
        validator.is_valid(&json!(text))
    };
    let vault = VaultId::new(Timestamp::EPOCH, [255; 10]).to_string();
    assert!(fits(schema_for!(VaultId), &vault));
    assert!(!fits(schema_for!(GrantId), &vault));
    assert!(!fits(schema_for!(VaultId), &vault.to_lowercase()));
}

#[test]
fn the_pattern_of_a_text_refuses_what_its_type_refuses() {
    let validator = jsonschema::validator_for(&schema_for!(Line).to_value()).unwrap();
    let names = jsonschema::validator_for(&schema_for!(TenantId).to_value()).unwrap();
    for text in ["", "a", "two words", "a\nb", "a\u{202e}b", "a\u{0}", "acme", "a/b", "user:ann@acme.eu-1_x"] {
        assert_eq!(validator.is_valid(&json!(text)), Line::parse(text).is_ok(), "{text:?}");
        assert_eq!(names.is_valid(&json!(text)), TenantId::parse(text).is_ok(), "{text:?}");
    }
}
