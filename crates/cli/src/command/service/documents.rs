//! Service definitions from files: YAML 1.2 with one or more documents, or JSON. Ambiguous input is refused, and every error
//! names the file and the position.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Options, UserMessageFormatter, alias_limits, budget, options};
use toolgate_model::service::{DefinitionError, ServiceDefinition};
use toolgate_model::{strict_json, strict_yaml};

use super::Failure;
use crate::output::clean;
use crate::prompt;

/// Enough for a service of two thousand tools with all their schemas.
const FILE_LIMIT: u64 = 32 * 1024 * 1024;

pub(super) struct Document {
    /// The file, and the number of the document if there are several.
    pub(super) place: String,
    pub(super) definition: ServiceDefinition,
}

pub(super) fn read(files: &[PathBuf]) -> Result<Vec<Document>, Failure> {
    let mut documents: Vec<Document> = Vec::new();
    for file in files {
        let (name, text) = text_of(file)?;
        for document in parse(&name, &text).map_err(Failure::Said)? {
            let same = |other: &&Document| {
                let (one, other) = (&document.definition, &other.definition);
                one.service == other.service && one.version == other.version
            };
            if let Some(other) = documents.iter().find(same) {
                return Err(Failure::Said(format!(
                    "{}: {} {} is already defined in {}; remove one of them",
                    document.place, document.definition.service, document.definition.version, other.place
                )));
            }
            documents.push(document);
        }
    }
    Ok(documents)
}

pub(super) fn parse(name: &str, text: &str) -> Result<Vec<Document>, String> {
    let is_json = Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let values = if is_json {
        vec![strict_json::parse(text.as_bytes()).map_err(|error| format!("{name}: {error}"))?]
    } else {
        let values = serde_saphyr::from_multiple_with_options::<Value>(text, yaml())
            .map_err(|error| format!("{name}: {}", clean(&error.render_with_formatter(&UserMessageFormatter))))?;
        strict_yaml::check_numbers(text).map_err(|error| format!("{name}: {error}"))?;
        values
    };
    if values.is_empty() {
        return Err(format!("{name}: no definition; a definition has service, version and tools"));
    }
    let several = values.len() > 1;
    let document = |(number, value): (usize, Value)| {
        let place = if several { format!("{name}, document {number}") } else { name.to_owned() };
        match ServiceDefinition::from_json(&value) {
            Ok(definition) => Ok(Document { place, definition }),
            Err(error) => Err(format!("{place}: {error}{}", hint(&value, &error, is_json))),
        }
    };
    (1..).zip(values).map(document).collect()
}

/// In YAML it is easy to miss that `2024` is a number.
fn hint(value: &Value, error: &DefinitionError, is_json: bool) -> &'static str {
    let found = error.path.split('.').try_fold(value, |value, name| value.get(name));
    let mistaken = found.is_some_and(|found| found.is_number() || found.is_boolean() || found.is_null());
    if mistaken && !is_json && error.reason.contains("string") { "; put it in quotes" } else { "" }
}

