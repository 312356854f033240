//! `toolgate grant`: who may use which credential, and what was passed on to whom.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Map, Value, json};

use super::paging::Paging;
use super::values::{Depth, Expiry, parse_constraint, read_object};
use super::{Connection, Failure, object, typos};
use crate::client::escaped;
use crate::output::{Report, at, plain};

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
    /// Let an agent use a credential
    #[command(
        after_help = "Example:\n  toolgate grant create billing-agent CREDENTIAL --scope charges.create \\\n    --constraint max_invocations_per_hour=100 --constraint amount_max=5000 --delegatable --depth 1"
    )]
    Create {
        /// The agent
        agent: String,
        /// The credential's id
        credential: String,
        /// In whose name it is given; yours unless said otherwise
        #[arg(long, value_name = "ID")]
        granted_by: Option<String>,
        #[command(flatten)]
        terms: Box<Terms>,
    },
    /// Pass a grant on to another agent, within its own bounds
    #[command(after_help = "Example:\n  toolgate grant delegate GRANT helper-agent --scope charges.read --expires 8h")]
    Delegate {
        /// The grant to pass on
        id: String,
        /// The agent that gets it
        agent: String,
        #[command(flatten)]
        terms: Box<Terms>,
    },
    /// List grants
    #[command(after_help = "Example:\n  toolgate grant list --agent billing-agent --status active")]
    List(Box<List>),
    /// Show one, with what it allows in effect and where it comes from
    #[command(after_help = "Example:\n  toolgate grant show grant_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Show {
        /// Its id
        id: String,
    },
    /// Draw what was delegated from one
    #[command(after_help = "Example:\n  toolgate grant tree grant_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Tree {
        /// Its id
        id: String,
    },
    /// Pause one; what was delegated from it cannot be used either
    #[command(
        after_help = "Example:\n  toolgate grant suspend grant_01ARZ3NDEKTSV4RRFFQ69G5FAV --reason 'under review'"
    )]
    Suspend {
        /// Its id
        id: String,
        /// Why, for the log
        #[arg(long)]
        reason: Option<String>,
    },
    /// End the pause of one
    #[command(after_help = "Example:\n  toolgate grant resume grant_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Resume {
        /// Its id
        id: String,
    },
    /// Take one back for good, with everything that was delegated from it
    #[command(
        after_help = "Example:\n  toolgate grant revoke grant_01ARZ3NDEKTSV4RRFFQ69G5FAV --reason 'contract ended'"
    )]
    Revoke {
        /// Its id
        id: String,
        /// Why, for the log
        #[arg(long)]
        reason: Option<String>,
    },
}

/// What a grant allows.
#[derive(Args)]
pub(crate) struct Terms {
    /// A scope of the credential; may be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// A constraint; may be repeated
    #[arg(long = "constraint", value_name = "NAME=JSON", value_parser = parse_constraint)]
    constraints: Vec<(String, Value)>,
    /// A file with constraints as a JSON object, or - for standard input
    #[arg(long = "constraints", value_name = "FILE")]
    constraints_file: Option<PathBuf>,
    /// The intent that it is for
    #[arg(long, value_name = "ID")]
    intent: Option<String>,
    /// The plan that it is for
    #[arg(long, value_name = "ID")]
    plan: Option<String>,
    /// The task that it is for
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Let the agent pass it on
    #[arg(long)]
    delegatable: bool,
    /// How many times over it may be passed on: a number, or unlimited
    #[arg(long, value_name = "LEVELS", value_parser = Depth::parse)]
    depth: Option<Depth>,
    /// When it ends: a time, a duration from now on, as 8h or 7d, or never; without this the gate's default holds
    #[arg(long, value_name = "TIME", value_parser = Expiry::parse)]
    expires: Option<Expiry>,
}

