//! The export to an OpenTelemetry collector: what arrives, and that no collector can hold up a call or a stop.

use std::collections::BTreeSet;

use serde_json::json;
use toolgate_testkit::collector::{Collector, attributes, metric};
use toolgate_testkit::gate_process::GateSetup;
use toolgate_testkit::upstream::Reply as Response;

use crate::calls::shop::{Shop, TOKEN, read};
use crate::world::{World, setup, text};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
const SERVER: i32 = 2;
const ERROR: i32 = 2;

fn exporting(to: &str, per_million: u32) -> GateSetup {
    let setup = setup().reaching_loopback().environment("TOOLGATE_TELEMETRY_OTLP_ENDPOINT", to);
    setup.environment("TOOLGATE_TELEMETRY_TRACES_PER_MILLION", per_million.to_string())
}

#[test]
fn sampled_calls_arrive_as_spans_with_their_stages() {
    let collector = Collector::start();
    let world = World::of(
        &exporting(&collector.url(), 1_000_000).environment("TOOLGATE_TELEMETRY_OTLP_TOKEN", "otlp-token"),
        None,
    );
    let shop = Shop::open(&world);
    shop.grant(json!({}));
    let headers = [("traceparent", PARENT)];
    let done = shop.agent.ask_with("POST", "/api/v1/tools/invoke", &headers, Some(&read(json!({}))));
    let body = done.ok();
    let told = shop.upstream.received()[0].header("traceparent").unwrap().to_owned();
    shop.call("payments.nothing", json!({"note": "geheim-in-arguments"})).error();

    let spans = collector.wait_for_spans(11 + 3);
    let calls: Vec<_> = spans.iter().filter(|span| span.kind == SERVER).collect();
    let [first, second] = calls.as_slice() else { panic!("two calls: {spans:?}") };
    assert_eq!(first.name, "execute_tool payments.charges.read");
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(
        (hex(&first.trace_id).as_str(), hex(&first.parent_span_id).as_str()),
        ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
    );
    assert_eq!(
        told,
        format!("00-{}-{}-01", hex(&first.trace_id), hex(&first.span_id)),
        "the service continues the span"
    );
    let about = attributes(&first.attributes);
    assert_eq!(about["toolgate.call_id"], text(&body, "/invocation_id"));
    assert_eq!(about["toolgate.request_id"], done.answer.header("x-request-id").unwrap());
    assert_eq!((about["toolgate.tenant"].as_str(), about["toolgate.agent"].as_str()), ("default", "billing"));
    assert_eq!(
        (about["gen_ai.tool.name"].as_str(), about["toolgate.outcome"].as_str()),
        ("payments.charges.read", "success")
    );
    assert!(first.end_time_unix_nano > first.start_time_unix_nano);

    let stages: Vec<_> = spans.iter().filter(|span| span.parent_span_id == first.span_id).collect();
    let names: Vec<&str> = stages.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        names,
        ["identify", "resolve", "authorize", "constrain", "guard", "approve", "admit", "execute", "inspect", "settle"]
    );
    for stage in &stages {
        assert_eq!(stage.trace_id, first.trace_id);
        assert!(
            stage.start_time_unix_nano >= first.start_time_unix_nano
                && stage.end_time_unix_nano <= first.end_time_unix_nano
        );
    }
    let ids: BTreeSet<&[u8]> = spans.iter().map(|span| span.span_id.as_slice()).collect();
    assert_eq!(ids.len(), spans.len());

    assert_eq!((second.name.as_str(), second.status.as_ref().unwrap().code), ("execute_tool", ERROR), "{second:?}");
    assert!(second.parent_span_id.is_empty() && second.trace_id.len() == 16);
    let about = attributes(&second.attributes);
    assert_eq!((about["toolgate.stage"].as_str(), about["gen_ai.tool.name"].as_str()), ("resolve", "payments.nothing"));
    for request in collector.upstream.received() {
        assert_eq!(request.bearer(), Some("otlp-token"));
        let body = String::from_utf8_lossy(&request.body);
        assert!(!body.contains("geheim-in-arguments") && !body.contains(TOKEN), "{body}");
    }
}

