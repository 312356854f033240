//! The resources that a process has used, as the system counts them.

use std::fs;
use std::time::Duration;

use super::programs;
use crate::process::program;

/// How the system counts processor time.
#[derive(Debug, Clone, Copy)]
pub struct Ticks(f64);

impl Ticks {
    /// Reads the number of ticks per second from the system.
    pub fn ask() -> Result<Self, String> {
        let printed = programs::output(&mut program("getconf", &["CLK_TCK"]))?;
        printed.trim().parse().map(Self).map_err(|_| format!("getconf CLK_TCK printed {printed:?}"))
    }

    /// User and system time of all threads of the process since it was started, in microseconds.
    pub fn processor_time(self, process: u32) -> Result<f64, String> {
        let ticks = read(process, "stat", ticks_used)?;
        Ok(ticks as f64 / self.0 * 1e6)
    }
}

/// Memory of the process that is in the machine's memory now, in megabytes.
pub fn resident(process: u32) -> Result<f64, String> {
    Ok(read(process, "status", kilobytes_resident)? as f64 / 1024.0)
}

/// The share of the machine's processor time that was used during this span, 0 to 1.
fn machine(span: Duration) -> Result<f64, String> {
    let look = || {
        let text = fs::read_to_string("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))?;
        all_and_idle(&text).ok_or_else(|| "/proc/stat has an unexpected format".to_owned())
    };
    let (all_before, idle_before) = look()?;
    programs::pause(span);
    let (all, idle) = look()?;
    let passed = all.saturating_sub(all_before).max(1) as f64;
    Ok(1.0 - idle.saturating_sub(idle_before) as f64 / passed)
}

/// Says how busy the machine is before a run.
pub fn print_load() -> Result<(), String> {
    let busy = machine(Duration::from_secs(2))?;
    println!("before the run, {:.0} % of the processors' time is used by others", busy * 100.0);
    if busy > 0.2 {
        println!("on a machine this busy only memory and bytes on disk can be relied on, not times and their ratios");
    }
    Ok(())
}

fn read(process: u32, file: &str, figure: fn(&str) -> Option<u64>) -> Result<u64, String> {
    let path = format!("/proc/{process}/{file}");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    figure(&text).ok_or_else(|| format!("{path} has an unexpected format"))
}

/// Fields 14 and 15. The second field is the program's name, in parentheses, and may contain anything.
fn ticks_used(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// The first line adds up all processors: user, nice, system, idle, waiting for the disk, and others.
fn all_and_idle(stat: &str) -> Option<(u64, u64)> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let ticks: Vec<u64> = fields.map(|field| field.parse().ok()).collect::<Option<_>>()?;
    Some((ticks.iter().sum(), ticks.get(3)? + ticks.get(4)?))
}

fn kilobytes_resident(status: &str) -> Option<u64> {
    let figure = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    figure.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_whatever_the_program_is_called() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 9 0 100 200 300\n";
        assert_eq!(ticks_used(stat), Some(200));
        assert_eq!(ticks_used("nonsense"), None);
    }

    #[test]
    fn resident_memory_is_read() {
        assert_eq!(kilobytes_resident("Name:\tx\nVmHWM:\t 9000 kB\nVmRSS:\t   5120 kB\n"), Some(5120));
        assert_eq!(kilobytes_resident("Name:\tx\n"), None);
    }

    #[test]
    fn the_machines_idle_time_is_read() {
        assert_eq!(all_and_idle("cpu  10 1 9 70 10 0 0 0 0 0\ncpu0 1 2 3 4\n"), Some((100, 80)));
        assert_eq!(all_and_idle("intr 5\n"), None);
    }

    #[test]
    fn this_process_has_used_memory() {
        assert!(resident(std::process::id()).unwrap() > 0.0);
        assert!(Ticks::ask().unwrap().processor_time(std::process::id()).unwrap() >= 0.0);
    }
}
