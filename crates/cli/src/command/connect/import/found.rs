//! The servers in the settings of a client, in the formats of all clients.

use serde_json::{Map, Value, json};
use toolgate_model::secret::Secret;

use super::super::client::Launch;

/// A server of the client.
pub(super) struct Found {
    /// Its name in the settings.
    pub(super) name: String,
    /// Its name as a mount.
    pub(super) mount: String,
    pub(super) server: Server,
}

pub(super) enum Server {
    Http(HttpServer),
    Process(ProcessServer),
    /// It cannot be imported, with the reason.
    Skipped(String),
}

pub(super) struct HttpServer {
    pub(super) url: String,
    pub(super) secret: Option<HeaderSecret>,
}

pub(super) struct HeaderSecret {
    /// `None` for a bearer token.
    pub(super) header: Option<String>,
    pub(super) value: Secret,
}

pub(super) struct ProcessServer {
    command: Vec<String>,
    directory: Option<String>,
    environment: Vec<(String, String)>,
    /// The variable with a key, and the key.
    pub(super) secret: Option<(String, Secret)>,
}

impl ProcessServer {
    /// Its entry in the file of mounts.
    pub(super) fn entry(&self, mount: &str) -> Value {
        let mut entry = Map::new();
        entry.insert("name".to_owned(), json!(mount));
        entry.insert("command".to_owned(), json!(self.command));
        if let Some(directory) = &self.directory {
            entry.insert("directory".to_owned(), json!(directory));
        }
        if !self.environment.is_empty() {
            let variables = self.environment.iter().map(|(name, value)| (name.clone(), json!(value)));
            entry.insert("env".to_owned(), Value::Object(variables.collect()));
        }
        if let Some((variable, _)) = &self.secret {
            entry.insert("credential".to_owned(), json!(format!("env:{variable}")));
        }
        Value::Object(entry)
    }
}

/// Reads the servers. `variable` reads the environment, to which settings refer.
pub(super) fn read(servers: &Map<String, Value>, variable: impl Fn(&str) -> Option<String>) -> Vec<Found> {
    let found = servers.iter().map(|(name, entry)| {
        let server = server(entry, &variable).unwrap_or_else(Server::Skipped);
        Found { name: name.clone(), mount: mount_name(name), server }
    });
    found.collect()
}

/// The name with what names of services may contain.
fn mount_name(name: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    let name: String = name.chars().map(|letter| if allowed(letter) { letter } else { '-' }).take(64).collect();
    if name.is_empty() { "server".to_owned() } else { name }
}

fn server(entry: &Value, variable: &impl Fn(&str) -> Option<String>) -> Result<Server, String> {
    let is = |name: &str, value: bool| entry.get(name) == Some(&Value::Bool(value));
    if is("disabled", true) || is("enabled", false) {
        return Err("it is disabled".to_owned());
    }
    if entry.get("type").and_then(Value::as_str) == Some("sse") {
        return Err("it uses the old transport SSE; only streamable HTTP is supported".to_owned());
    }
    let url = ["httpUrl", "serverUrl", "url"].iter().find_map(|name| entry.get(name)?.as_str());
    if let Some(url) = url {
        let secret = header_secret(entry, variable)?;
        return Ok(Server::Http(HttpServer { url: expanded(url, variable)?, secret }));
    }
    let launch = Launch::of_entry(entry).ok_or("it has neither a URL nor a command as Toolgate knows them")?;
    let mut environment = Vec::new();
    let mut secrets = Vec::new();
    for (name, value) in launch.environment {
        let value = expanded(&value, variable)?;
        if is_secret(&name) { secrets.push((name, Secret::new(value))) } else { environment.push((name, value)) }
    }
    if secrets.len() > 1 {
        let names: Vec<String> = secrets.into_iter().map(|(name, _)| name).collect();
        return Err(format!("it needs several keys ({}), and a mount has one; mount it by hand", names.join(", ")));
    }
    let directory = entry.get("cwd").and_then(Value::as_str).map(str::to_owned);
    let command = std::iter::once(launch.command).chain(launch.arguments).collect();
    Ok(Server::Process(ProcessServer { command, directory, environment, secret: secrets.pop() }))
}

/// The header that authenticates the client. All headers count: what a header means is not known.
fn header_secret(entry: &Value, variable: &impl Fn(&str) -> Option<String>) -> Result<Option<HeaderSecret>, String> {
    let members = |name: &str| entry.get(name).and_then(Value::as_object).into_iter().flatten();
    let mut headers = Vec::new();
    for (name, value) in members("headers").chain(members("http_headers")) {
        let value = value.as_str().ok_or_else(|| format!("its header {name} is not a text"))?;
        headers.push((name.clone(), expanded(value, variable)?));
    }
    for (name, value) in members("env_http_headers") {
        let value = value.as_str().ok_or_else(|| format!("its header {name} is not a text"))?;
        headers.push((name.clone(), of_variable(value, variable)?));
    }
    if let Some(name) = entry.get("bearer_token_env_var").and_then(Value::as_str) {
        headers.push(("Authorization".to_owned(), format!("Bearer {}", of_variable(name, variable)?)));
    }
    let Some((name, value)) = headers.pop() else { return Ok(None) };
    if !headers.is_empty() {
        return Err("it needs several headers, and a mount has one; mount it by hand".to_owned());
    }
    let bearer = name.eq_ignore_ascii_case("authorization").then(|| value.strip_prefix("Bearer ")).flatten();
    Ok(Some(match bearer {
        Some(token) => HeaderSecret { header: None, value: Secret::new(token.trim().to_owned()) },
        None => HeaderSecret { header: Some(name), value: Secret::new(value) },
    }))
}

