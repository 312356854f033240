//! Names of tools for clients: fit, different for different tools, and readable again.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::btree_set;
use proptest::prelude::*;

use super::*;

fn alias(service: &str, tool: &str) -> String {
    ToolAlias::of(&ServiceName::parse(service).unwrap(), &ToolName::parse(tool).unwrap()).to_string()
}

fn is_fit(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=MAX_LENGTH).contains(&name.len()) && name.bytes().all(fits)
}

#[test]
fn ordinary_names_stay_readable() {
    for (service, tool, expected) in [
        ("payments", "charges.read", "payments_charges__read"),
        ("github", "create_issue", "github_create_issue"),
        ("context7", "resolve-library-id", "context7_resolve-library-id"),
        ("a-b", "c", "a-b_c"),
    ] {
        assert_eq!(alias(service, tool), expected);
        let (service, tool) = (ServiceName::parse(service).unwrap(), ToolName::parse(tool).unwrap());
        assert_eq!(read(expected), Some(Meaning::Tool(service, tool)));
    }
}

#[test]
fn names_that_could_be_read_in_two_ways_end_with_a_hash() {
    let long = "x".repeat(128);
    for (service, tool) in
        [("google_drive", "list"), ("a.b", "c"), ("a", "b__c"), ("a", "b._c"), ("a", "_b"), ("a", "b:c"), ("a", &long)]
    {
        let name = alias(service, tool);
        assert!(name.contains("___") && is_fit(&name), "{name}");
        assert_eq!(read(&name), Some(Meaning::Hashed));
    }
    assert_eq!(alias("google_drive", "list"), alias("google_drive", "list"));
    assert_ne!(alias("google_drive", "list"), alias("google", "drive_list"));
}

#[test]
fn what_no_tool_is_called_is_not_read() {
    for name in ["", "a.b", "a b", "_a", "a_", "a:b", "é", &"x".repeat(65), "a____b\n"] {
        assert_eq!(read(name), None, "{name}");
    }
    assert_eq!(read("http-fetch"), Some(Meaning::BuiltIn));
    assert_eq!(ToolAlias::of_built_in("http.fetch").as_str(), "http-fetch");
}

#[test]
fn a_prompt_has_the_name_that_a_tool_of_its_name_would_have() {
    let service = ServiceName::parse("test").unwrap();
    let of_prompt = |upstream: &str| ToolAlias::of_upstream(&service, upstream).to_string();
    assert_eq!(of_prompt("simple_prompt"), "test_simple_prompt");
    let Some(Meaning::Tool(found, name)) = read("test_simple_prompt") else { panic!("readable") };
    assert_eq!((found, upstream_name(&name)), (service.clone(), Some("simple_prompt")));
    // What has characters that no tool has is found by comparing.
    let changed = of_prompt("files/summarize it");
    assert!(is_fit(&changed) && changed.starts_with("test_files_summarize_it-"), "{changed}");
    let Some(Meaning::Tool(_, name)) = read(&changed) else { panic!("readable") };
    assert_eq!(upstream_name(&name), None);
    for upstream in ["", "é", "mcp.x", "a__b", &"x".repeat(300)] {
        let name = of_prompt(upstream);
        assert!(is_fit(&name) && may_be_of(&name, &service), "{name}");
        assert!(!may_be_of(&name, &ServiceName::parse("other").unwrap()), "{name}");
    }
}

/// Names from few characters, so that there are many that look alike.
fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[ab._-]{1,6}", "[ab._:@-]{1,40}", "[a-z]{1,8}[._][a-z]{1,8}", "[aZ09]{60,128}"]
}

proptest! {
    #[test]
    fn two_tools_of_any_catalog_never_share_a_name(tools in btree_set((name(), name()), 1..60)) {
        let named: BTreeSet<String> = tools.iter().map(|(service, tool)| alias(service, tool)).collect();
        prop_assert_eq!(named.len(), tools.len());
        prop_assert!(named.iter().all(|name| is_fit(name)));
    }

    #[test]
    fn a_name_leads_back_to_its_tool(tools in btree_set((name(), name()), 1..60)) {
        let table: BTreeMap<String, &(String, String)> =
            tools.iter().map(|tool| (alias(&tool.0, &tool.1), tool)).collect();
        for (name, (service, tool)) in &table {
            match read(name) {
                Some(Meaning::Tool(found, named)) => {
                    prop_assert_eq!((found.as_str(), named.as_str()), (service.as_str(), tool.as_str()));
                }
                other => prop_assert_eq!(other, Some(Meaning::Hashed)),
            }
        }
    }

    #[test]
    fn a_name_that_is_read_is_the_name_of_what_it_says(name in "[ab_-]{1,12}") {
        if let Some(Meaning::Tool(service, tool)) = read(&name) {
            prop_assert_eq!(ToolAlias::of(&service, &tool).to_string(), name);
        }
    }

    #[test]
    fn a_built_in_tool_shares_no_name_with_a_tool_of_a_service(service in name(), tool in name(), built_in in name()) {
        let service_tool = alias(&service, &tool);
        prop_assert_ne!(service_tool, ToolAlias::of_built_in(&built_in).to_string());
    }
}
