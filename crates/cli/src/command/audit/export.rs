//! `toolgate audit export`: the log as a file that proves itself, or as lines for those who watch.

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

/// What to write, and in which words.
#[derive(Args)]
pub(crate) struct Export {
    /// The file to write the verifiable export to; standard output unless said otherwise
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What the lines look like
    #[arg(long, value_enum, default_value_t = Format::Verifiable)]
    format: Format,
    /// Begin after the event with this sequence
    #[arg(long, value_name = "SEQUENCE")]
    after: Option<u64>,
    /// Wait for more at the end of the log, until a signal ends it
    #[arg(long)]
    follow: bool,
    /// Keep in this file how far the reader has come, and go on from there
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Only events that are stored with one of these types
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,
    /// Only events about this agent
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
}

/// The formats of an export.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The whole log with its proofs, for `toolgate audit verify`
    Verifiable,
    /// The stored events with their sequence
    Jsonl,
    /// Events of OCSF 1.3.0: API Activity and the classes of identity and access management
    Ocsf,
    /// The envelopes in which OpenWOP shows events
    Openwop,
}

impl Export {
    /// Writes what was asked for.
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
            let sentence = "--output is for the verifiable format; the lines of the others go to standard output";
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

/// Writes beside the file first, so that what bears its name is complete.
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
    let text = format!("{} holds the log, in {lines} lines.", plain(&json!(shown)));
    Ok(Report::new(json!({"file": shown, "lines": lines}), text))
}

/// The line that an export ends with.
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

    /// Fails with what the gate says where it could not go on.
    fn require_end(&self) -> Result<(), Failure> {
        match broken_reason(&self.line) {
            Some(reason) => Err(Failure::Said(format!("the gate could not export the log: {reason}"))),
            None => Ok(()),
        }
    }
}
