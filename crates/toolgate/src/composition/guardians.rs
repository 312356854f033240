//! Assembles the gate's guardians: the policy engine, the external guardians with their links, and the metrics of their
//! failures.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use toolgate_egress::guardian_link::{GuardianLink, LinkAuthentication};
use toolgate_gate::ports::clock::Clock;
use toolgate_gate::ports::ledger::Policies;
use toolgate_guardian::composition::{Alarm, Guardians, LogAlarm};
use toolgate_guardian::policy::PolicyEngine;
use toolgate_guardian::remote::RemoteGuardian;
use toolgate_model::guard::FailureClass;
use toolgate_model::secret::Secret;
use toolgate_server::operations::metrics::Metrics;

use super::{StartError, guarded_client};
use crate::configuration::{Configuration, GuardianAuthentication, GuardianEntry};

pub(super) fn open(
    configuration: &Configuration,
    policies: Arc<dyn Policies>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
) -> Result<Guardians, StartError> {
    let policy = Arc::new(PolicyEngine::new(policies, clock));
    let entries = &configuration.guardians.guardians;
    let remote = entries.iter().map(|entry| guardian(configuration, entry)).collect::<Result<Vec<_>, _>>()?;
    let alarm = Arc::new(CountingAlarm { log: LogAlarm::default(), metrics });
    Ok(Guardians::new(policy, remote, alarm).with_budget(configuration.guardian_budget))
}

fn guardian(configuration: &Configuration, entry: &GuardianEntry) -> Result<RemoteGuardian, StartError> {
    let refused = |reason: String| StartError::Guardian { name: entry.settings.name.clone(), reason };
    let copy = |secret: &Secret| Secret::new(secret.expose().to_owned());
    let authentication = match &entry.authentication {
        GuardianAuthentication::None => LinkAuthentication::None,
        GuardianAuthentication::Bearer(token) => LinkAuthentication::Bearer(copy(token)),
        GuardianAuthentication::Header { name, value } => LinkAuthentication::Header {
            name: HeaderName::try_from(name).map_err(|_| refused("`header` is not a valid header name".to_owned()))?,
            value: copy(value),
        },
    };
    let link = GuardianLink::new(
        guarded_client(configuration),
        entry.url.clone(),
        authentication,
        entry.max_response_bytes,
        entry.ca_certificate.clone(),
    );
    let link = link.map_err(|error| refused(error.to_string()))?;
    RemoteGuardian::new(entry.settings.clone(), Arc::new(link)).map_err(|error| refused(error.to_string()))
}

/// Counts failures besides logging them, and measures consultations.
struct CountingAlarm {
    log: LogAlarm,
    metrics: Arc<Metrics>,
}

impl Alarm for CountingAlarm {
    fn consulted(&self, guardian: &str, latency: Duration) {
        self.metrics.guardian_consulted(guardian, latency);
    }

    fn failed(&self, guardian: &str, class: FailureClass, open: bool) {
        self.metrics.guardian_failed(guardian, class.as_str(), open);
        self.log.failed(guardian, class, open);
    }
}
