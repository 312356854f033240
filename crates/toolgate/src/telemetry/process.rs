//! Statistics of this process, from the files that Linux provides. What cannot be read is zero.

use std::fs::{read_dir, read_to_string};
use std::sync::OnceLock;

use toolgate_gate::ports::clock::{Clock, SystemClock};
use toolgate_server::operations::metrics::ProcessFigures;

/// Clock ticks of a second in `/proc`, which Linux fixes for programs whatever the kernel counts by.
const TICKS: f64 = 100.0;

pub fn process_figures() -> ProcessFigures {
    static START: OnceLock<f64> = OnceLock::new();
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let stat = read_to_string("/proc/self/stat").unwrap_or_default();
    let limits = read_to_string("/proc/self/limits").unwrap_or_default();
    ProcessFigures {
        cpu_seconds: cpu_ticks(&stat).unwrap_or(0.0) / TICKS,
        resident_bytes: kibibytes(&status, "VmRSS:").unwrap_or(0),
        virtual_bytes: kibibytes(&status, "VmSize:").unwrap_or(0),
        threads: number(&status, "Threads:").unwrap_or(0),
        open_descriptors: read_dir("/proc/self/fd").map_or(0, |files| u64::try_from(files.count()).unwrap_or(0)),
        max_descriptors: number(&limits, "Max open files").unwrap_or(0),
        start_seconds: *START.get_or_init(|| started(&stat)),
    }
}

/// Time in user and in system mode. The name of the program, in parentheses, may have anything in it.
fn cpu_ticks(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

/// When the process started: now, less the time since boot, and the time from boot to its start.
fn started(stat: &str) -> f64 {
    let since_boot = |text: &str| text.split_whitespace().next()?.parse::<f64>().ok();
    let uptime = read_to_string("/proc/uptime").ok().and_then(|text| since_boot(&text)).unwrap_or(0.0);
    let start = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)?.parse::<f64>().ok());
    let age = start.map_or(0.0, |start| uptime - start / TICKS);
    let now = u32::try_from(SystemClock.now().as_millis() / 1000).map_or(0.0, f64::from);
    now - age
}

fn kibibytes(text: &str, name: &str) -> Option<u64> {
    number(text, name).map(|number| number.saturating_mul(1024))
}

/// The first number behind a name at the beginning of a line.
fn number(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_this_process_can_be_read() {
        let figures = process_figures();
        assert!(figures.resident_bytes > 1024 * 1024 && figures.virtual_bytes >= figures.resident_bytes, "{figures:?}");
        assert!(figures.threads > 0 && figures.open_descriptors > 0 && figures.max_descriptors > 0, "{figures:?}");
        let now = SystemClock.now().as_millis() / 1000;
        let age = now - format!("{:.0}", figures.start_seconds).parse::<i64>().unwrap();
        assert!((0..86_400).contains(&age), "{figures:?}");
    }

    #[test]
    fn a_program_with_a_strange_name_is_read_all_the_same() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 1000 0 0";
        assert_eq!(cpu_ticks(stat), Some(300.0));
        assert_eq!(cpu_ticks(""), None);
    }
}
