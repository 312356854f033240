//! The position of a call in a distributed trace. The caller chooses the trace; whether it is sampled is decided by the
//! gate, unless the caller is trusted to: otherwise any agent could make the gate and its services do more work.

use toolgate_model::id::InvocationId;
use toolgate_model::trace_context::{SpanId, TraceId, TraceParent};

use crate::ports::telemetry::TracedCall;
use crate::request_context::CallerTrace;
use crate::settings::SampleRatio;

/// The trace of a call. `None` where the caller sent none and the gate exports none.
pub(super) fn trace_of(
    call: InvocationId,
    caller: Option<CallerTrace>,
    export: Option<SampleRatio>,
) -> Option<Box<TracedCall>> {
    if caller.is_none() && export.is_none() {
        return None;
    }
    let trusted = caller.as_ref().filter(|caller| caller.is_trusted).map(|caller| caller.parent.sampled);
    // Without a trace of the caller, the call is the trace. Its id is random, and the caller cannot choose it.
    let is_exported = export.is_some_and(|ratio| trusted.unwrap_or_else(|| ratio.includes(call)));
    let own = SpanId::new(call.low_bytes())?;
    let (trace, parent, state) = match caller {
        // Vendor state is free text, which no policy sees: only a trusted caller may send it to services.
        Some(CallerTrace { parent, state, is_trusted }) => {
            (parent.trace, Some(parent.span), state.filter(|_| is_trusted))
        }
        None => (TraceId::new(call.bytes())?, None, None),
    };
    // A span that is not exported must not be the parent of one that is: the trace would have a gap.
    let span = if is_exported { own } else { parent.unwrap_or(own) };
    let sampled = is_exported || (export.is_none() && trusted == Some(true));
    Some(Box::new(TracedCall { context: TraceParent { trace, span, sampled }, parent, state, is_exported }))
}

#[cfg(test)]
mod tests {
    use toolgate_model::time::Timestamp;

    use super::*;

    const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-";

    fn call() -> InvocationId {
        InvocationId::new(Timestamp::from_millis(1_770_544_800_000).unwrap(), [7; 10])
    }

    fn caller(flags: &str, is_trusted: bool) -> CallerTrace {
        let parent = TraceParent::parse(&format!("{HEADER}{flags}")).unwrap();
        CallerTrace { parent, state: Some("a=1".into()), is_trusted }
    }

    const ALL: Option<SampleRatio> = Some(SampleRatio::per_million(1_000_000));
    const NONE: Option<SampleRatio> = Some(SampleRatio::per_million(0));

    #[test]
    fn a_caller_that_is_not_trusted_cannot_have_its_trace_sampled() {
        for (flags, trusted, export, sampled) in [
            ("01", false, None, false),
            ("01", false, NONE, false),
            ("01", false, ALL, true),
            ("00", false, ALL, true),
            ("01", true, None, true),
            ("01", true, NONE, true),
            ("00", true, ALL, false),
            ("00", true, None, false),
        ] {
            let traced = trace_of(call(), Some(caller(flags, trusted)), export).unwrap();
            let case = format!("{flags} {trusted} {export:?}");
            assert_eq!(traced.context.sampled, sampled, "{case}");
            assert_eq!(traced.is_exported, sampled && export.is_some(), "{case}");
            assert_eq!(traced.state.as_deref(), trusted.then_some("a=1"), "{case}");
            assert!(traced.context.to_string().starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"), "{case}");
        }
    }

    #[test]
    fn services_continue_the_span_of_the_call_only_if_it_is_exported() {
        let given = caller("01", true);
        let exported = trace_of(call(), Some(given.clone()), ALL).unwrap();
        assert_ne!(exported.context.span, given.parent.span);
        assert_eq!(exported.parent, Some(given.parent.span));
        let passed_on = trace_of(call(), Some(given.clone()), None).unwrap();
        assert_eq!(passed_on.context, given.parent);
    }

    #[test]
    fn a_call_without_a_trace_is_one_where_traces_are_exported() {
        assert_eq!(trace_of(call(), None, None), None);
        let traced = trace_of(call(), None, ALL).unwrap();
        assert_eq!(traced.context.trace.as_bytes(), &call().bytes());
        assert!(traced.parent.is_none() && traced.is_exported);
        assert!(!trace_of(call(), None, NONE).unwrap().context.sampled);
    }

    #[test]
    fn a_ratio_samples_about_as_many_calls_as_it_says() {
        let ratio = SampleRatio::per_million(250_000);
        let time = Timestamp::from_millis(1_770_544_800_000).unwrap();
        let calls = (0..20_000_u32).map(|number| {
            let mixed = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            let mut entropy = [0; 10];
            entropy[2..].copy_from_slice(&mixed);
            InvocationId::new(time, entropy)
        });
        let sampled = calls.filter(|call| ratio.includes(*call)).count();
        assert!((4_500..5_500).contains(&sampled), "{sampled}");
    }
}
