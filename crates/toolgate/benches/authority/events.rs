//! Durable changes per second, each with its event, beside a bare flush of the same file system.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate_gate::ports::ledger::CreateVault;

use crate::seed::{self, audit};
use crate::table::print;
use crate::{Subject, postgres, sqlite};

const SPAN: Duration = Duration::from_secs(4);

pub async fn run() {
    let bare = bare_flushes();
    let mut rows = vec![vec!["file + fdatasync".to_owned(), "1".to_owned(), format!("{bare:.0}"), "1.00".to_owned()]];
    for subject in [sqlite().await, postgres().await] {
        seed::credential(subject.ledger.as_ref()).await;
        for writers in [1, 64] {
            let rate = changes(&subject, writers).await;
            rows.push(vec![
                subject.name.to_owned(),
                writers.to_string(),
                format!("{rate:.0}"),
                format!("{:.2}", rate / bare),
            ]);
        }
    }
    print("Durable events per second", &["store", "writers", "events/s", "to bare flush"], &rows);
}

fn bare_flushes() -> f64 {
    let mut file = tempfile::tempfile().unwrap();
    let begun = Instant::now();
    let mut count = 0_u32;
    while begun.elapsed() < SPAN {
        file.write_all(&[7; 400]).unwrap();
        file.sync_data().unwrap();
        count += 1;
    }
    f64::from(count) / begun.elapsed().as_secs_f64()
}

async fn changes(subject: &Subject, writers: usize) -> f64 {
    let begun = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|_| {
            let ledger = Arc::clone(&subject.ledger);
            tokio::spawn(async move {
                let mut count = 0_u32;
                while begun.elapsed() < SPAN {
                    ledger.create_vault(CreateVault { audit: audit(), vault: seed::vault() }).await.unwrap();
                    count += 1;
                }
                count
            })
        })
        .collect();
    let mut total = 0;
    for task in tasks {
        total += task.await.unwrap();
    }
    f64::from(total) / begun.elapsed().as_secs_f64()
}
