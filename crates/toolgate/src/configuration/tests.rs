//! Precedence, completeness and refusals of the configuration as a whole.

use std::ffi::OsString;

use super::*;

struct Scene {
    home: tempfile::TempDir,
    variables: Vec<(String, String)>,
    flags: Flags,
}

impl Scene {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let variables = vec![("HOME".to_owned(), home.path().to_str().unwrap().to_owned())];
        Self { home, variables, flags: Flags::default() }
    }

    fn file(self, text: &str) -> Self {
        let directory = self.home.path().join(".config/toolgate");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(FILE_NAME), text).unwrap();
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn flag(mut self, key: &Key, value: &str) -> Self {
        self.flags.values.insert(key.path, value.to_owned());
        self
    }

    fn load(&self) -> Result<Loaded, ConfigurationError> {
        let variables = self.variables.iter().map(|(name, value)| (name.clone(), OsString::from(value)));
        Loaded::load(&self.flags, Environment::new(variables))
    }

    fn refused(&self) -> String {
        self.load().err().unwrap().to_string()
    }
}

fn described(loaded: &Loaded, key: &Key) -> (String, Origin) {
    let found = loaded.described.iter().find(|described| described.path == key.path).unwrap();
    (found.value.to_string(), found.origin)
}

#[test]
fn with_nothing_given_everything_has_its_default() {
    let scene = Scene::new();
    let loaded = scene.load().ok().unwrap();
    let configuration = &loaded.configuration;
    assert_eq!(configuration.network.listen.to_string(), "127.0.0.1:7300");
    assert_eq!(configuration.max_body_bytes, 1024 * 1024);
    assert_eq!(configuration.network.limits, toolgate_server::Limits::default());
    assert_eq!(configuration.rate_limit, None);
    assert_eq!(configuration.settings, Settings::default());
    assert_eq!(configuration.integrate_every, Duration::from_millis(250));
    assert_eq!(configuration.log_format, LogFormat::Auto);
    assert_eq!(configuration.audit_key_file, scene.home.path().join(".config/toolgate/audit.key"));
    let Store::Embedded { data } = &configuration.store else { panic!("embedded by default") };
    assert_eq!(*data, scene.home.path().join(".local/share/toolgate"));
    let KeySource::File(path) = &configuration.key_source else { panic!("a file by default") };
    assert_eq!(*path, scene.home.path().join(".config/toolgate/master.key"));
    assert!(loaded.described.iter().all(|described| described.origin == Origin::Default));
    assert_eq!(loaded.described.len(), keys::KEYS.len());
    assert_eq!((loaded.file, loaded.warnings.len()), (None, 0));
}

#[test]
fn a_flag_counts_before_a_variable_before_the_file() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\n";
    let scene = Scene::new().file(file);
    assert_eq!(described(&scene.load().ok().unwrap(), &keys::LISTEN), ("\"127.0.0.1:1\"".to_owned(), Origin::File(2)));
    let scene = scene.variable("TOOLGATE_LISTEN", "127.0.0.1:2");
    let expected = ("\"127.0.0.1:2\"".to_owned(), Origin::Variable("TOOLGATE_LISTEN"));
    assert_eq!(described(&scene.load().ok().unwrap(), &keys::LISTEN), expected);
    let scene = scene.flag(&keys::LISTEN, "127.0.0.1:3");
    let expected = ("\"127.0.0.1:3\"".to_owned(), Origin::Flag("--listen"));
    assert_eq!(described(&scene.load().ok().unwrap(), &keys::LISTEN), expected);
}

#[test]
fn the_audit_key_is_looked_for_beside_the_master_key() {
    let loaded = Scene::new().variable("TOOLGATE_KEY_FILE", "/keys/master.key").load().ok().unwrap();
    assert_eq!(loaded.configuration.audit_key_file, PathBuf::from("/keys/audit.key"));
}