#[test]
fn what_is_not_sampled_is_not_exported_whatever_the_caller_says() {
    let collector = Collector::start();
    let world = World::of(&exporting(&collector.url(), 0), None);
    let shop = Shop::open(&world);
    shop.grant(json!({}));
    let sampled =
        PARENT.replace("-00", "-01").replace("4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c");
    shop.agent.ask_with("POST", "/api/v1/tools/invoke", &[("traceparent", &sampled)], Some(&read(json!({})))).ok();
    world.stop();
    assert_eq!(collector.spans(), []);
}

#[test]
fn spans_and_metrics_that_are_left_are_sent_when_the_gate_stops() {
    let collector = Collector::start();
    let world = World::of(&exporting(&collector.url(), 1_000_000), None);
    let shop = Shop::open(&world);
    shop.grant(json!({}));
    for _ in 0..20 {
        shop.agent.invokes(read(json!({}))).ok();
    }
    let (ended, _) = world.stop();
    assert!(ended.status.success());
    let calls = collector.spans().iter().filter(|span| span.kind == SERVER).count();
    assert_eq!(calls, 20);

    let metrics = collector.metrics();
    let find = |name: &str| {
        let found = metrics.iter().find(|metric| metric.name == name).unwrap_or_else(|| panic!("no {name}"));
        found.data.clone().unwrap()
    };
    let metric::Data::Sum(calls) = find("toolgate_calls") else { panic!("a counter is a sum") };
    assert!(calls.is_monotonic && calls.aggregation_temporality == 2, "{calls:?}");
    let metric::Data::Histogram(stages) = find("toolgate_call_stage_duration_seconds") else { panic!("a histogram") };
    assert_eq!(stages.data_points.len(), 10);
    for point in &stages.data_points {
        assert_eq!((point.count, point.bucket_counts.iter().sum::<u64>()), (20, 20), "{point:?}");
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
        assert!(point.explicit_bounds.is_sorted() && point.sum.unwrap() > 0.0);
        assert!(attributes(&point.attributes).contains_key("stage"));
    }
    let metric::Data::Gauge(_) = find("toolgate_ledger_size_bytes") else { panic!("a gauge") };
}

#[test]
fn a_collector_that_never_responds_holds_up_neither_calls_nor_the_stop() {
    let collector = Collector::start();
    collector.upstream.hold();
    let world = World::of(&exporting(&collector.url(), 1_000_000), None);
    let shop = Shop::open(&world);
    shop.grant(json!({}));
    for _ in 0..50 {
        shop.agent.invokes(read(json!({}))).ok();
    }
    collector.upstream.wait_for(1);
    shop.agent.invokes(read(json!({}))).ok();
    assert_eq!(shop.admin.get("/readyz").status(), 200);
    let (ended, _) = world.stop();
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(ended.stderr.contains("the export to the collector failed"), "{}", ended.stderr);
}

#[test]
fn a_hostile_or_dead_collector_costs_spans_that_are_counted_and_nothing_else() {
    let hostile = toolgate_testkit::upstream::Upstream::start(|_| Response::text(500, &"no".repeat(100_000)));
    let gone = { Collector::start().url() };
    for url in [hostile.url(), gone] {
        let world = World::of(&exporting(&url, 1_000_000), None);
        let shop = Shop::open(&world);
        shop.grant(json!({}));
        shop.agent.invokes(read(json!({}))).ok();
        crate::world::until("the span is given up", || {
            let text = shop.admin.get("/metrics").answer.text();
            text.contains("toolgate_telemetry_dropped_total{signal=\"traces\"} 1").then_some(())
        });
        shop.agent.invokes(read(json!({}))).ok();
        assert_eq!(shop.admin.get("/readyz").status(), 200);
    }
}
