//! The context of a request from its headers: its id and the trace of its caller. Only a trusted proxy may name the request
//! and have its trace sampled; of any other client just the trace and the span are taken.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use toolgate_gate::request_context::{CallerTrace, RequestContext, RequestId};
use toolgate_model::trace_context::{MAX_TRACE_STATE, TraceParent, trace_state};

/// The header of the request id, in requests and in responses.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The context of a request with these headers.
pub(crate) fn of(headers: &HeaderMap, is_trusted: bool) -> RequestContext {
    let given = || single(headers, "x-request-id").and_then(RequestId::parse);
    let id = if is_trusted { given() } else { None };
    RequestContext { id: id.unwrap_or_else(RequestId::generate), trace: caller_trace(headers, is_trusted) }
}

/// The id as the value of a header.
pub(crate) fn header_of(id: RequestId) -> HeaderValue {
    // INVARIANT: an id is ASCII without control characters.
    HeaderValue::from_str(id.as_str()).unwrap_or_else(|_| HeaderValue::from_static("invalid"))
}

fn caller_trace(headers: &HeaderMap, is_trusted: bool) -> Option<CallerTrace> {
    let parent = TraceParent::parse(single(headers, "traceparent")?)?;
    Some(CallerTrace { parent, state: joined_state(headers), is_trusted })
}

/// `tracestate`, which may be spread over several headers.
fn joined_state(headers: &HeaderMap) -> Option<Arc<str>> {
    let mut joined = String::new();
    for value in headers.get_all("tracestate") {
        let value = value.to_str().ok()?;
        if joined.len() + value.len() >= 2 * MAX_TRACE_STATE {
            return None;
        }
        if !joined.is_empty() {
            joined.push(',');
        }
        joined.push_str(value);
    }
    trace_state(&joined).map(Arc::from)
}

/// The value of a header that appears once.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    if values.next().is_some() {
        return None;
    }
    first.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(given: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn only_a_trusted_proxy_names_a_request() {
        let named = headers(&[("x-request-id", "edge-1")]);
        assert_eq!(of(&named, true).id.as_str(), "edge-1");
        assert_ne!(of(&named, false).id.as_str(), "edge-1");
        for bad in [&[("x-request-id", "a b")][..], &[("x-request-id", "a"), ("x-request-id", "b")], &[]] {
            let context = of(&headers(bad), true);
            assert_eq!(context.id.as_str().len(), 32, "{bad:?}");
            assert_eq!(header_of(context.id), context.id.as_str());
        }
    }

    #[test]
    fn a_trace_is_taken_from_everybody_and_trusted_from_proxies() {
        let traced = headers(&[("traceparent", PARENT), ("tracestate", "a=1"), ("tracestate", "b=2")]);
        for is_trusted in [false, true] {
            let trace = of(&traced, is_trusted).trace.unwrap();
            assert_eq!((trace.parent.to_string().as_str(), trace.is_trusted), (PARENT, is_trusted));
            assert_eq!(trace.state.as_deref(), Some("a=1,b=2"));
        }
    }

    #[test]
    fn a_header_that_is_wrong_or_twice_there_starts_no_trace_and_is_no_error() {
        let huge = format!("a={}", "x".repeat(2_000));
        assert_eq!(of(&headers(&[("traceparent", "00-1-2-3")]), true).trace, None);
        assert_eq!(of(&headers(&[("traceparent", PARENT), ("traceparent", PARENT)]), true).trace, None);
        assert_eq!(of(&headers(&[("tracestate", "a=1")]), true).trace, None);
        let without_state = of(&headers(&[("traceparent", PARENT), ("tracestate", &huge)]), false).trace.unwrap();
        assert_eq!(without_state.state, None);
    }
}
