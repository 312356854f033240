//! `toolgate grant`: grants and delegation.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;
use toolgate_api::credentials::Reason;
use toolgate_api::grants::{
    CreateGrant, DelegateGrant, DelegationRequest, GrantPage, GrantQuery, GrantRequest, ListGrants, ResumeGrant,
    RevokeGrant, ShowGrant, ShowGrantTree, StatedGrant, SuspendGrant,
};
use toolgate_model::context::GrantContext;
use toolgate_model::scope::ScopeSet;
use toolgate_model::time::Timestamp;

use super::paging::{Paging, Shown};
use super::values::{Depth, Expiry, parse_constraint, read_object, typed, typed_option};
use super::{Connection, Failure, typos};
use crate::output::Report;

mod tree;

/// Create, delegate, suspend and revoke grants
#[derive(Args)]
pub(crate) struct Grant {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Create a grant: let an agent use a credential
    #[command(
        after_help = "Example:\n  toolgate grant create billing-agent CREDENTIAL --scope charges.create \\\n    --constraint max_invocations_per_hour=100 --constraint amount_max=5000 --delegatable --depth 1"
    )]
    Create {
        /// Agent id
        agent: String,
        /// Credential id
        credential: String,
        /// Principal that creates it [default: you]
        #[arg(long, value_name = "ID")]
        granted_by: Option<String>,
        #[command(flatten)]
        terms: Box<Terms>,
    },
    /// Delegate a grant, or part of it, to another agent
    #[command(after_help = "Example:\n  toolgate grant delegate GRANT helper-agent --scope charges.read --expires 8h")]
    Delegate {
        /// Id of the grant to delegate
        id: String,
        /// Agent that receives it
        agent: String,
        #[command(flatten)]
        terms: Box<Terms>,
    },
    /// List grants
    #[command(after_help = "Example:\n  toolgate grant list --agent billing-agent --status active")]
    List(Box<List>),
    /// Show a grant, with its effective authority and its lineage
    #[command(after_help = "Example:\n  toolgate grant show grant_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Show {
        /// Grant id
        id: String,
    },
    /// Show the tree of grants that were delegated from a grant
    #[command(after_help = "Example:\n  toolgate grant tree grant_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Tree {
        /// Grant id
        id: String,
    },
    /// Suspend a grant; grants delegated from it cannot be used either
    #[command(
        after_help = "Example:\n  toolgate grant suspend grant_01ARZ3NDEKTSV4RRFFQ69G5FAV --reason 'under review'"
    )]
    Suspend {
        /// Grant id
        id: String,
        /// Reason, for the audit log
        #[arg(long)]
        reason: Option<String>,
    },
    /// Resume a suspended grant
    #[command(after_help = "Example:\n  toolgate grant resume grant_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Resume {
        /// Grant id
        id: String,
    },
    /// Revoke a grant permanently, with all grants delegated from it
    #[command(
        after_help = "Example:\n  toolgate grant revoke grant_01ARZ3NDEKTSV4RRFFQ69G5FAV --reason 'contract ended'"
    )]
    Revoke {
        /// Grant id
        id: String,
        /// Reason, for the audit log
        #[arg(long)]
        reason: Option<String>,
    },
}

#[derive(Args)]
pub(crate) struct Terms {
    /// Scope of the credential; may be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Constraint; may be repeated
    #[arg(long = "constraint", value_name = "NAME=JSON", value_parser = parse_constraint)]
    constraints: Vec<(String, Value)>,
    /// File with constraints as a JSON object, or - for standard input
    #[arg(long = "constraints", value_name = "FILE")]
    constraints_file: Option<PathBuf>,
    /// Only for calls of this intent
    #[arg(long, value_name = "ID")]
    intent: Option<String>,
    /// Only for calls of this plan
    #[arg(long, value_name = "ID")]
    plan: Option<String>,
    /// Only for calls of this task
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Let the agent delegate it
    #[arg(long)]
    delegatable: bool,
    /// Levels of delegation: a number, or unlimited
    #[arg(long, value_name = "LEVELS", value_parser = Depth::parse)]
    depth: Option<Depth>,
    /// Expiry: a time, a duration such as 8h or 7d, or never [default: set by the gate]
    #[arg(long, value_name = "TIME", value_parser = Expiry::parse)]
    expires: Option<Expiry>,
}