/// Whether a variable contains a key, by its name.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_word = |part: &str| ["KEY", "PAT", "PASSWD", "CREDENTIAL", "CREDENTIALS"].contains(&part);
    name.split(['_', '-']).any(is_word)
        || ["TOKEN", "SECRET", "PASSWORD", "APIKEY"].iter().any(|word| name.ends_with(word))
}

/// The text with the variables that it refers to: `${env:NAME}`, `${NAME}`, `${NAME:-default}`, or `$NAME` as a whole.
fn expanded(text: &str, variable: &impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if let Some(name) = text.strip_prefix('$').filter(|name| is_name(name)) {
        return of_variable(name, variable);
    }
    let mut complete = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        complete.push_str(before);
        let Some((reference, behind)) = behind.split_once('}') else {
            return Err("it has a variable without an end".to_owned());
        };
        let reference = reference.strip_prefix("env:").unwrap_or(reference);
        let (name, default) = reference.split_once(":-").map_or((reference, None), |(name, value)| (name, Some(value)));
        if !is_name(name) {
            return Err(format!("it refers to ${{{reference}}}, which only the client knows"));
        }
        match (of_variable(name, variable), default) {
            (Ok(value), _) => complete.push_str(&value),
            (Err(_), Some(default)) => complete.push_str(default),
            (Err(missing), None) => return Err(missing),
        }
        rest = behind;
    }
    complete.push_str(rest);
    Ok(complete)
}

fn of_variable(name: &str, variable: &impl Fn(&str) -> Option<String>) -> Result<String, String> {
    variable(name).ok_or_else(|| format!("it refers to the variable {name}, which is not set here"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(entry: Value) -> Server {
        let variable = |name: &str| (name == "GITHUB_TOKEN").then(|| "ghp_1".to_owned());
        let servers = [("my server".to_owned(), entry)].into_iter().collect();
        let found = read(&servers, variable).pop().unwrap();
        assert_eq!(found.mount, "my-server");
        found.server
    }

    #[track_caller]
    fn http(entry: Value) -> (String, Option<(Option<String>, String)>) {
        let Server::Http(server) = read_one(entry) else { panic!("a server over HTTP") };
        (server.url, server.secret.map(|secret| (secret.header, secret.value.expose().to_owned())))
    }

    #[track_caller]
    fn skipped(entry: Value) -> String {
        let Server::Skipped(reason) = read_one(entry) else { panic!("a server that is not imported") };
        reason
    }

    #[test]
    fn servers_over_http_are_read_in_the_formats_of_all_clients() {
        let url = "https://api.example.com/mcp";
        let bearer = Some((None, "ghp_1".to_owned()));
        for entry in [
            json!({"type": "http", "url": url, "headers": {"Authorization": "Bearer ghp_1"}}),
            json!({"url": url, "headers": {"authorization": "Bearer ${env:GITHUB_TOKEN}"}}),
            json!({"httpUrl": url, "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"}}),
            json!({"serverUrl": url, "headers": {"Authorization": "Bearer ${NOT_SET:-ghp_1}"}}),
            json!({"url": url, "bearer_token_env_var": "GITHUB_TOKEN"}),
        ] {
            assert_eq!(http(entry.clone()), (url.to_owned(), bearer.clone()), "{entry}");
        }
        let key = Some((Some("X-Api-Key".to_owned()), "ghp_1".to_owned()));
        assert_eq!(http(json!({"url": url, "http_headers": {"X-Api-Key": "ghp_1"}})), (url.to_owned(), key.clone()));
        assert_eq!(http(json!({"url": url, "env_http_headers": {"X-Api-Key": "GITHUB_TOKEN"}})), (url.to_owned(), key));
        assert_eq!(http(json!({"url": url})), (url.to_owned(), None));
    }

    #[test]
    fn a_process_becomes_an_entry_of_the_operator_without_its_key() {
        let entry = json!({"command": "npx", "args": ["-y", "server"], "cwd": "/srv",
            "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "$GITHUB_TOKEN", "LOG_LEVEL": "warn", "MONKEY": "1"}});
        let Server::Process(process) = read_one(entry) else { panic!("a process") };
        assert_eq!(
            process.entry("github"),
            json!({"name": "github", "command": ["npx", "-y", "server"], "directory": "/srv",
                "env": {"LOG_LEVEL": "warn", "MONKEY": "1"}, "credential": "env:GITHUB_PERSONAL_ACCESS_TOKEN"})
        );
        assert_eq!(process.secret.unwrap().1.expose(), "ghp_1");
    }

    #[test]
    fn what_cannot_be_imported_says_why() {
        let url = "https://api.example.com/mcp";
        for (entry, reason) in [
            (json!({"url": url, "disabled": true}), "disabled"),
            (json!({"type": "sse", "url": url}), "SSE"),
            (json!({"url": url, "headers": {"A": "1", "B": "2"}}), "several headers"),
            (json!({"url": url, "headers": {"A": "${input:key}"}}), "only the client knows"),
            (json!({"url": url, "bearer_token_env_var": "NOT_SET"}), "NOT_SET"),
            (json!({"command": "x", "env": {"A_TOKEN": "1", "B_SECRET": "2"}}), "several keys"),
            (json!({"source": "extension", "settings": {}}), "neither a URL nor a command"),
        ] {
            let said = skipped(entry);
            assert!(said.contains(reason), "{said}");
        }
    }
}
