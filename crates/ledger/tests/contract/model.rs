//! Random sequences of everything that happens to grants, played on the ledger and on a simple model side by side.
//! After each step both must agree on what was done and where every grant stands, and no grant may do more than its
//! source.

mod action;
mod terms;
mod world;

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::Value;
use toolgate_gate::ports::ledger::{CreateGrant, DelegateGrant, GrantFilter, PageRequest};
use toolgate_gate::refusal::Refusal;
use toolgate_model::credential::Credential;
use toolgate_model::grant::{Grant, Lineage};
use toolgate_model::id::GrantId;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal};

use self::action::{Action, actions};
use self::terms::samples;
use self::world::{Outcome, World, pick};

/// The number of credentials at the beginning; some of them are revoked.
const CREDENTIALS: usize = 3;

#[test]
fn the_ledger_on_sqlite_does_what_the_model_does() {
    agree(64, LedgerFixture::sqlite);
}

#[test]
fn the_ledger_on_postgres_does_what_the_model_does() {
    agree(16, LedgerFixture::postgres);
}

fn agree(cases: u32, open: impl AsyncFn() -> LedgerFixture) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let fixture = runtime.block_on(open());
    let config = Config { cases, max_shrink_iters: 512, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&actions(), |actions| {
        runtime.block_on(async {
            // A new tenant for every sequence: cheaper than a new ledger, and equivalent.
            let mut game = Game::begin(fixture.tenant().await).await;
            for (step, action) in actions.iter().enumerate() {
                game.play(action).await.map_err(|error| describe(error, step, action))?;
            }
            game.end().await
        })
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

fn describe(error: TestCaseError, step: usize, action: &Action) -> TestCaseError {
    match error {
        TestCaseError::Fail(reason) => TestCaseError::fail(format!("step {step}, {action:?}: {reason}")),
        reject => reject,
    }
}

/// The ledger and the model, and how the things of one are called in the other.
struct Game {
    tenant: TestTenant,
    world: World,
    credentials: Vec<Credential>,
    grants: Vec<GrantId>,
}

impl Game {
    async fn begin(tenant: TestTenant) -> Self {
        let mut world = World::new(tenant.now().as_millis());
        let mut credentials = Vec::new();
        let vault = tenant.vault().await;
        for number in 0..CREDENTIALS {
            let mut credential = tenant.new_credential(vault.id);
            // The last one ends while the sequence is played.
            credential.expires_at = (number + 1 == CREDENTIALS).then(|| tenant.later(200));
            world.add_credential(credential.expires_at.map(|end| end.as_millis()));
            credentials.push(tenant.store_credential(credential).await);
        }
        Self { tenant, world, credentials, grants: Vec::new() }
    }

    async fn play(&mut self, action: &Action) -> Result<(), TestCaseError> {
        let expected = self.world.play(action);
        let done = self.play_on_the_ledger(action).await?;
        prop_assert_eq!(done, expected);
        self.compare().await
    }

    /// Runs it, and returns the outcome in the model's terms.
    async fn play_on_the_ledger(&mut self, action: &Action) -> Result<Outcome, TestCaseError> {
        let tenant = self.tenant.clone();
        Ok(match action {
            Action::Grant { credential, agent, terms } => {
                let credential = &self.credentials[*credential];
                let mut grant = tenant.new_grant(credential, &principal(agent));
                grant.authority = terms.authority(tenant.now());
                let stored = CreateGrant { audit: tenant.audit(), grant };
                let outcome = tenant.ledger.create_grant(stored).await;
                self.made(outcome)
            }
            Action::Delegate { source, agent, terms } => {
                let Some(source) = self.pick(*source) else { return Ok(Outcome::Nothing) };
                let source = tenant.lineage(source).await.grant().clone();
                let request = terms.request(&source.authority.scopes, tenant.now());
                let command = DelegateGrant { request, ..tenant.delegation(&source, agent) };
                let outcome = tenant.ledger.delegate_grant(command).await;
                self.made(outcome)
            }
            Action::Suspend(grant) => match self.pick(*grant) {
                Some(grant) => said(tenant.suspend(grant).await.map(drop)),
                None => Outcome::Nothing,
            },
            Action::Resume(grant) => match self.pick(*grant) {
                Some(grant) => said(tenant.resume(grant).await.map(drop)),
                None => Outcome::Nothing,
            },
            Action::Revoke(grant) => match self.pick(*grant) {
                Some(grant) => ended(tenant.revoke(grant).await.map(|revoked| revoked.grants)),
                None => Outcome::Nothing,
            },
            Action::Rotate(credential) => {
                let id = self.credentials[*credential].id;
                let current = tenant.ledger.credential(&tenant.id, id).await.map_err(failed)?.unwrap();
                said(tenant.ledger.rotate_credential(tenant.rotation(&current)).await.map(drop))
            }
            Action::RevokeCredential(credential) => {
                let id = self.credentials[*credential].id;
                ended(tenant.revoke_credential(id).await.map(|revoked| revoked.grants))
            }
            Action::Wait(seconds) => {
                tenant.wait(*seconds);
                tenant.ledger.announce_expired(tenant.now()).await.map_err(failed)?;
                Outcome::Done
            }
        })
    }

    fn pick(&self, number: usize) -> Option<GrantId> {
        pick(self.grants.len(), number).map(|grant| self.grants[grant])
    }

    fn made(&mut self, outcome: Result<Grant, Refusal>) -> Outcome {
        said(outcome.map(|grant| self.grants.push(grant.id)))
    }

    /// Every grant has the status of the model, and is within all its ancestors.
    async fn compare(&self) -> Result<(), TestCaseError> {
        let now = self.tenant.now();
        let lineages = self.lineages().await?;
        prop_assert_eq!(lineages.len(), self.grants.len());
        for (number, id) in self.grants.iter().enumerate() {
            let lineage = &lineages[id];
            prop_assert_eq!(lineage.grant().status(now), self.world.status(number), "own status of grant {}", number);
            prop_assert_eq!(lineage.standing(now).status, self.world.standing(number), "standing of grant {}", number);
            for above in lineage.ancestors() {
                assert_narrower(lineage, &lineages[&above.id])?;
            }
        }
        Ok(())
    }

    async fn end(self) -> Result<(), TestCaseError> {
        self.compare().await?;
        let lineages = self.lineages().await?;
        let samples = samples();
        for (number, id) in self.grants.iter().enumerate() {
            let lineage = &lineages[id];
            let effective = lineage.effective().constraints;
            for (parameters, values) in &samples {
                let permits = effective.check_parameters(parameters, None).is_ok();
                prop_assert_eq!(permits, self.world.permits(number, values), "{} by grant {}", parameters, number);
                for above in lineage.ancestors() {
                    let above = lineages[&above.id].effective().constraints;
                    prop_assert!(!permits || above.check_parameters(parameters, None).is_ok(), "{parameters} is wider");
                }
            }
            prop_assert_eq!(effective.max_invocations_per_hour, self.world.calls_per_hour(number));
            let below = self.tenant.ledger.descendants(&self.tenant.id, *id, 1000).await.map_err(failed)?;
            prop_assert_eq!(below.len(), self.world.count_below(number));
        }
        self.compare_events().await
    }

    /// The log matches the model, each transition once.
    async fn compare_events(&self) -> Result<(), TestCaseError> {
        let mut told: BTreeMap<String, usize> = BTreeMap::new();
        for event in self.tenant.events().await {
            let kind = event["type"].as_str().map(str::to_owned).unwrap_or_default();
            if kind.starts_with("grant.") || kind == "credential.rotated" || kind == "credential.revoked" {
                *told.entry(kind).or_default() += 1;
            }
        }
        prop_assert_eq!(told, self.world.transitions());
        Ok(())
    }

    async fn lineages(&self) -> Result<BTreeMap<GrantId, Lineage>, TestCaseError> {
        let all = GrantFilter::all(self.tenant.now());
        let page = self.tenant.ledger.grants(&self.tenant.id, all, PageRequest::first(1000)).await.map_err(failed)?;
        Ok(page.items.into_iter().map(|lineage| (lineage.grant().id, lineage)).collect())
    }
}

/// The effective authority of a grant is within that of its parent.
fn assert_narrower(grant: &Lineage, above: &Lineage) -> Result<(), TestCaseError> {
    let (own, above) = (grant.effective(), above.effective());
    prop_assert!(own.scopes.beyond(&above.scopes).is_empty(), "scopes widen");
    prop_assert!(above.expires_at.is_none_or(|end| own.expires_at.is_some_and(|own| own <= end)), "it outlives");
    let left = above.delegation_depth.below();
    prop_assert!(left.is_some_and(|left| own.delegation_depth.is_within(left)), "depth does not go down");
    prop_assert_eq!(own.context.first_widening(&above.context), None);
    prop_assert_eq!(own.context.within(&above.context), own.context, "a binding is lost");
    let most = above.constraints.max_invocations_per_hour;
    let widens = most.is_some_and(|most| own.constraints.max_invocations_per_hour.is_none_or(|own| own > most));
    prop_assert!(!widens, "calls per hour widen");
    Ok(())
}

fn said(result: Result<(), Refusal>) -> Outcome {
    result.map_or_else(|refusal| Outcome::Refused(refusal.code()), |()| Outcome::Done)
}

fn ended(result: Result<u64, Refusal>) -> Outcome {
    result.map_or_else(|refusal| Outcome::Refused(refusal.code()), Outcome::Ended)
}

fn failed(refusal: Refusal) -> TestCaseError {
    TestCaseError::fail(format!("{}: {refusal}", refusal.code().as_str()))
}

/// Parameters, and the same for the model: numbers by name.
type Sample = (Value, BTreeMap<&'static str, i64>);
