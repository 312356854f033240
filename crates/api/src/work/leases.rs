//! Leases on parts of an intent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_model::id::{IntentId, LeaseId, TaskId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;
use toolgate_model::work::LeaseStatus;

use crate::endpoint::{RequestBody, endpoints};

endpoints! {
    tag "leases" = "Exclusive access of one agent to a part of an intent, for a while.";

    /// List the leases of an intent
    ListLeases = GET "/api/v1/intents/{intent_id}/leases" as "list_leases" {
        path: IntentId,
        reply: OK LeaseList = "The leases that are held.",
    }

    /// Acquire a lease
    ///
    /// A scope that is the id of a task, or `task:` and the id, claims the task: the same checks apply. A scope that is
    /// held is a conflict, which shows the lease.
    AcquireLease = POST "/api/v1/intents/{intent_id}/leases" as "acquire_lease" {
        path: IntentId,
        body: LeaseRequest = {"scope": "research", "duration_seconds": 300},
        reply: CREATED Lease = "The lease.",
        errors: [TooMany],
    }

    /// Renew a lease
    RenewLease = PATCH "/api/v1/intents/{intent_id}/leases/{lease_id}" as "renew_lease" {
        path: (IntentId, LeaseId),
        body: LeaseRenewal = {"duration_seconds": 300},
        reply: OK Lease = "The lease.",
    }

    /// Release a lease
    ///
    /// A claimed task is given back; a running one fails.
    ReleaseLease = DELETE "/api/v1/intents/{intent_id}/leases/{lease_id}" as "release_lease" {
        path: (IntentId, LeaseId),
        reply: OK Lease = "The lease.",
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseRequest {
    pub scope: Line,
    /// Default: 300.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub duration_seconds: Option<u32>,
}

impl RequestBody for LeaseRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseRenewal {
    /// From now; default: 300.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub duration_seconds: Option<u32>,
}

impl RequestBody for LeaseRenewal {}

/// The right of an agent to a part of an intent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Lease {
    pub id: LeaseId,
    pub intent_id: IntentId,
    /// The task that it claims.
    pub task_id: Option<TaskId>,
    pub agent_id: PrincipalId,
    pub scope: String,
    pub status: LeaseStatus,
    pub created_at: Timestamp,
    /// The same as `created_at`.
    pub acquired_at: Timestamp,
    pub expires_at: Timestamp,
    pub released_at: Option<Timestamp>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct LeaseList {
    pub leases: Vec<Lease>,
}
