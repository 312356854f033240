//! Mounts that have to be looked at: those whose connection has noticed a change, and those whose time has come.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;
use toolgate_model::credential::ServiceName;
use toolgate_model::principal::TenantId;

use crate::ports::mount::MountWatch;

/// How many mounts wait at most. What does not fit is looked at when its time comes.
const WAITING_LIMIT: usize = 1_024;

/// The mounts whose servers list something else than what was accepted.
#[derive(Debug, Default)]
pub struct ChangedMounts {
    waiting: Mutex<BTreeSet<(TenantId, ServiceName)>>,
    news: Notify,
}

impl ChangedMounts {
    /// Waits until there is one.
    pub async fn changed_any(&self) {
        self.news.notified().await;
    }

    /// Those that are waiting.
    pub fn take(&self) -> Vec<(TenantId, ServiceName)> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *waiting).into_iter().collect()
    }
}

impl MountWatch for ChangedMounts {
    fn changed(&self, tenant: &TenantId, service: &ServiceName) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < WAITING_LIMIT {
            waiting.insert((tenant.clone(), service.clone()));
        }
        drop(waiting);
        self.news.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_is_taken_once_however_often_it_is_told() {
        let changed = ChangedMounts::default();
        let (tenant, service) = (TenantId::default_tenant(), ServiceName::parse("files").unwrap());
        changed.changed(&tenant, &service);
        changed.changed(&tenant, &service);
        changed.changed_any().await;
        assert_eq!(changed.take(), [(tenant, service)]);
        assert_eq!(changed.take(), []);
    }
}
