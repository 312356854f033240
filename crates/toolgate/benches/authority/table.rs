//! Printing figures, and the medians that they are.

use std::time::Duration;

/// Prints a table with its columns aligned.
pub fn print(title: &str, head: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).chain([head[column].len()]).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        println!("| {} |", padded.collect::<Vec<_>>().join(" | "));
    };
    println!("\n{title}\n");
    line(head.to_vec());
    println!("|{}|", widths.iter().map(|width| "-".repeat(width + 2)).collect::<Vec<_>>().join("|"));
    for row in rows {
        line(row.iter().map(String::as_str).collect());
    }
}

/// The middle one of many times.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A time in microseconds.
pub fn micros(time: Duration) -> String {
    format!("{:.0} us", time.as_secs_f64() * 1e6)
}

/// How many times as much.
pub fn ratio(large: Duration, small: Duration) -> String {
    format!("{:.2}", large.as_secs_f64() / small.as_secs_f64())
}
