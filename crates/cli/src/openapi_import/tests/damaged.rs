//! Whatever a document says in whatever place, the import ends, and what it gives can be registered.

use super::*;

/// All pointers of a document, from the top.
fn pointers(value: &Value, pointer: &str, found: &mut Vec<String>) {
    found.push(pointer.to_owned());
    let part = Part { value, pointer: pointer.to_owned() };
    for (_, below) in part.members() {
        pointers(below.value, &below.pointer, found);
    }
    for below in part.elements() {
        pointers(below.value, &below.pointer, found);
    }
}

#[test]
fn no_value_in_no_place_breaks_an_import_or_its_definition() {
    let whole = shop();
    let mut places = Vec::new();
    pointers(&whole, "", &mut places);
    assert!(places.len() > 300, "{}", places.len());
    let values = [
        json!(null),
        json!("a"),
        json!(-1),
        json!([{}]),
        json!({"$ref": "#/components/schemas/Order"}),
        json!({"$ref": "#/nowhere"}),
    ];
    for (number, place) in places.iter().enumerate() {
        let value = &values[number % values.len()];
        let mut document = whole.clone();
        *document.pointer_mut(place).unwrap() = value.clone();
        if let Ok(imported) = import(&document, &ImportOptions::default()) {
            let missing = imported.findings.count(Kind::Operation);
            assert_eq!(imported.operations, imported.definition.tools.len() + missing, "{place} {value}");
            let read = ServiceDefinition::from_json(&imported.definition.to_json());
            assert_eq!(read.as_ref(), Ok(&imported.definition), "{place} {value}");
        }
    }
}

#[test]
fn references_that_go_in_circles_end() {
    let components = json!({
        "schemas": {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"},
            "C": {"allOf": [{"$ref": "#/components/schemas/C"}]}},
        "parameters": {"P": {"$ref": "#/components/parameters/P"}},
    });
    for name in ["A", "C"] {
        let schema = json!({"$ref": format!("#/components/schemas/{name}")});
        let body = json!({"content": {"application/json": {"schema": schema}}});
        let refused = of_operation("post", json!({"requestBody": body}), components.clone());
        assert_eq!((refused.definition.tools.len(), refused.findings.count(Kind::Operation)), (0, 1), "{name}");
        let parameters = json!([{"name": "q", "in": "query", "schema": schema}]);
        let refused = of_operation("get", json!({"parameters": parameters}), components.clone());
        assert_sound(&refused);
        let responses = json!({"200": {"description": "a", "content": {"application/json": {"schema": schema}}}});
        let answered = of_operation("get", json!({"responses": responses}), components.clone());
        assert_eq!((answered.definition.tools.len(), answered.findings.count(Kind::ResponseSchema)), (1, 1), "{name}");
    }
    let parameters = json!([{"$ref": "#/components/parameters/P"}]);
    let imported = of_operation("get", json!({"parameters": parameters}), components);
    assert_found(&imported, Kind::Parameter, "/paths/~1a/get/parameters/0");
}

#[test]
fn texts_of_a_document_cannot_leave_their_place_in_the_yaml() {
    let hostile = "a\u{1b}[31m\n---\nservice: other # \u{202e}\u{85}\u{fffe}\u{e0001} '\" : {}";
    let operation = json!({
        "summary": hostile, "description": hostile, "tags": [hostile],
        "parameters": [{"name": hostile, "in": "query", "description": hostile,
            "schema": {"type": "object", "properties": {hostile: {"type": "string"}}}},
            {"name": "no", "in": "query", "description": hostile, "schema": {"enum": [hostile, "yes", "1", ""]}}],
        "responses": {"200": {"description": hostile, "content": {"application/json": {
            "schema": {"type": "object", "properties": {"no": {"default": hostile}, "~": {}, "": {}, "1": {}}}}}}},
    });
    let schemes = json!({"securitySchemes": {hostile: {"type": "http", "scheme": "bearer", "description": hostile}}});
    let imported = of_operation("get", operation, schemes);
    assert_sound(&imported);
    assert_eq!(imported.definition.tools.len(), 1);
    let text = yaml::write(&imported);
    let is_plain = |letter: char| letter == '\n' || !(letter.is_control() || crate::output::is_deceptive(letter));
    assert!(text.chars().all(is_plain), "{text:?}");
}
