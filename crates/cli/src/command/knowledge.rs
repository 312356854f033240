//! `toolgate knowledge`: collections of documents that agents search.

use clap::{Args, Subcommand};
use toolgate_api::parameters;
use toolgate_api::stores::{
    CollectionRequest, CreateCollection, DeleteCollection, DocumentPage, ListCollections, ListDocuments,
    RemoveDocument, ShowCollection,
};

use self::ingest::Ingest;
use super::memory::{granting, vault_of};
use super::paging::{Paging, Shown};
use super::values::{typed, typed_option};
use super::{Connection, Failure};
use crate::output::{Report, clean, table_of};
use crate::prompt;

mod ingest;

/// Manage collections of documents, which agents search
#[derive(Args)]
pub(crate) struct Knowledge {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Create a collection, with a credential by which it can be granted
    #[command(
        after_help = "Example:\n  toolgate knowledge create handbook\n  toolgate knowledge create forum --untrusted"
    )]
    Create {
        /// Name of the collection, which is the service of its tool
        name: String,
        /// Anybody may have written what it holds: mark conversations that search in it as `untrusted`
        #[arg(long)]
        untrusted: bool,
        /// Maximum number of documents [default: 1000]
        #[arg(long, value_name = "COUNT")]
        max_documents: Option<u32>,
        /// Description for people and agents
        #[arg(long)]
        description: Option<String>,
        /// Vault of the credential [default: the vault `mounts`]
        #[arg(long, value_name = "VAULT")]
        vault: Option<String>,
    },
    /// List collections
    #[command(after_help = "Example:\n  toolgate knowledge list")]
    List,
    /// Show a collection
    #[command(after_help = "Example:\n  toolgate knowledge show handbook")]
    Show {
        /// Name of the collection
        name: String,
    },
    /// Delete a collection with its documents
    #[command(after_help = "Example:\n  toolgate knowledge delete handbook --yes")]
    Delete {
        /// Name of the collection
        name: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Ingest files: text, Markdown and HTML
    ///
    /// The id of a document is the path of its file, with `:` between its parts. A document with the same id is replaced.
    #[command(
        after_help = "Example:\n  toolgate knowledge ingest handbook docs/\n  toolgate knowledge ingest handbook refunds.md returns.html"
    )]
    Ingest(Ingest),
    /// List the documents of a collection
    #[command(after_help = "Example:\n  toolgate knowledge documents handbook")]
    Documents {
        /// Name of the collection
        name: String,
        #[command(flatten)]
        paging: Paging,
    },
    /// Remove a document from a collection
    #[command(after_help = "Example:\n  toolgate knowledge remove handbook docs:refunds.md --yes")]
    Remove {
        /// Name of the collection
        name: String,
        /// Id of the document
        document: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Create { name, untrusted, max_documents, description, vault } => {
                let body = CollectionRequest {
                    name: typed("name", name)?,
                    description: typed_option("description", description)?,
                    untrusted: untrusted.then_some(true),
                    max_documents,
                    vault_id: Some(vault_of(&client, vault).await?),
                };
                let collection = client.to::<CreateCollection>().body(&body).send().await?;
                let text = format!("Collection {} created.", clean(collection.name.as_str()));
                let aside = granting(collection.credential_id, "knowledge.search");
                Ok(Report::new(collection, text).with_aside(aside))
            }
            Self::List => {
                let list = client.to::<ListCollections>().send().await?;
                let columns =
                    [("NAME", "name"), ("CHUNKS", "chunks"), ("UNTRUSTED", "untrusted"), ("CREATED", "created_at")];
                let text = table_of(&list.collections, &columns);
                Ok(Report::new(list, text))
            }
            Self::Show { name } => Ok(Report::details(client.to::<ShowCollection>().named(&name).send().await?)),
            Self::Delete { name, yes } => {
                prompt::confirm(&format!("this deletes the collection {} with its documents", clean(&name)), yes)?;
                let removed = client.to::<DeleteCollection>().named(&name).send().await?;
                let text = format!("Collection {} deleted.", clean(removed.name.as_str()));
                Ok(Report::new(removed, text))
            }
            Self::Ingest(ingest) => ingest.run(&client, connection.json).await,
            Self::Documents { name, paging } => {
                let columns = [
                    ("ID", "id"),
                    ("TITLE", "title"),
                    ("CHUNKS", "chunks"),
                    ("HIDDEN", "removed.hidden_elements"),
                    ("INGESTED", "created_at"),
                ];
                let shown = Shown { name: "documents", columns: &columns };
                let query = |limit, cursor| Ok(parameters::Paging { limit, cursor });
                let page = |page: DocumentPage| (page.documents, page.next_cursor);
                paging.fetch::<ListDocuments, _>(&client, Some(&name), query, page, shown).await
            }
            Self::Remove { name, document, yes } => {
                prompt::confirm(&format!("this removes the document {}", clean(&document)), yes)?;
                let removed = client.to::<RemoveDocument>().named(&name).named(&document).send().await?;
                let text = format!("Document {} removed.", clean(&removed.id));
                Ok(Report::new(removed, text))
            }
        }
    }
}
