//! Taking back one grant with a hundred thousand below it.

use std::time::Instant;

use toolgate_gate::ports::ledger::RevokeGrant;

use crate::seed::{self, Row, audit, new_id};
use crate::table::print;
use crate::{postgres, sqlite};

const BELOW: usize = 100_000;
/// Each grant is delegated this often, so that the tree is neither a list nor a star.
const FAN: usize = 10;

pub async fn run() {
    let mut table = Vec::new();
    for subject in [sqlite().await, postgres().await] {
        let credential = seed::credential(subject.ledger.as_ref()).await;
        let mut rows = vec![Row { id: new_id(), agent: "root".to_owned(), source: None, level: 0 }];
        for number in 0..BELOW {
            let source = &rows[number / FAN];
            let (above, level) = (source.id, source.level + 1);
            rows.push(Row { id: new_id(), agent: format!("agent-{number}"), source: Some(above), level });
        }
        subject.seeder.insert(credential, &rows).await;
        let begun = Instant::now();
        let command = RevokeGrant { audit: audit(), id: rows[0].id, reason: "benchmark".to_owned() };
        let revoked = subject.ledger.revoke_grant(command).await.unwrap();
        let took = begun.elapsed();
        assert_eq!(usize::try_from(revoked.grants).unwrap(), BELOW + 1);
        let each = took.as_secs_f64() * 1e6 / revoked.grants as f64;
        table.push(vec![subject.name.to_owned(), format!("{:.2} s", took.as_secs_f64()), format!("{each:.1} us")]);
    }
    print("Cascade over 100,000 grants, one transaction with 100,001 events", &["engine", "whole", "each"], &table);
}
