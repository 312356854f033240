//! `toolgate whoami`.

use clap::Args;
use serde_json::{Value, json};
use toolgate_api::agents;

use super::{Connection, Failure};
use crate::output::{Report, align, clean, plain};

/// Show the principal whose key commands use, and the gate
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate whoami\n  toolgate whoami --profile agent")]
pub(crate) struct Whoami {
    #[command(flatten)]
    pub(crate) connection: Connection,
}

impl Whoami {
    pub(crate) async fn run(&self) -> Result<Report, Failure> {
        let access = self.connection.access()?;
        let caller = access.client()?.to::<agents::Whoami>().send().await?;
        let key = match &access.profile {
            Some(name) => format!("profile {}", clean(name)),
            None => "the environment".to_owned(),
        };
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let rows = vec![
            row("id:", caller.id.to_string()),
            row("kind:", caller.kind.as_str().to_owned()),
            row("tenant:", caller.tenant_id.to_string()),
            row("permissions:", plain(&json!(caller.permissions))),
            row("gate:", clean(&access.url)),
            row("key from:", key),
        ];
        let text = align(rows);
        let mut value = json!(caller);
        if let Value::Object(members) = &mut value {
            members.insert("url".to_owned(), json!(access.url));
            members.insert("profile".to_owned(), json!(access.profile));
        }
        Ok(Report::new(value, text))
    }
}
