//! The cost of a bare flush on the file system of the ledger: the lower bound for a durable record.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

use super::scratch::Scratch;

/// About what one small transaction writes.
const RECORD: [u8; 4096] = [7; 4096];

/// The number of records in the file.
const RECORDS: u64 = 1024;

/// Writes and flushes (fdatasync) one record after the other for this long; returns the time of each, in microseconds.
/// The file is overwritten repeatedly, as both engines do with their write-ahead logs: a growing file costs one more
/// flush.
pub fn flushes(scratch: &Scratch, span: Duration) -> Result<Vec<f64>, String> {
    let path = scratch.path().join("flushed");
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let mut file = File::create(&path).map_err(failed)?;
    for _ in 0..RECORDS {
        file.write_all(&RECORD).map_err(failed)?;
    }
    file.sync_all().map_err(failed)?;
    let mut times = Vec::new();
    let begun = Instant::now();
    for number in (0..RECORDS).cycle() {
        if begun.elapsed() >= span {
            break;
        }
        let start = Instant::now();
        let place = SeekFrom::Start(number * RECORD.len() as u64);
        let written = file.seek(place).and_then(|_| file.write_all(&RECORD)).and_then(|()| file.sync_data());
        written.map_err(failed)?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times)
}
