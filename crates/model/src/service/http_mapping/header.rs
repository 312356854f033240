//! The headers that a definition may set, directly or from a parameter: none that frames the request, routes it,
//! identifies its sender, or determines how the response is read.

/// Names that only the proxy sets, or nobody. In lower case, with `-` for `_`.
const RESERVED: [&str; 28] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "cookie2",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "range",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-client-ip",
    "x-host",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-url",
    "x-real-ip",
    "x-rewrite-url",
];
/// Prefixes of such names.
const RESERVED_BEGINNINGS: [&str; 3] = ["proxy-", "sec-", "x-forwarded-"];
/// The maximum length of a header name and value, in bytes.
const NAME_LIMIT: usize = 128;
const VALUE_LIMIT: usize = 4 * 1024;

/// Checks the name of a header that a definition sets.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    check_token(name)?;
    if is_reserved(name) {
        return Err("is a header that tools cannot set; remove it".to_owned());
    }
    Ok(())
}

/// Checks the name of the header with the credential.
pub(crate) fn check_credential_name(name: &str) -> Result<(), String> {
    check_token(name)?;
    if is_reserved(name) && !name.eq_ignore_ascii_case("authorization") {
        return Err(
            "is a header that cannot carry a credential; use Authorization or X-API-Key, for example".to_owned()
        );
    }
    Ok(())
}

/// Checks the name of a header in a fetch: like a tool's, but with the caller's own authorization and range.
pub(crate) fn check_fetch_name(name: &str) -> Result<(), String> {
    if name.eq_ignore_ascii_case("authorization") || name.eq_ignore_ascii_case("range") {
        return Ok(());
    }
    check_name(name)
}

/// Checks a value: printable ASCII, so that no two readers see different lines.
pub(crate) fn check_value(value: &str) -> Result<(), &'static str> {
    if value.len() > VALUE_LIMIT {
        return Err("must be at most 4096 bytes in a header");
    }
    if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Err("must be printable ASCII without line breaks in a header");
    }
    Ok(())
}

/// Whether some server treats two names as equal: case never counts, and `_` is `-` behind a gateway interface.
pub(crate) fn is_same(left: &str, right: &str) -> bool {
    folded(left) == folded(right)
}

fn is_reserved(name: &str) -> bool {
    let name = folded(name);
    RESERVED.contains(&name.as_str()) || RESERVED_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

fn folded(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

fn check_token(name: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || name.len() > NAME_LIMIT || !name.bytes().all(fits) {
        return Err("is not a header name; use letters, digits and -".to_owned());
    }
    Ok(())
}
