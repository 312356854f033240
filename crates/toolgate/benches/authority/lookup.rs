//! Looking a grant up and delegating one, with a thousand and with a million grants stored.

use std::time::{Duration, Instant};

use toolgate_gate::ports::ledger::{DelegateGrant, GrantFilter, PageRequest};
use toolgate_model::constraint::Constraints;
use toolgate_model::context::GrantContext;
use toolgate_model::grant::DelegationRequest;
use toolgate_model::id::CredentialId;
use toolgate_model::principal::PrincipalId;

use crate::seed::{self, Row, audit, new_id, now, scopes, tenant};
use crate::table::{median, micros, print, ratio};
use crate::{Subject, postgres, sqlite};

const SMALL: usize = 1_000;
const LARGE: usize = 1_000_000;
const SAMPLES: usize = 400;

struct Costs {
    lookup: Duration,
    listing: Duration,
    delegation: Duration,
}

pub async fn run() {
    let mut rows = Vec::new();
    for (small, large) in [(sqlite().await, sqlite().await), (postgres().await, postgres().await)] {
        let few = fill(&small, SMALL).await;
        let many = fill(&large, LARGE).await;
        // Interleaved, so that what else the machine does falls on both alike.
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for round in 0..4 {
            first.push(measure(&small, &few, round).await);
            second.push(measure(&large, &many, round).await);
        }
        for (what, pick) in [
            ("grant with lineage", (|costs: &Costs| costs.lookup) as fn(&Costs) -> Duration),
            ("grants of one agent", |costs| costs.listing),
            ("delegation, durable", |costs| costs.delegation),
        ] {
            let few = median(first.iter().map(pick).collect());
            let many = median(second.iter().map(pick).collect());
            rows.push(vec![small.name.to_owned(), what.to_owned(), micros(few), micros(many), ratio(many, few)]);
        }
    }
    print("Cost by grants stored (median)", &["engine", "operation", "1,000", "1,000,000", "ratio"], &rows);
}

async fn fill(subject: &Subject, count: usize) -> Vec<Row> {
    let credential: CredentialId = seed::credential(subject.ledger.as_ref()).await;
    let rows = seed::pairs(count);
    subject.seeder.insert(credential, &rows).await;
    rows
}

async fn measure(subject: &Subject, rows: &[Row], round: usize) -> Costs {
    let pick = |sample: usize| &rows[(sample * 7919 + round * 104_729) % rows.len()];
    let ledger = &subject.ledger;
    let (mut lookup, mut listing, mut delegation) = (Vec::new(), Vec::new(), Vec::new());
    for sample in 0..SAMPLES {
        let row = pick(sample);
        let begun = Instant::now();
        assert!(ledger.lineage(&tenant(), row.id).await.unwrap().is_some());
        lookup.push(begun.elapsed());
        let agent = PrincipalId::parse(&row.agent).unwrap();
        let begun = Instant::now();
        let filter = GrantFilter { agent: Some(agent.clone()), ..GrantFilter::all(now()) };
        assert!(!ledger.grants(&tenant(), filter, PageRequest::first(100)).await.unwrap().items.is_empty());
        listing.push(begun.elapsed());
        if row.level > 0 {
            continue;
        }
        let request = DelegationRequest {
            scopes: scopes(),
            constraints: Constraints::default(),
            context: GrantContext::default(),
            delegatable: None,
            delegation_depth: None,
            expires_at: None,
        };
        let command = DelegateGrant {
            audit: audit(),
            id: new_id(),
            source: row.id,
            target: PrincipalId::parse("receiver").unwrap(),
            granted_by: agent,
            request,
        };
        let begun = Instant::now();
        ledger.delegate_grant(command).await.unwrap();
        delegation.push(begun.elapsed());
    }
    Costs { lookup: median(lookup), listing: median(listing), delegation: median(delegation) }
}
