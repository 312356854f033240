//! The queue of spans: bounded, and never waited for.

use toolgate_gate::ports::telemetry::FinishedAs;
use toolgate_model::id::InvocationId;
use toolgate_model::principal::TenantId;
use toolgate_model::trace_context::TraceParent;
use url::Url;

use super::*;

#[test]
fn a_full_queue_takes_no_more_spans() {
    let now = Timestamp::from_millis(1_770_544_800_000).unwrap();
    let link = CollectorLink::new(Url::parse("http://127.0.0.1:1").unwrap(), None).unwrap();
    let (queue, exporter) = Exporter::new(link, Arc::default(), None, "process_1", now);
    let context = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
    let traced = TracedCall { context, parent: None, state: None, is_exported: true };
    let tenant = TenantId::default_tenant();
    let call = FinishedCall {
        id: InvocationId::new(now, [1; 10]),
        tenant: &tenant,
        agent: None,
        tool: None,
        request: None,
        trace: Some(&traced),
        started: now,
        outcome: FinishedAs::Unknown,
        code: Some("INTERNAL"),
        stage: None,
        is_recorded: true,
        times: None,
    };
    for _ in 0..QUEUE + 100 {
        queue.push(&call, &traced);
    }
    assert_eq!(exporter.queue.try_lock().unwrap().len(), QUEUE);
}
