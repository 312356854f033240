//! Paths of a document as templates of the registry, whose placeholders have names that fit.

use std::collections::BTreeSet;

use toolgate_model::service::PathTemplate;
use toolgate_model::text::check_identifier;

use super::text::identifier;

/// The path as the registry writes it, and the names of its placeholders.
pub(super) fn template(path: &str) -> Result<(String, BTreeSet<String>), String> {
    let mut text = String::new();
    let mut rest = path;
    while let Some((literal, behind)) = rest.split_once('{') {
        let (name, after) = behind.split_once('}').ok_or("its path has a { without its }")?;
        text.push_str(&format!("{literal}{{{}}}", placeholder(name)));
        rest = after;
    }
    text.push_str(rest);
    let template = PathTemplate::parse(&text).map_err(|reason| format!("its path {reason}"))?;
    let placeholders = template.placeholders().into_iter().map(str::to_owned).collect();
    Ok((text, placeholders))
}

/// The name of the placeholder for a parameter of the path.
pub(super) fn placeholder(name: &str) -> String {
    if check_identifier(name).is_ok() {
        return name.to_owned();
    }
    identifier(name).unwrap_or_else(|| "value".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_have_names_that_fit() {
        let (path, names) = template("/a/{b c}/{+d}.json").unwrap();
        assert_eq!(path, "/a/{b_c}/{d}.json");
        assert!(names.contains("b_c") && names.contains("d"));
        for bad in ["a", "/a?b=c", "/a/{b", "/a//b", "/#A"] {
            assert!(template(bad).is_err(), "{bad}");
        }
    }
}