#[test]
fn everything_that_is_wrong_is_named_at_once_and_no_value_is_shown() {
    let scene = Scene::new()
        .variable("TOOLGATE_LISTEN", "geheim")
        .variable("TOOLGATE_DATABASE_URL", "mysql://ann:geheim@host/db")
        .flag(&keys::DATA, "");
    let text = scene.refused();
    assert!(text.contains("TOOLGATE_LISTEN must be an address"), "{text}");
    assert!(text.contains("TOOLGATE_DATABASE_URL must be a URL"), "{text}");
    assert!(text.contains("--data must be a path"), "{text}");
    assert!(!text.contains("geheim"), "{text}");
}

#[test]
fn a_fault_in_the_file_is_named_with_file_and_line() {
    let text = Scene::new().file("[server]\nlisen = \"127.0.0.1:1\"\n").refused();
    assert!(
        text.contains("toolgate.toml, line 2: the key `server.lisen` is not known; did you mean `server.listen`?"),
        "{text}"
    );
}

#[test]
fn a_file_that_is_asked_for_must_be_there() {
    let text = Scene::new().variable("TOOLGATE_CONFIG", "/nowhere/toolgate.toml").refused();
    assert!(text.contains("/nowhere/toolgate.toml cannot be read"), "{text}");
}

#[test]
fn without_a_home_the_error_says_what_to_pass() {
    let mut scene = Scene::new();
    scene.variables.clear();
    let text = scene.refused();
    assert!(text.contains("pass --data, set TOOLGATE_DATA"), "{text}");
    let scene = scene.flag(&keys::DATA, "/data");
    let text = scene.refused();
    assert!(text.contains("set TOOLGATE_KEY_FILE"), "{text}");
    assert!(scene.variable("TOOLGATE_KEY_FILE", "/keys/master.key").load().is_ok());
}

#[test]
fn with_a_database_no_data_directory_is_needed_and_its_password_is_masked() {
    let mut scene = Scene::new();
    scene.variables.clear();
    let scene = scene
        .variable("TOOLGATE_DATABASE_URL", "postgres://ann:geheim@host/db")
        .variable("TOOLGATE_KEY_FILE", "/keys/master.key");
    let loaded = scene.load().ok().unwrap();
    let Store::Postgres { url, connections, .. } = &loaded.configuration.store else { panic!("the database") };
    assert_eq!((url.expose(), *connections), ("postgres://ann:geheim@host/db", 16));
    assert_eq!(described(&loaded, &keys::DATABASE_URL).0, "\"postgres://ann:***@host/db\"");
}

#[test]
fn a_password_in_a_file_that_others_can_read_is_warned_of() {
    let scene = Scene::new().file("[ledger]\ndatabase_url = \"postgres://ann:geheim@host/db\"\n");
    let warnings = scene.load().ok().unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("chmod 600") && !warnings[0].contains("geheim"), "{warnings:?}");
}

#[test]
fn a_master_key_that_would_not_be_used_is_refused() {
    let text = Scene::new().variable("TOOLGATE_MASTER_KEY", "geheim").refused();
    assert!(text.contains("TOOLGATE_KEY_PROVIDER=environment") && !text.contains("geheim"), "{text}");
    let text = Scene::new().variable("TOOLGATE_KEY_COMMAND", "wrap").refused();
    assert!(text.contains("keys.provider is file"), "{text}");
    let text = Scene::new().variable("TOOLGATE_KEY_PROVIDER", "environment").refused();
    assert!(text.contains("set TOOLGATE_MASTER_KEY"), "{text}");
    let text = Scene::new().variable("TOOLGATE_KEY_PROVIDER", "command").refused();
    assert!(text.contains("set keys.command"), "{text}");
}

#[test]
fn each_provider_can_be_chosen() {
    let scene = Scene::new()
        .file("[keys]\nprovider = \"command\"\ncommand = [\"wrap\", \"-k\"]\ncommand_timeout_seconds = 3\n");
    let KeySource::Command { words, timeout } = scene.load().ok().unwrap().configuration.key_source else {
        panic!("the command")
    };
    assert_eq!((words, timeout), (vec!["wrap".to_owned(), "-k".to_owned()], Duration::from_secs(3)));
    let scene = Scene::new()
        .variable("TOOLGATE_KEY_PROVIDER", "environment")
        .variable("TOOLGATE_MASTER_KEY", "one")
        .variable("TOOLGATE_MASTER_KEY_PREVIOUS", "two");
    let KeySource::Environment { current, previous } = scene.load().ok().unwrap().configuration.key_source else {
        panic!("the environment")
    };
    assert_eq!((current.expose(), previous.unwrap().expose()), ("one", "two"));
}

