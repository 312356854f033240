//! The options of the benchmarks that run the gate's binary.

use std::path::PathBuf;

use crate::process::{cargo, run};

/// The engine below a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

/// A benchmark uses only some of them: `parse` gets the list.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The binary to measure; by default the release build, which is built first.
    binary: Option<PathBuf>,
    /// The binary that it is compared with.
    pub baseline: Option<PathBuf>,
    /// `None` for both engines.
    pub engine: Option<Engine>,
    /// Short rounds, and only what two builds are compared by.
    pub quick: bool,
    /// The directory for the profiles of callgrind.
    pub profile: Option<PathBuf>,
    /// Write the figures into the repository.
    pub update: bool,
}

impl Options {
    pub fn parse(allowed: &[&str], arguments: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            if !allowed.contains(name) {
                return Err(format!("unknown option {name}"));
            }
            let mut value = || arguments.next().copied().ok_or_else(|| format!("{name} needs a value"));
            match *name {
                "--binary" => options.binary = Some(binary(value()?)?),
                "--baseline" => options.baseline = Some(binary(value()?)?),
                "--engine" => options.engine = Some(engine(value()?)?),
                "--profile" => options.profile = Some(value()?.into()),
                "--quick" => options.quick = true,
                "--update" => options.update = true,
                _ => return Err(format!("unknown option {name}")),
            }
        }
        Ok(options)
    }

    /// The binary that is measured.
    pub fn binary(&self) -> Result<PathBuf, String> {
        if let Some(binary) = &self.binary {
            return Ok(binary.clone());
        }
        build()?;
        Ok(build_directory()?.join("release/toolgate"))
    }

    pub fn has(&self, engine: Engine) -> bool {
        self.engine.is_none_or(|only| only == engine)
    }
}

pub fn build() -> Result<(), String> {
    run(&mut cargo(&["build", "--release", "--package", "toolgate"]))
}

fn binary(path: &str) -> Result<PathBuf, String> {
    let found = std::fs::canonicalize(path).ok().filter(|path| path.is_file());
    found.ok_or_else(|| format!("no binary at {path}"))
}

fn engine(name: &str) -> Result<Engine, String> {
    match name {
        "sqlite" => Ok(Engine::Sqlite),
        "postgresql" => Ok(Engine::Postgres),
        _ => Err(format!("unknown engine {name}; it is sqlite or postgresql")),
    }
}

/// The directory that cargo builds in: this program is in `debug` or another profile's directory below it.
pub fn build_directory() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    own.ancestors().nth(2).map(PathBuf::from).ok_or_else(|| "this program was not built by cargo".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_any_order() {
        let allowed = ["--baseline", "--engine", "--quick"];
        let options = Options::parse(&allowed, &["--quick", "--baseline", "/bin/sh", "--engine", "sqlite"]).unwrap();
        assert!(options.quick && options.baseline.is_some());
        assert!(options.has(Engine::Sqlite) && !options.has(Engine::Postgres));
        let options = Options::parse(&allowed, &[]).unwrap();
        assert!(options.has(Engine::Sqlite) && options.has(Engine::Postgres));
    }

    #[test]
    fn an_option_that_cannot_be_used_is_named() {
        let failed = |arguments: &[&str]| Options::parse(&["--baseline", "--engine"], arguments).unwrap_err();
        assert_eq!(failed(&["--quick"]), "unknown option --quick");
        assert_eq!(failed(&["--baseline"]), "--baseline needs a value");
        assert_eq!(failed(&["--baseline", "/none"]), "no binary at /none");
        assert_eq!(failed(&["--engine", "oracle"]), "unknown engine oracle; it is sqlite or postgresql");
    }
}
