//! Lists of tools that are nested deeper than anything is read: the parts that are too deep are left out, so that one
//! tool does not hide all others. What is left of it is still deeper than a definition that can be accepted.

use std::borrow::Cow;

/// How deep a list stays: more than a definition of the model's limit has in it, and less than is read.
const DEPTH: usize = 88;

/// The message without what is deeper. What is no JSON stays none.
pub(crate) fn pruned(message: &[u8]) -> Cow<'_, [u8]> {
    let mut kept: Option<Vec<u8>> = None;
    let (mut depth, mut in_string, mut escaped, mut copied) = (0usize, false, false, 0usize);
    for (place, byte) in message.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth == DEPTH + 1 {
                    let kept = kept.get_or_insert_default();
                    kept.extend_from_slice(message.get(copied..place).unwrap_or_default());
                    kept.extend_from_slice(b"null");
                }
            }
            b']' | b'}' if !in_string => {
                if depth == DEPTH + 1 {
                    copied = place + 1;
                }
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
    }
    match kept {
        None => Cow::Borrowed(message),
        Some(mut kept) => {
            if depth <= DEPTH {
                kept.extend_from_slice(message.get(copied..).unwrap_or_default());
            }
            Cow::Owned(kept)
        }
    }
}

#[cfg(test)]
mod tests {
    use toolgate_model::strict_json;

    use super::*;

    fn nested(levels: usize) -> String {
        format!(
            r#"[{{"name":"a]\"[[\\","schema":{}1{}}},{{"name":"b"}}]"#,
            "{\"x\":[".repeat(levels),
            "]}".repeat(levels)
        )
    }

    #[test]
    fn only_what_is_too_deep_is_left_out() {
        let shallow = nested(20);
        assert!(matches!(pruned(shallow.as_bytes()), Cow::Borrowed(_)));
        for levels in [60, 100, 100_000] {
            let deep = nested(levels);
            let list = strict_json::parse_written(&pruned(deep.as_bytes())).unwrap();
            assert_eq!(list[1]["name"], "b", "{levels}");
            assert_eq!(list[0]["name"], "a]\"[[\\");
            let kept = serde_json::to_string(&list[0]).unwrap();
            assert!(kept.matches(['{', '[']).count() > 80, "{kept}");
        }
        assert!(strict_json::parse_written(&pruned("[".repeat(200).as_bytes())).is_err());
    }
}