#[test]
fn a_rate_limit_is_whole_or_not_there() {
    let whole = Scene::new().file("[server.rate_limit]\nrequests = 600\nper_seconds = 60\n");
    let limit = whole.load().ok().unwrap().configuration.rate_limit.unwrap();
    assert_eq!((limit.requests(), limit.per(), limit.burst()), (600, Duration::from_secs(60), 600));
    let limit =
        whole.variable("TOOLGATE_RATE_LIMIT_BURST", "10").load().ok().unwrap().configuration.rate_limit.unwrap();
    assert_eq!(limit.burst(), 10);
    for part in ["TOOLGATE_RATE_LIMIT_REQUESTS", "TOOLGATE_RATE_LIMIT_PER_SECONDS", "TOOLGATE_RATE_LIMIT_BURST"] {
        let text = Scene::new().variable(part, "1").refused();
        assert!(text.contains("set both"), "{text}");
    }
    let text = Scene::new().file("[server.rate_limit]\nrequests = 1\nper_seconds = 2678400\nburst = 100\n").refused();
    assert!(text.contains("server.rate_limit: refilling the burst would take more than a year"), "{text}");
}

#[test]
fn a_webhook_needs_its_address_and_a_long_secret_and_shows_neither() {
    let url = |scene: Scene| scene.variable("TOOLGATE_APPROVALS_WEBHOOK_URL", "https://hooks.example.com/geheim");
    let secret = |scene: Scene, text: &str| scene.variable("TOOLGATE_APPROVALS_WEBHOOK_SECRET", text);
    let text = url(Scene::new()).refused();
    assert!(text.contains("set TOOLGATE_APPROVALS_WEBHOOK_SECRET"), "{text}");
    let text = secret(Scene::new(), "geheim geheim geheim geheim").refused();
    assert!(text.contains("approvals.webhook_url is not") && !text.contains("geheim"), "{text}");
    for weak in ["geheim", "whsec_", "whsec_Z2VoZWlt", "whsec_geheim geheim geheim geheim geheim"] {
        let text = secret(url(Scene::new()), weak).refused();
        assert!(text.contains("at least 24 characters") && !text.contains("geheim"), "{text}");
    }
    for strong in ["geheim geheim geheim geh", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
        let loaded = secret(url(Scene::new()), strong).load().ok().unwrap();
        assert_eq!(described(&loaded, &keys::APPROVALS_WEBHOOK_URL).0, "\"https://hooks.example.com/***\"");
        assert!(loaded.configuration.webhook.is_some() && loaded.warnings.is_empty());
    }
    assert!(Scene::new().load().ok().unwrap().configuration.webhook.is_none());
}

#[test]
fn traces_and_metrics_are_exported_only_where_a_collector_is_named() {
    assert!(Scene::new().load().ok().unwrap().configuration.telemetry.is_none());
    let named = |scene: Scene| scene.variable("TOOLGATE_TELEMETRY_OTLP_ENDPOINT", "http://127.0.0.1:4318/otlp/");
    let Configuration { telemetry, settings, .. } = named(Scene::new()).load().ok().unwrap().configuration;
    let telemetry = telemetry.unwrap();
    assert_eq!(telemetry.endpoint.as_str(), "http://127.0.0.1:4318/otlp");
    assert_eq!(telemetry.metrics_interval, Some(Duration::from_secs(60)));
    assert_eq!(settings.traces, Some(telemetry.traces));
    let never = named(Scene::new()).variable("TOOLGATE_TELEMETRY_METRICS_INTERVAL_SECONDS", "0");
    assert_eq!(never.load().ok().unwrap().configuration.telemetry.unwrap().metrics_interval, None);

    let text = Scene::new().variable("TOOLGATE_TELEMETRY_OTLP_TOKEN", "geheim").refused();
    assert!(text.contains("telemetry.otlp_endpoint") && !text.contains("geheim"), "{text}");
}
