//! Which forms of a response a client names in `Accept`.

use http::{HeaderMap, header};

/// Text without any other meaning, for clients that understand nothing else.
pub(crate) const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// Whether the client names this media type itself.
pub(crate) fn names(headers: &HeaderMap, wanted: &str) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let kinds = values.flat_map(|value| value.split(','));
    kinds.filter_map(|kind| kind.split(';').next()).any(|essence| essence.trim().eq_ignore_ascii_case(wanted))
}

/// Whether the client accepts plain text, but not the usual media type of the text.
pub(crate) fn only_plain_text(headers: &HeaderMap, usual: &str) -> bool {
    names(headers, "text/plain") && !names(headers, usual) && !names(headers, "*/*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_for_those_who_want_nothing_else() {
        for (accept, plain) in [
            ("", false),
            ("*/*", false),
            ("text/plain", true),
            ("Text/Plain; q=0.5", true),
            ("application/openmetrics-text;version=1.0.0,text/plain;q=0.5", false),
            ("text/plain, */*;q=0.1", false),
            ("text/html", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, accept.parse().unwrap())]);
            assert_eq!(only_plain_text(&headers, "application/openmetrics-text"), plain, "{accept}");
        }
    }
}
