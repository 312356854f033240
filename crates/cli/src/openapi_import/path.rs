//! Converts paths to templates of the registry, with valid placeholder names.

use std::collections::{BTreeMap, BTreeSet};

use toolgate_model::service::PathTemplate;
use toolgate_model::text::check_identifier;

use super::text::identifier;

/// The path as the registry writes it, and the names of its placeholders.
pub(super) fn template(path: &str) -> Result<(String, BTreeSet<String>), String> {
    let mut text = String::new();
    let mut rest = path;
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    while let Some((literal, behind)) = rest.split_once('{') {
        let (name, after) = behind.split_once('}').ok_or("its path has a { without a }")?;
        let placeholder = placeholder(name);
        text.push_str(&format!("{literal}{{{placeholder}}}"));
        // One value would fill both, without the constraints of one of them.
        if let Some(other) = names.insert(placeholder, name).filter(|other| *other != name) {
            return Err(format!("its path has {{{other}}} and {{{name}}}, which yield the same placeholder"));
        }
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

    #[test]
    fn two_placeholders_never_become_one() {
        let error = template("/a/{b c}/{b_c}").unwrap_err();
        assert_eq!(error, "its path has {b c} and {b_c}, which yield the same placeholder");
        assert!(template("/{+}/{?}").is_err());
        assert!(template("/a/{id}/b/{id}").is_ok(), "one parameter may stand twice");
    }
}
