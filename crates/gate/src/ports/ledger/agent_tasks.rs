//! Tasks and contexts of peer agents, and which agent each belongs to.

use async_trait::async_trait;
use toolgate_model::a2a::Named;
use toolgate_model::credential::ServiceName;
use toolgate_model::id::GrantId;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use crate::refusal::Refusal;

#[async_trait]
pub trait AgentTasks: Send + Sync {
    /// Returns those of the ids that belong to the agent.
    async fn owned_tasks(&self, query: OwnedTasks) -> Result<Named, Refusal>;
    /// Makes ids the agent's. Refused if one of them belongs to another agent.
    async fn own_tasks(&self, command: OwnTasks) -> Result<(), Refusal>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedTasks {
    pub tenant: TenantId,
    pub peer: ServiceName,
    pub agent: PrincipalId,
    pub named: Named,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTasks {
    pub tenant: TenantId,
    pub peer: ServiceName,
    pub agent: PrincipalId,
    /// The grant that the call used; when it is revoked, they are forgotten.
    pub grant: GrantId,
    pub named: Named,
    pub time: Timestamp,
    /// How many ids of the agent are remembered; `None` for the usual limit.
    pub limit: Option<u64>,
}