#[derive(Args)]
pub(crate) struct List {
    /// Only grants of this agent
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Only grants for this service
    #[arg(long)]
    service: Option<String>,
    /// Only grants for this credential
    #[arg(long, value_name = "ID")]
    credential: Option<String>,
    /// Only grants with this status
    #[arg(long, value_parser = ["active", "suspended", "expired", "revoked"])]
    status: Option<String>,
    /// Only grants that were created directly, or delegated
    #[arg(long, value_parser = ["direct", "delegated"])]
    source: Option<String>,
    /// Only grants delegated from this grant
    #[arg(long, value_name = "ID")]
    source_grant: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Create { agent, credential, granted_by, terms } => {
                let scopes = terms.scopes.clone();
                let terms = terms.read()?;
                let body = GrantRequest {
                    credential_id: credential,
                    agent_id: typed("agent_id", &agent)?,
                    granted_by: typed_option("granted_by", granted_by)?,
                    scopes: terms.scopes,
                    constraints: terms.constraints,
                    context: terms.context,
                    delegatable: terms.delegatable,
                    delegation_depth: terms.depth,
                    expires_at: terms.expires_at,
                    allow_indefinite: terms.allow_indefinite,
                };
                let grant = client.to::<CreateGrant>().body(&body).send().await?;
                typos::warn_of_agent(&client, &agent).await;
                typos::warn_of_scopes(&client, grant.stated.service.as_str(), &scopes).await;
                let text = made(&grant.stated);
                Ok(Report::new(grant, text))
            }
            Self::Delegate { id, agent, terms } => {
                let terms = terms.read()?;
                let body = DelegationRequest {
                    action: None,
                    source_grant_id: None,
                    target_agent_id: Some(typed("target_agent_id", &agent)?),
                    agent_id: None,
                    scopes: terms.scopes,
                    constraints: terms.constraints,
                    context: terms.context,
                    delegatable: terms.delegatable,
                    delegation_depth: terms.depth,
                    expires_at: terms.expires_at,
                    allow_indefinite: terms.allow_indefinite,
                };
                let grant = client.to::<DelegateGrant>().named(&id).body(&body).send().await?;
                typos::warn_of_agent(&client, &agent).await;
                let text = made(&grant.stated);
                Ok(Report::new(grant, text))
            }
            Self::List(list) => list.run(&client).await,
            Self::Show { id } => Ok(Report::details(client.to::<ShowGrant>().named(&id).send().await?)),
            Self::Tree { id } => {
                let tree = client.to::<ShowGrantTree>().named(&id).send().await?;
                let text = tree::draw(&tree);
                Ok(Report::new(tree, text))
            }
            Self::Suspend { id, reason } => {
                let body = Reason { reason: typed_option("reason", reason)? };
                let grant = client.to::<SuspendGrant>().named(&id).body(&body).send().await?;
                let text = format!("{} suspended, with all grants delegated from it.", grant.stated.id);
                Ok(Report::new(grant, text))
            }
            Self::Resume { id } => {
                let grant = client.to::<ResumeGrant>().named(&id).send().await?;
                let text = format!("{} is {}.", grant.stated.id, grant.effective_status.as_str());
                Ok(Report::new(grant, text))
            }
            Self::Revoke { id, reason } => {
                let body = Reason { reason: typed_option("reason", reason)? };
                let revoked = client.to::<RevokeGrant>().named(&id).body(&body).send().await?;
                let text = format!(
                    "{} is {}; {} grants were revoked at revision {}.",
                    revoked.grant_id,
                    revoked.status.as_str(),
                    revoked.revoked_count,
                    revoked.revision.0
                );
                Ok(Report::new(revoked, text))
            }
        }
    }
}

struct GrantTerms {
    scopes: ScopeSet,
    constraints: Value,
    context: Option<GrantContext>,
    delegatable: Option<bool>,
    depth: Option<Option<u32>>,
    expires_at: Option<Option<Timestamp>>,
    allow_indefinite: bool,
}

impl Terms {
    fn read(self) -> Result<GrantTerms, Failure> {
        let mut constraints = self.constraints_file.as_ref().map(read_object).transpose()?.unwrap_or_default();
        for (name, value) in self.constraints {
            if constraints.insert(name.clone(), value).is_some() {
                return Err(Failure::Usage(format!("the constraint `{name}` is given twice")));
            }
        }
        let context = GrantContext {
            intent_id: typed_option("context.intent_id", self.intent)?,
            plan_id: typed_option("context.plan_id", self.plan)?,
            task_id: typed_option("context.task_id", self.task)?,
        };
        Ok(GrantTerms {
            scopes: typed("scopes", self.scopes)?,
            constraints: if constraints.is_empty() { Value::Null } else { Value::Object(constraints) },
            context: (context != GrantContext::default()).then_some(context),
            delegatable: self.delegatable.then_some(true),
            depth: self.depth.map(Depth::levels),
            expires_at: self.expires.map(Expiry::time),
            allow_indefinite: self.expires == Some(Expiry::Never),
        })
    }
}

impl List {
    async fn run(self, client: &crate::client::Client) -> Result<Report, Failure> {
        let query = |limit, cursor| {
            Ok::<_, Failure>(GrantQuery {
                agent_id: typed_option("agent_id", self.agent.as_ref())?,
                service: typed_option("service", self.service.as_ref())?,
                credential_id: self.credential.clone(),
                status: typed_option("status", self.status.as_ref())?,
                source: typed_option("source", self.source.as_ref())?,
                source_grant_id: self.source_grant.clone(),
                limit,
                cursor,
            })
        };
        let columns = [
            ("ID", "id"),
            ("AGENT", "agent_id"),
            ("SERVICE", "service"),
            ("SCOPES", "scopes"),
            ("STATUS", "effective_status"),
            ("SOURCE", "source"),
            ("EXPIRES", "expires_at"),
        ];
        let shown = Shown { name: "grants", columns: &columns };
        let page = |page: GrantPage| (page.grants, page.next_cursor);
        let report = self.paging.fetch::<ListGrants, _>(client, None, query, page, shown).await?;
        typos::warn_of_empty(client, &report, self.agent.as_deref(), self.service.as_deref()).await;
        Ok(report)
    }
}

fn made(grant: &StatedGrant) -> String {
    let end = grant.expires_at.map_or_else(|| "never".to_owned(), |time| format!("at {time}"));
    format!("Grant {} created for {}; expires {end}.", grant.id, grant.agent_id)
}
