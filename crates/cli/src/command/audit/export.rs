//! `toolgate audit export`: a verifiable file, or lines for a SIEM.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use toolgate_api::audit::ExportLog;
use toolgate_model::audit_export::broken_reason;

use super::feed::{Feed, Selection};
use super::output_writer::OutputWriter;
use super::position::PositionFile;
use crate::client::Client;
use crate::command::Failure;
use crate::command::stop::stop_signals;
use crate::output::{Report, plain};
use crate::siem::LineFormat;

#[derive(Args)]
pub(crate) struct Export {
    /// File for the verifiable export [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of the export
    #[arg(long, value_enum, default_value_t = Format::Verifiable)]
    format: Format,
    /// Start after the event with this sequence
    #[arg(long, value_name = "SEQUENCE")]
    after: Option<u64>,
    /// Wait for new events at the end of the log
    #[arg(long)]
    follow: bool,
    /// Save the position of the reader in this file, and continue from it
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Only events of these types
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,
    /// Only events about this agent
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The whole log with its proofs, for `toolgate audit verify`
    Verifiable,
    /// Stored events with their sequence
    Jsonl,
    /// OCSF 1.3.0: API Activity, and the classes of identity and access management
    Ocsf,
    /// Event envelopes of OpenWOP
    Openwop,
}

impl Export {
    pub(crate) async fn run(self, client: &Client) -> Result<Report, Failure> {
        match self.format {
            Format::Verifiable => self.verifiable(client).await,
            Format::Jsonl => self.lines(client, LineFormat::Stored).await,
            Format::Ocsf => self.lines(client, LineFormat::Ocsf).await,
            Format::Openwop => self.lines(client, LineFormat::OpenWop).await,
        }
    }

    async fn verifiable(self, client: &Client) -> Result<Report, Failure> {
        let Self { output, format: _, after, follow, state, types, agent } = self;
        if after.is_some() || follow || state.is_some() || !types.is_empty() || agent.is_some() {
            let sentence = "a verifiable export is the whole log as it is now; for --after, --follow, --state, --type and \
                --agent choose another --format";
            return Err(Failure::Usage(sentence.to_owned()));
        }
        verifiable(client, output.as_deref()).await
    }

    async fn lines(self, client: &Client, format: LineFormat) -> Result<Report, Failure> {
        if self.output.is_some() {
            let sentence = "--output requires the verifiable format; other formats go to standard output";
            return Err(Failure::Usage(sentence.to_owned()));
        }
        let selection = Selection { types: self.types, agent: self.agent };
        let position = PositionFile::open(self.state)?;
        let stop = if self.follow { Some(stop_signals()?) } else { None };
        let output_writer = OutputWriter::of_stdout().map_err(|error| Failure::io("standard output", error))?;
        Feed::new(client, format, selection, position, self.after, stop).run(output_writer).await?;
        Ok(Report::new(Value::Null, ""))
    }
}

/// Writes a temporary file first, so that the named file is always complete.
async fn verifiable(client: &Client, output: Option<&Path>) -> Result<Report, Failure> {
    let Some(output) = output else {
        let mut stdout = io::stdout().lock();
        let mut last = LastLine::default();
        client
            .to::<ExportLog>()
            .download(|bytes| {
                last.read(bytes);
                stdout.write_all(bytes)
            })
            .await?;
        stdout.flush().map_err(|error| Failure::io("standard output", error))?;
        last.require_end()?;
        return Ok(Report::new(Value::Null, ""));
    };
    let shown = output.display().to_string();
    let failed = |error: io::Error| Failure::io(&shown, error);
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = output.with_file_name(name);
    let mut file = File::create(&part).map_err(failed)?;
    let mut lines: u64 = 0;
    let mut last = LastLine::default();
    let written = client.to::<ExportLog>().download(|bytes| {
        last.read(bytes);
        lines += bytes.iter().filter(|byte| **byte == b'\n').map(|_| 1_u64).sum::<u64>();
        file.write_all(bytes)
    });
    let written = written
        .await
        .map_err(Failure::from)
        .and_then(|()| last.require_end())
        .and_then(|()| file.sync_all().and_then(|()| std::fs::rename(&part, output)).map_err(failed));
    if written.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    written?;
    let text = format!("Exported the log to {}: {lines} lines.", plain(&json!(shown)));
    Ok(Report::new(json!({"file": shown, "lines": lines}), text))
}

/// The last line of an export.
#[derive(Default)]
struct LastLine {
    line: Vec<u8>,
    ended: bool,
}

impl LastLine {
    fn read(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if std::mem::replace(&mut self.ended, piece.ends_with(b"\n")) {
                self.line.clear();
            }
            self.line.extend_from_slice(piece);
        }
    }

    /// Returns the error of a gate that could not complete the export.
    fn require_end(&self) -> Result<(), Failure> {
        match broken_reason(&self.line) {
            Some(reason) => Err(Failure::Said(format!("the gate could not export the log: {reason}"))),
            None => Ok(()),
        }
    }
}
