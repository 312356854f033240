//! The log on standard error: for people on a terminal, JSON lines elsewhere.

use std::io::IsTerminal;

use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
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
    let base = fmt::layer().with_writer(std::io::stderr);
    let layer = if json { base.json().flatten_event(true).boxed() } else { base.with_ansi(terminal).boxed() };
    // Only a second call fails.
    let _ = tracing_subscriber::registry().with(layer.with_filter(level)).try_init();
}