/// Disables what makes YAML dangerous or ambiguous: alias bombs, merge keys, duplicate keys, tags, `yes` as true.
fn yaml() -> Options {
    options! {
        budget: budget! {
            max_events: 6_000_000,
            max_nodes: 3_000_000,
            max_depth: strict_json::MAX_DEPTH,
            flow_nesting_limit: strict_json::MAX_DEPTH,
            max_documents: 256,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_recorded_anchor_events: 100_000,
            max_recorded_anchor_bytes: 1024 * 1024,
            max_total_scalar_bytes: 32 * 1024 * 1024,
        },
        alias_limits: alias_limits! {
            max_total_replayed_events: 100_000,
            max_replay_stack_depth: 16,
            max_alias_expansions_per_anchor: 1_000,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

fn text_of(file: &Path) -> Result<(String, String), Failure> {
    if file.as_os_str() == "-" {
        return Ok(("standard input".to_owned(), prompt::standard_input()?.as_str().to_owned()));
    }
    let name = file.display().to_string();
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(|error| Failure::io(&name, error))?;
    let read = opened.take(FILE_LIMIT + 1).read_to_end(&mut bytes).map_err(|error| Failure::io(&name, error))?;
    if u64::try_from(read).unwrap_or(u64::MAX) > FILE_LIMIT {
        return Err(Failure::Said(format!("{name}: longer than {FILE_LIMIT} bytes; split it into several files")));
    }
    let text = String::from_utf8(bytes).map_err(|_| Failure::Said(format!("{name}: not valid UTF-8")))?;
    Ok((name, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: &str = "service: shop\nversion: '1'\ntools:\n  orders.read:\n    http: {method: GET, path: /orders}\n";

    fn refusal(name: &str, text: &str) -> String {
        parse(name, text).err().unwrap_or_else(|| panic!("{text} was taken"))
    }

    #[test]
    fn yaml_and_json_say_the_same() {
        let json = r#"{"service": "shop", "version": "1", "tools": {"orders.read": {"http": {"method": "GET", "path": "/orders"}}}}"#;
        let one = parse("shop.yaml", SHOP).unwrap();
        for (name, text) in [("shop.json", json), ("standard input", json), ("a.yml", &format!("---\n{SHOP}...\n"))] {
            assert_eq!(parse(name, text).unwrap()[0].definition, one[0].definition, "{name}");
        }
        assert_eq!(one[0].place, "shop.yaml");
    }

    #[test]
    fn several_documents_are_numbered() {
        let text = format!("{SHOP}---\n{}", SHOP.replace("'1'", "'2'"));
        let places: Vec<String> =
            parse("shop.yaml", &text).unwrap().into_iter().map(|document| document.place).collect();
        assert_eq!(places, ["shop.yaml, document 1", "shop.yaml, document 2"]);
        let error = refusal("shop.yaml", &format!("{SHOP}---\nservice: shop\ntools: {{}}\n"));
        assert_eq!(error, "shop.yaml, document 2: `version` is missing");
    }

    #[test]
    fn what_two_readers_could_understand_differently_is_refused_with_its_place() {
        for (text, words) in [
            (format!("{SHOP}service: other\n"), "service"),
            (SHOP.replace("{method: GET", "{<<: {a: b}, method: GET"), "merge"),
            (SHOP.replace("'1'", "!include other.yaml"), "tag"),
            (SHOP.replace("'1'", ".nan"), "line 2"),
            (SHOP.replace("tools:", "\ttools:"), "line 3"),
            (format!("{SHOP}{}", "a: [".repeat(100)), "line"),
        ] {
            let error = refusal("shop.yaml", &text);
            assert!(error.starts_with("shop.yaml: ") && error.contains(words) && !error.contains('\n'), "{error}");
        }
        let twice = refusal("shop.json", r#"{"service": "shop", "service": "other"}"#);
        assert!(twice.contains("duplicate key \"service\""), "{twice}");
        // In YAML 1.2 this is a text, and so it is no boolean here.
        let error = refusal("shop.yaml", &SHOP.replace("http:", "idempotent: yes\n    http:"));
        assert!(error.contains("`tools.orders.read.idempotent` must be true or false"), "{error}");
    }

    #[test]
    fn a_number_that_would_lose_digits_is_refused_in_yaml_as_in_json() {
        let limit = "parameters: {type: object, properties: {account: {maximum: NUMBER}}}\n    http:";
        let with = |number: &str| SHOP.replace("http:", &limit.replace("NUMBER", number));
        for number in ["18446744073709551616", "1e-400", "5000.00000000000000000000001"] {
            let error = refusal("shop.yaml", &with(number));
            assert!(
                error.starts_with("shop.yaml: the number at line 5, column ") && error.contains("exactly"),
                "{error}"
            );
            let json = format!(r#"{{"service": "shop", "version": {number}}}"#);
            assert!(refusal("shop.json", &json).contains("than can be represented exactly"));
        }
        let definition = &parse("shop.yaml", &with("9007199254740993")).unwrap()[0].definition;
        let stored = toolgate_model::canonical::to_canonical_string(&definition.to_json());
        assert!(stored.contains(r#""maximum":9007199254740993"#), "{stored}");
    }

    #[test]
    fn a_bomb_of_aliases_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let above = format!("*a{}", level - 1);
            text.push_str(&format!("a{level}: &a{level} [{}]\n", vec![above; 10].join(", ")));
        }
        let error = refusal("bomb.yaml", &text);
        assert!(error.starts_with("bomb.yaml: ") && error.contains("too complex"), "{error}");
    }

    #[test]
    fn a_number_that_should_be_a_text_is_explained() {
        let error = refusal("shop.yaml", &SHOP.replace("'1'", "2024"));
        assert_eq!(error, "shop.yaml: `version` must be a string; put it in quotes");
        let error = refusal("shop.yaml", "# nothing\n");
        assert_eq!(error, "shop.yaml: no definition; a definition has service, version and tools");
    }
}
