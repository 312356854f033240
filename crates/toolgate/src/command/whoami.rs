//! `toolgate whoami`: whose key is shown to which gate.

use clap::Args;
use serde_json::{Value, json};

use super::{Connection, Failure};
use crate::output::{Report, align, at, clean, plain};

/// Show whose key commands use, and for which gate
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate whoami\n  toolgate whoami --profile agent")]
pub(crate) struct Whoami {
    #[command(flatten)]
    pub(crate) connection: Connection,
}

impl Whoami {
    /// Asks the gate.
    pub(crate) async fn run(&self) -> Result<Report, Failure> {
        let access = self.connection.access()?;
        let mut caller = access.client()?.get("/api/v1/whoami").await?;
        let key = match &access.profile {
            Some(name) => format!("profile {}", clean(name)),
            None => "the environment".to_owned(),
        };
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let field = |name: &str| plain(at(&caller, name));
        let rows = vec![
            row("id:", field("id")),
            row("kind:", field("kind")),
            row("tenant:", field("tenant_id")),
            row("permissions:", field("permissions")),
            row("gate:", clean(&access.url)),
            row("key from:", key),
        ];
        let text = align(rows);
        if let Value::Object(members) = &mut caller {
            members.insert("url".to_owned(), json!(access.url));
            members.insert("profile".to_owned(), json!(access.profile));
        }
        Ok(Report::new(caller, text))
    }
}
