//! The export of traces and metrics: the collector, the sampling, and the token, which is never in the file.

use std::time::Duration;

use toolgate_cli::environment::Environment;
use toolgate_gate::SampleRatio;
use toolgate_model::secret::Secret;
use url::Url;

use super::resolve::Resolved;
use super::{ConfigurationError, keys, missing, take_secret};

/// The variable of the token that the collector is shown.
const TOKEN: &str = "TOOLGATE_TELEMETRY_OTLP_TOKEN";

/// Where traces and metrics are exported to.
pub struct TelemetrySettings {
    /// The address below which the paths of OTLP are.
    pub endpoint: Url,
    pub token: Option<Secret>,
    /// Which calls are exported as traces.
    pub traces: SampleRatio,
    /// `None` disables the export.
    pub metrics_interval: Option<Duration>,
}

pub(super) fn read(
    resolved: &mut Resolved,
    environment: &mut Environment,
) -> Result<Option<TelemetrySettings>, ConfigurationError> {
    let token = take_secret(environment, TOKEN)?;
    let Some(endpoint) = resolved.optional_text(&keys::OTLP_ENDPOINT) else {
        return match token {
            None => Ok(None),
            // A token that is given and not used would leave its owner believing that something is exported.
            Some(_) => {
                let problem = format!("{TOKEN} is set, but telemetry.otlp_endpoint is not; set it, or unset the token");
                Err(ConfigurationError::one(problem))
            }
        };
    };
    let per_million = u32::try_from(resolved.integer(&keys::TRACES_PER_MILLION)?).unwrap_or(u32::MAX);
    let interval = resolved.seconds(&keys::METRICS_INTERVAL)?;
    Ok(Some(TelemetrySettings {
        endpoint: Url::parse(&endpoint).map_err(|_| missing(&keys::OTLP_ENDPOINT))?,
        token,
        traces: SampleRatio::per_million(per_million),
        metrics_interval: (!interval.is_zero()).then_some(interval),
    }))
}
