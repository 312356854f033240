//! Files that are meant to hurt, or that readers would interpret differently.

use super::*;

fn only(text: &str, expected: &str) {
    let found = problems(text);
    assert!(found.iter().any(|problem| problem.contains(expected)), "{expected}: {found:?}");
    assert!(found.len() <= PROBLEM_LIMIT);
}

#[test]
fn anchors_aliases_merge_keys_and_tags_are_refused_before_anything_is_expanded() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    only(&bomb, "1:9: anchors and aliases");
    only("name: w\nversion: *x\n", "2:10");
    only("name: w\nversion: '1'\nagents:\n  a: {}\n  <<: {b: {}}\n", "5:3: merge keys");
    only("name: !!str w\nversion: '1'\n", "tags such as");
    only("!!map\nname: w\n", "tags such as");
}

#[test]
fn duplicate_keys_are_refused_at_every_depth() {
    only("name: w\nversion: '1'\nname: v\n", "3:1: `name` is given twice");
    only(
        "name: w\nversion: '1'\ntools: {vault: m, grants: {a: [{service: s, scopes: [x], service: t}]}}\n",
        "3:58: `service` is given twice",
    );
}

#[test]
fn large_deep_and_wide_files_are_refused() {
    only(&format!("name: w\n# {}\n", "x".repeat(10 * 1024 * 1024)), "the limit is 1048576");
    only(&format!("a: {}{}\n", "[".repeat(100), "]".repeat(100)), "nested deeper than 64 levels");
    only(&"[".repeat(100_000), "nested deeper than 64 levels");
    let deep: String = (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    only(&deep, "nested deeper than 64 levels");
    only(&format!("a: [{}]\n", "1,".repeat(300_000)), "more than 200000 values");
    let agents: String = (0..1_100).map(|agent| format!("  a{agent}: {{}}\n")).collect();
    only(&format!("name: w\nversion: '1'\nagents:\n{agents}"), "the limit is 1000");
}

#[test]
fn what_is_not_one_yaml_mapping_is_refused() {
    only("", "the file is empty");
    only("# nothing\n", "the file is empty");
    only("- a\n", "it must be a mapping");
    only("just text\n", "it must be a mapping");
    only("name: w\nversion: '1'\n---\nname: v\n", "3:1: a file has one document");
    only("name: [\n", "this is not valid YAML");
    only("name: \"a\u{0}b\"\nversion: '1'\n", "this is not valid YAML");
    only("{a: b}: c\n", "a key must be a text");
    only("1: c\n", "a key must be a text and is a number");
}

#[test]
fn numbers_that_readers_disagree_about_are_refused() {
    for number in ["0x10", "017", "1e999", "18446744073709551616", ".inf"] {
        let text = format!(
            "name: w\nversion: '1'\ntools: {{vault: v, grants: {{a: [{{service: s, scopes: [x], constraints: \
             {{amount_max: {number}}}}}]}}}}\n"
        );
        assert!(!problems(&text).is_empty(), "{number}");
    }
}

#[test]
fn no_more_problems_are_reported_than_anybody_reads() {
    let unknown: String = (0..500).map(|number| format!("unknown{number}: 1\n")).collect();
    assert_eq!(problems(&unknown).len(), PROBLEM_LIMIT);
}
