//! The headers of a modern request, which repeat what its body says, so that proxies can route by them. Where the two differ,
//! the proxy and the gate would each believe another, and the request is refused.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::{Map, Value};
use toolgate_model::mirrored::Mirrored;

use super::era::{MODERN, VERSION_HEADER, VERSION_KEY};
use super::message::Params;
use super::reply::RpcError;

const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";
/// What stands before and behind a value that is written in base64.
const WRAPPED: (&str, &str) = ("=?base64?", "?=");

/// Checks the version, the method and the name of a modern request.
pub(super) fn check(headers: &HeaderMap, method: &str, params: &Params) -> Result<(), RpcError> {
    let Some(meta) = params.meta() else {
        return Err(RpcError::invalid_params("`params._meta` is missing; every request needs it"));
    };
    let version = match meta.get(VERSION_KEY) {
        Some(Value::String(version)) => version,
        Some(_) => return Err(RpcError::invalid_params(format!("`{VERSION_KEY}` must be a string"))),
        None => return Err(RpcError::invalid_params(format!("`params._meta` lacks `{VERSION_KEY}`"))),
    };
    if meta.get(super::client::CAPABILITIES).is_none_or(|capabilities| !capabilities.is_object()) {
        let reason = format!("`params._meta` lacks `{}`, which must be an object", super::client::CAPABILITIES);
        return Err(RpcError::invalid_params(reason));
    }
    match single(headers, VERSION_HEADER)? {
        Some(named) if named == version => {}
        Some(_) => {
            return Err(RpcError::header_mismatch("MCP-Protocol-Version is not the version that the body names"));
        }
        None => {
            let reason = "MCP-Protocol-Version is missing: send the version that the body names in it";
            return Err(RpcError::header_mismatch(reason));
        }
    }
    if version != MODERN {
        return Err(RpcError::unsupported_version(version));
    }
    match single(headers, METHOD_HEADER)? {
        Some(named) if named == method => {}
        Some(_) => return Err(RpcError::header_mismatch("Mcp-Method is not the method of the body")),
        None => return Err(RpcError::header_mismatch("Mcp-Method is missing: send the method of the body in it")),
    }
    let Some(Value::String(name)) = named(method).and_then(|member| params.get(member)) else { return Ok(()) };
    match single(headers, NAME_HEADER)?.map(unwrapped) {
        Some(Some(header)) if header == *name => Ok(()),
        Some(_) => Err(RpcError::header_mismatch("Mcp-Name is not the name in the body")),
        None => Err(RpcError::header_mismatch("Mcp-Name is missing: send the name in the body in it")),
    }
}

/// The member of the parameters that `Mcp-Name` repeats.
fn named(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// The value of a header that may stand once, without the blanks around it.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(RpcError::header_mismatch(format!("the header {name} is given more than once")));
    }
    let text = first.map(|value| value.to_str().map(str::trim)).transpose();
    text.map_err(|_| RpcError::header_mismatch(format!("the header {name} is not plain text")))
}

/// The value of a header as the client meant it; `None` where its base64 is not the one way to write it.
pub(super) fn unwrapped(value: &str) -> Option<String> {
    let Some(inner) = value.strip_prefix(WRAPPED.0).and_then(|rest| rest.strip_suffix(WRAPPED.1)) else {
        return Some(value.to_owned());
    };
    String::from_utf8(STANDARD.decode(inner).ok()?).ok()
}

/// Checks the headers that repeat arguments: each is there if and only if its argument is, and says the same.
pub(super) fn check_arguments(
    headers: &HeaderMap,
    mirrored: &[Mirrored],
    arguments: &Map<String, Value>,
) -> Result<(), RpcError> {
    for parameter in mirrored {
        let name = format!("mcp-param-{}", parameter.header);
        let same = match (single(headers, &name)?.map(unwrapped), parameter.value(arguments)) {
            (None, None) => true,
            (Some(Some(header)), Some(value)) => parameter.is_same(&header, &value),
            _ => false,
        };
        if !same {
            return Err(RpcError::header_mismatch(format!(
                "{name} is not the argument `{}`",
                parameter.path.join(".")
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_value_is_read_only_where_it_is_written_in_the_one_way() {
        for (header, value) in [
            ("plain", Some("plain")),
            ("=?base64?SGVsbG8=?=", Some("Hello")),
            ("=?base64?SGVsbG8?=", None),
            ("=?base64?SGVs!!!bG8=?=", None),
            ("=?base64?SGVsbG9=?=", None),
            ("=?base64?/w==?=", None),
            ("=?base64?SGVsbG8=", Some("=?base64?SGVsbG8=")),
            ("SGVsbG8=?=", Some("SGVsbG8=?=")),
        ] {
            assert_eq!(unwrapped(header).as_deref(), value, "{header}");
        }
    }
}
