//! Limits the number of concurrent simulations: each reads the log and keeps a processor busy beside the calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolgate_model::principal::{PrincipalId, TenantId};

use crate::identify::Caller;
use crate::refusal::{Code, Refusal};

/// Per principal.
const OF_PRINCIPAL: usize = 1;
/// Per process.
const IN_ALL: usize = 4;

type Owner = (TenantId, PrincipalId);

/// The simulations in progress.
#[derive(Default)]
pub(crate) struct Trials(Mutex<BTreeMap<Owner, usize>>);

/// The slot of a running simulation, released on drop.
pub(super) struct Place {
    trials: Arc<Trials>,
    owner: Owner,
}

impl Trials {
    /// Takes a slot for this caller.
    pub(super) fn enter(self: &Arc<Self>, caller: &Caller) -> Result<Place, Refusal> {
        let owner = (caller.tenant().clone(), caller.id().clone());
        let mut running = self.running();
        let reason = if running.get(&owner).is_some_and(|own| *own >= OF_PRINCIPAL) {
            format!("a simulation by `{}` is running; wait for it to finish", caller.id())
        } else if running.values().sum::<usize>() >= IN_ALL {
            format!("{IN_ALL} simulations are running on this gate; wait for one of them to finish")
        } else {
            *running.entry(owner.clone()).or_default() += 1;
            return Ok(Place { trials: Arc::clone(self), owner });
        };
        Err(Refusal::new(Code::TooManySimulations, reason))
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<Owner, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut running = self.trials.running();
        if let Some(own) = running.get_mut(&self.owner) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                running.remove(&self.owner);
            }
        }
    }
}
