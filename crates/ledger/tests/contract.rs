//! The contract of the ledger: every rule of the `Ledger` port, on SQLite and on PostgreSQL.
//!
//! A rule is an `async fn` over a fixture; `contract!` at the top of each file turns those that it names into a test on
//! each engine. A rule that is not named there is dead code, which the compiler reports.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is a test, and its helpers too"
)]

mod contract {
    /// Runs rules on both engines.
    macro_rules! contract {
        ($($rule:ident),+ $(,)?) => {
            mod sqlite {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $rule() {
                    super::$rule(&toolgate_testkit::ledger_fixture::LedgerFixture::sqlite().await).await;
                })+
            }
            mod postgres {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $rule() {
                    super::$rule(&toolgate_testkit::ledger_fixture::LedgerFixture::postgres().await).await;
                })+
            }
        };
    }

    mod support;

    mod abandoned;
    mod administration;
    mod admission;
    mod agent_tasks;
    mod approval_decisions;
    mod approval_links;
    mod approval_reaping;
    mod approval_sessions;
    mod approval_webhooks;
    mod approvals;
    mod audit;
    mod buckets;
    mod budget_model;
    mod budgets;
    mod call_concurrency;
    mod call_endings;
    mod closing;
    mod concurrency;
    mod consents;
    mod coordinator_budgets;
    mod counts;
    mod credentials;
    mod decisions;
    mod delegation;
    mod denial_counts;
    mod detached;
    mod event_news;
    mod expiry;
    mod freshness;
    mod grants;
    mod held_grants;
    mod history;
    mod hooks;
    mod idempotency;
    mod invocations;
    mod isolation;
    mod marks;
    mod master_keys;
    mod model;
    mod mounts;
    mod opening;
    mod paging;
    mod policies;
    mod principal_changes;
    mod principals;
    mod rate_model;
    mod rates;
    mod revisions;
    mod revocation;
    mod services;
    mod sessions;
    mod settings;
    mod settlement;
    mod standing_approvals;
    mod stops;
    mod stores;
    mod suspension;
    mod vaults;
    mod work;
    mod work_calls;
    mod work_coordinators;
    mod work_delegation;
    mod work_leases;
    mod work_model;
}
