//! A definition from an OpenAPI document: made without a gate, applied unchanged, called as the document says.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Person, Said, setup};

const LIBRARY: &str = "\
openapi: 3.0.3
info: {title: Library, version: '2'}
servers: [{url: 'https://api.library.example/v2'}]
security: [{key: []}]
paths:
  /books/{isbn}:
    get:
      operationId: books/get
      summary: Look at a book
      tags: [Books]
      parameters: [{name: isbn, in: path, required: true, schema: {type: string}}]
      responses: {'200': {description: The book}, '404': {description: No such book}}
  /covers:
    post:
      operationId: covers/add
      requestBody: {required: true, content: {image/png: {}}}
      responses: {'201': {description: Added}}
components:
  securitySchemes:
    key: {type: apiKey, in: header, name: X-API-Key}
";

/// The command, where no gate is.
fn imports(arguments: &[&str], input: &str) -> Said {
    // Held until the command has ended: its home goes with it.
    let setup = setup();
    let mut command = setup.command();
    command.args(["service", "import", "openapi"]).args(arguments);
    Said::of(command, input)
}

#[test]
fn the_definition_goes_to_standard_output_and_the_report_to_standard_error() {
    let said = imports(&["-"], LIBRARY);
    assert_eq!(said.code, 0, "{}", said.all());
    assert!(said.stdout.contains("service: library\nversion: \"2\"\n"), "{}", said.stdout);
    assert!(said.stdout.contains("    safety_tier: read  # proposed\n"), "{}", said.stdout);
    assert!(said.stderr.starts_with("2 operations: 1 tools, 1 omitted."), "{}", said.stderr);
    for words in ["auth_type api_key", "/paths/~1covers/post", "image/png", "1 error-response", "--report FILE"] {
        assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
    }
    let value = imports(&["-", "--json", "--service", "books", "--version", "7"], LIBRARY).json();
    assert_eq!((&value["service"], &value["version"]), (&json!("books"), &json!("7")));
    assert_eq!(
        (&value["operations"], &value["tools"], &value["counts"]["operation"]),
        (&json!(2), &json!(1), &json!(1))
    );
    assert_eq!(value["definition"]["tools"]["books.get"]["scope"], "books.read");
    assert_eq!(value["credentials"][0]["metadata"], json!({"auth": {"header_name": "X-API-Key"}}));
}

#[test]
fn files_are_written_once_and_reports_in_full() {
    let setup = setup();
    let path = |name: &str| setup.home().join(name).to_str().unwrap().to_owned();
    let (definition, report) = (path("library.json"), path("report.json"));
    let arguments = ["-", "--output", &definition, "--report", &report];
    let said = imports(&arguments, LIBRARY);
    assert_eq!(said.stdout.trim(), format!("{definition}: library 2, 1 tools"), "{}", said.all());
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&definition).unwrap()).unwrap();
    assert_eq!(written["base_url"], "https://api.library.example/v2");
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    let findings = written["findings"].as_array().unwrap();
    let operation = json!({"kind": "operation", "weight": "dropped", "pointer": "/paths/~1covers/post",
        "note": "its body is image/png, which is not supported"});
    assert!(findings.contains(&operation), "{findings:#?}");
    let again = imports(&arguments, LIBRARY);
    assert!(again.code == 1 && again.stderr.contains("already exists"), "{}", again.all());
}

#[test]
fn a_document_of_which_nothing_can_be_used_is_a_failure_with_a_reason() {
    for (text, words) in [
        ("swagger: '2.0'", "not an OpenAPI document"),
        ("openapi: 3.2.0", "convert it to 3.0 or 3.1"),
        ("openapi: [", "standard input: "),
        ("{\"openapi\": \"3.1.0\", \"openapi\": \"3.1.0\"}", "duplicate key"),
        ("openapi: 3.1.0\ninfo: {title: a, version: b}", "none of the 0 operations can become a tool"),
    ] {
        let said = imports(&["-"], text);
        assert!(said.code == 1 && said.stdout.is_empty() && said.stderr.contains(words), "{words}: {}", said.all());
    }
    let said = imports(&["-", "--json"], "openapi: 3.1.0\ninfo: {title: a, version: b}\npaths: {/a: {trace: {}}}");
    let value: Value = serde_json::from_str(&said.stderr).unwrap();
    assert_eq!((said.code, &value["status"], &value["counts"]["operation"]), (1, &json!("failed"), &json!(1)));
    for bad in [["--service", "a b"], ["--version", ""], ["--base-url", "ftp://a"]] {
        assert_eq!(imports(&[&["-"], &bad[..]].concat(), LIBRARY).code, 2, "{bad:?}");
    }
}

#[test]
fn a_service_of_many_tools_is_applied_unchanged() {
    let mut document = LIBRARY.split("paths:").next().unwrap().replace("security: [{key: []}]\n", "") + "paths:\n";
    for number in 0..1_100 {
        writeln!(document, "  /p{number}/{{id}}: {{get: {{operationId: p/{number}, responses: {{}}}}}}").unwrap();
    }
    let gate = setup().start();
    let person = Person::administrator(&gate);
    let file = gate.setup().home().join("many.yaml");
    let name = file.to_str().unwrap();
    assert_eq!(imports(&["-", "--output", name], &document).code, 0);
    assert_eq!(person.reads(&["service", "apply", name]).trim(), format!("{name}: library 2, 1100 tools: created"));
    assert_eq!(person.reads(&["service", "apply", name]).trim(), format!("{name}: library 2, 1100 tools: unchanged"));
}
