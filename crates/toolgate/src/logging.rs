//! The log on standard error: for people on a terminal, JSON lines elsewhere. Every line that is written while a
//! request is processed has the id of the request.

use std::fmt;
use std::io::IsTerminal;

use toolgate_gate::request_context::RequestContext;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, layer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::configuration::LogFormat;

/// Starts the log of this process. A second call changes nothing.
pub fn start(format: LogFormat, level: Targets) {
    let terminal = std::io::stderr().is_terminal();
    let json = match format {
        LogFormat::Auto => !terminal,
        LogFormat::Human => false,
        LogFormat::Json => true,
    };
    let base = layer().with_writer(std::io::stderr);
    let layer = if json {
        base.json().flatten_event(true).map_event_format(JsonLine).boxed()
    } else {
        base.with_ansi(terminal).map_event_format(HumanLine).boxed()
    };
    // Only a second call fails.
    let _ = tracing_subscriber::registry().with(layer.with_filter(level)).try_init();
}

/// A line of JSON with the id of the request as its first member. The id is taken from the task instead of a span of
/// `tracing`, which would cost every request several thousand instructions.
struct JsonLine<F>(F);

/// A line for people that begins with the id of the request.
struct HumanLine<F>(F);

impl<S, N, F> FormatEvent<S, N> for JsonLine<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut to: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let Some(request) = RequestContext::current() else { return self.0.format_event(context, to, event) };
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        match line.strip_prefix('{') {
            // INVARIANT: nothing in an id needs to be escaped.
            Some(rest) => write!(to, "{{\"request_id\":\"{}\",{rest}", request.id),
            None => to.write_str(&line),
        }
    }
}

impl<S, N, F> FormatEvent<S, N> for HumanLine<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut to: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        if let Some(request) = RequestContext::current() {
            write!(to, "[{}] ", request.id)?;
        }
        self.0.format_event(context, to, event)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use toolgate_gate::request_context::RequestId;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// A log line without and one with a request.
    fn logged<L: Layer<tracing_subscriber::Registry> + Send + Sync + 'static>(make: impl FnOnce(Lines) -> L) -> String {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::registry().with(make(lines.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        tracing::subscriber::with_default(subscriber, || {
            runtime.block_on(async {
                tracing::info!("alone");
                let context = RequestContext { id: RequestId::parse("r-1").unwrap(), trace: None };
                context.scope(async { tracing::info!(answer = 42, "in a request") }).await;
            });
        });
        String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_line_of_json_has_the_id_of_its_request() {
        let text = logged(|lines| {
            let layer = layer().with_writer(move || lines.clone());
            layer.json().flatten_event(true).map_event_format(JsonLine)
        });
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0].get("request_id"), None);
        assert_eq!((&lines[1]["request_id"], &lines[1]["answer"]), (&"r-1".into(), &42.into()));
    }

    #[test]
    fn a_line_for_people_begins_with_the_id_of_its_request() {
        let text =
            logged(|lines| layer().with_ansi(false).with_writer(move || lines.clone()).map_event_format(HumanLine));
        let lines: Vec<&str> = text.lines().collect();
        assert!(!lines[0].contains("r-1") && lines[1].starts_with("[r-1] "), "{text}");
    }
}