/// Which grants.
#[derive(Args)]
pub(crate) struct List {
    /// Of this agent
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// For this service
    #[arg(long)]
    service: Option<String>,
    /// Over this credential
    #[arg(long, value_name = "ID")]
    credential: Option<String>,
    /// In this state
    #[arg(long, value_parser = ["active", "suspended", "expired", "revoked"])]
    status: Option<String>,
    /// Given directly, or delegated
    #[arg(long, value_parser = ["direct", "delegated"])]
    source: Option<String>,
    /// Delegated from this grant
    #[arg(long, value_name = "ID")]
    source_grant: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

impl Action {
    /// Does what was asked.
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        let change = |method: Method, id: String, what: &'static str, body: Option<Value>| {
            let client = &client;
            async move { client.change(method, &path_of(&id, what), body.as_ref()).await }
        };
        match self {
            Self::Create { agent, credential, granted_by, terms } => {
                let scopes = terms.scopes.clone();
                let mut body = terms.body()?;
                body.extend(object([
                    ("agent_id", Some(json!(agent))),
                    ("credential_id", Some(json!(credential))),
                    ("granted_by", granted_by.map(Value::from)),
                ]));
                let grant = client.change(Method::POST, "/api/v1/grants", Some(&Value::Object(body))).await?;
                typos::warn_of_agent(&client, &agent).await;
                typos::warn_of_scopes(&client, at(&grant, "service").as_str().unwrap_or_default(), &scopes).await;
                let text = made(&grant);
                Ok(Report::new(grant, text))
            }
            Self::Delegate { id, agent, terms } => {
                let mut body = terms.body()?;
                body.extend(object([("target_agent_id", Some(json!(agent)))]));
                let grant = change(Method::POST, id, "/delegate", Some(Value::Object(body))).await?;
                typos::warn_of_agent(&client, &agent).await;
                let text = made(&grant);
                Ok(Report::new(grant, text))
            }
            Self::List(list) => list.run(&client).await,
            Self::Show { id } => Ok(Report::details(client.get(&path_of(&id, "")).await?)),
            Self::Tree { id } => {
                let tree = client.get(&path_of(&id, "/tree")).await?;
                let text = tree::draw(&tree);
                Ok(Report::new(tree, text))
            }
            Self::Suspend { id, reason } => {
                let body = reason.map(|reason| json!({"reason": reason}));
                let grant = change(Method::PATCH, id, "/suspend", body).await?;
                let text =
                    format!("{} is suspended, and with it all that was delegated from it.", plain(at(&grant, "id")));
                Ok(Report::new(grant, text))
            }
            Self::Resume { id } => {
                let grant = change(Method::PATCH, id, "/resume", None).await?;
                let text = format!("{} is {}.", plain(at(&grant, "id")), plain(at(&grant, "effective_status")));
                Ok(Report::new(grant, text))
            }
            Self::Revoke { id, reason } => {
                let body = reason.map(|reason| json!({"reason": reason}));
                let revoked = change(Method::DELETE, id, "", body).await?;
                let text = format!(
                    "{} is {}; {} grants were revoked, as of revision {}.",
                    plain(at(&revoked, "grant_id")),
                    plain(at(&revoked, "status")),
                    plain(at(&revoked, "revoked_count")),
                    plain(at(&revoked, "revision"))
                );
                Ok(Report::new(revoked, text))
            }
        }
    }
}

impl Terms {
    fn body(self) -> Result<Map<String, Value>, Failure> {
        let mut constraints = self.constraints_file.as_ref().map(read_object).transpose()?.unwrap_or_default();
        for (name, value) in self.constraints {
            if constraints.insert(name.clone(), value).is_some() {
                return Err(Failure::Usage(format!("the constraint `{name}` is given twice")));
            }
        }
        let context = object([
            ("intent_id", self.intent.map(Value::from)),
            ("plan_id", self.plan.map(Value::from)),
            ("task_id", self.task.map(Value::from)),
        ]);
        Ok(object([
            ("scopes", Some(json!(self.scopes))),
            ("constraints", (!constraints.is_empty()).then_some(Value::Object(constraints))),
            ("context", (!context.is_empty()).then_some(Value::Object(context))),
            ("delegatable", self.delegatable.then_some(Value::Bool(true))),
            ("delegation_depth", self.depth.map(Depth::to_json)),
            ("expires_at", self.expires.map(Expiry::to_json)),
            ("allow_indefinite", (self.expires == Some(Expiry::Never)).then_some(Value::Bool(true))),
        ]))
    }
}

impl List {
    async fn run(self, client: &crate::client::Client) -> Result<Report, Failure> {
        let (agent, service) = (self.agent.clone(), self.service.clone());
        let parameters = [
            ("agent_id", self.agent),
            ("service", self.service),
            ("credential_id", self.credential),
            ("status", self.status),
            ("source", self.source),
            ("source_grant_id", self.source_grant),
        ];
        let columns = [
            ("ID", "id"),
            ("AGENT", "agent_id"),
            ("SERVICE", "service"),
            ("SCOPES", "scopes"),
            ("STATUS", "effective_status"),
            ("SOURCE", "source"),
            ("EXPIRES", "expires_at"),
        ];
        let report = self.paging.fetch(client, "/api/v1/grants", &parameters, "grants", &columns).await?;
        typos::warn_of_empty(client, &report, agent.as_deref(), service.as_deref()).await;
        Ok(report)
    }
}

fn path_of(id: &str, what: &str) -> String {
    format!("/api/v1/grants/{}{what}", escaped(id))
}

fn made(grant: &Value) -> String {
    format!(
        "Grant {} was made for {}; it ends {}.",
        plain(at(grant, "id")),
        plain(at(grant, "agent_id")),
        at(grant, "expires_at").as_str().map_or_else(|| "never".to_owned(), |time| format!("at {time}"))
    )
}
