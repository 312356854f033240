//! URI templates (RFC 6570) as far as it must be known whether a URI can come from one: which mounted server has the
//! resource that a client reads.

/// The longest template and the longest URI that are compared, in bytes.
const LENGTH_LIMIT: usize = 2_048;
/// The most expressions and texts of a template.
const PART_LIMIT: usize = 64;

/// A part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part<'a> {
    /// Stands in the URI as it is.
    Text(&'a [u8]),
    /// `{name}`: at least one character, none of which separates segments.
    Segment,
    /// An expression with an operator: anything, or nothing.
    Anything,
}

/// Whether the URI can come from the template. What is longer than templates are, or cannot be read, fits nothing.
pub fn fits(template: &str, uri: &str) -> bool {
    if uri.len() > LENGTH_LIMIT {
        return false;
    }
    let Some(parts) = parts(template) else { return false };
    // The positions up to which the URI can have been read, part by part: linear in the product of the two lengths,
    // whatever the template is.
    let uri = uri.as_bytes();
    let mut reached = vec![false; uri.len() + 1];
    if let Some(start) = reached.first_mut() {
        *start = true;
    }
    for part in parts {
        reached = after(part, uri, &reached);
    }
    reached.last() == Some(&true)
}

fn parts(template: &str) -> Option<Vec<Part<'_>>> {
    if template.len() > LENGTH_LIMIT {
        return None;
    }
    let (mut parts, mut rest) = (Vec::new(), template);
    while let Some((text, expression)) = rest.split_once('{') {
        let (expression, after) = expression.split_once('}')?;
        if !text.is_empty() {
            parts.push(Part::Text(text.as_bytes()));
        }
        let is_plain =
            expression.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'%'));
        parts.push(if is_plain && !expression.is_empty() { Part::Segment } else { Part::Anything });
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.as_bytes()));
    }
    (parts.len() <= PART_LIMIT).then_some(parts)
}

/// The positions that can be reached from these by one part.
fn after(part: Part<'_>, uri: &[u8], from: &[bool]) -> Vec<bool> {
    let mut reached = vec![false; from.len()];
    match part {
        Part::Text(text) => {
            for (position, slot) in reached.iter_mut().enumerate().skip(text.len()) {
                let start = position - text.len();
                *slot = from.get(start) == Some(&true) && uri.get(start..position) == Some(text);
            }
        }
        Part::Segment | Part::Anything => {
            let takes = |byte: u8| part == Part::Anything || !matches!(byte, b'/' | b'?' | b'#');
            let mut is_open = false;
            for (position, slot) in reached.iter_mut().enumerate() {
                let before = position.checked_sub(1);
                let begins = before.is_some_and(|before| from.get(before) == Some(&true));
                let byte = before.and_then(|before| uri.get(before)).copied();
                is_open = (is_open || begins) && byte.is_some_and(takes);
                *slot = is_open || (part == Part::Anything && from.get(position) == Some(&true));
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_fits_the_template_that_it_can_come_from() {
        for (template, uri) in [
            ("test://{id}", "test://one"),
            ("test://template/{id}/data", "test://template/123/data"),
            ("file:///{+path}", "file:///a/b/c"),
            ("file:///{+path}", "file:///"),
            ("db://{table}{?limit,offset}", "db://users?limit=1"),
            ("db://{table}{?limit,offset}", "db://users"),
            ("plain://x", "plain://x"),
            ("{a}b{c}", "xbbby"),
        ] {
            assert!(fits(template, uri), "{template} {uri}");
        }
        for (template, uri) in [
            ("test://{id}", "test://"),
            ("test://{id}", "test://a/b"),
            ("test://{id}", "other://a"),
            ("test://template/{id}/data", "test://template/123/datas"),
            ("plain://x", "plain://xy"),
            ("{broken", "{broken"),
            ("", "a"),
        ] {
            assert!(!fits(template, uri), "{template} {uri}");
        }
    }

    #[test]
    fn a_template_made_to_be_expensive_is_not() {
        let template = "{+a}".repeat(64);
        assert!(fits(&template, &"x".repeat(LENGTH_LIMIT)));
        assert!(!fits(&"{+a}".repeat(65), "x"), "more parts than templates have");
        assert!(!fits("{+a}", &"x".repeat(LENGTH_LIMIT + 1)));
    }
}
