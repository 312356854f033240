//! The file of mounts: what it may say, and what is wrong with it.

use std::ffi::OsString;

use toolgate_model::credential::AuthType;

use super::*;

fn parsed(text: &str) -> Result<Vec<MountEntry>, Vec<String>> {
    let variables = [("TOOLGATE_SECRET_A", "a-secret"), ("TOKEN", "b")];
    let variables = variables.map(|(name, value)| (name.to_owned(), OsString::from(value)));
    parse(text, Path::new("/nowhere"), &mut Environment::new(variables)).map(|settings| settings.entries)
}

fn one(text: &str) -> MountEntry {
    let [entry] = parsed(text).ok().unwrap().try_into().ok().unwrap();
    entry
}

fn process(text: &str) -> (MountEntry, ProcessEntry) {
    let entry = one(text);
    let EntryServer::Process(process) = &entry.server else { panic!("a process") };
    let process = ProcessEntry::clone(process);
    (entry, process)
}

#[test]
fn a_process_is_read_with_safe_defaults() {
    let (entry, process) = process("[[mounts]]\nname = \"files\"\ncommand = [\"server\", \"/srv\"]\n");
    assert_eq!(process.command, ["server", "/srv"]);
    assert_eq!(entry.tenants, BTreeSet::from([TenantId::default_tenant()]));
    assert_eq!((process.stateful, process.max_processes, process.idle), (false, 16, Duration::from_secs(600)));
    let expected = (SandboxRequirement::WherePossible, true, None);
    assert_eq!((process.sandbox, process.network, process.credential), expected);
    assert!(matches!(entry.access, Some(EntryAccess::Open)) && !entry.trusted);
}

#[test]
fn every_key_of_a_process_is_taken() {
    let text = "[[mounts]]\nname = \"files\"\ncommand = [\"server\"]\ntenants = [\"a\"]\ndirectory = \"/srv\"\n\
        env = {LEVEL = \"1\"}\ncredential = \"env:TOKEN\"\nstateful = true\nmax_processes = 3\n\
        idle_seconds = \"1m\"\nsandbox = \"required\"\nwritable = [\"/srv/a\"]\nnetwork = false\nmax_memory_mib = 512\n";
    let (entry, process) = process(text);
    assert_eq!((process.credential.as_deref(), process.idle), (Some("TOKEN"), Duration::from_secs(60)));
    assert_eq!((process.sandbox, process.network), (SandboxRequirement::Required, false));
    assert_eq!((process.bounds.memory, process.writable), (512 << 20, vec![PathBuf::from("/srv/a")]));
    assert!(entry.access.is_none(), "without its secret it cannot be started, and an administrator mounts it");
}

#[test]
fn a_server_over_http_is_mounted_with_nothing_with_a_credential_or_with_a_secret() {
    let with = |further: &str| {
        one(&format!("[[mounts]]\nname = \"tracker\"\nurl = \"https://tracker.example/mcp\"\n{further}\n"))
    };
    let open = with("trusted = true\nhidden_characters = \"strip\"");
    assert!(matches!(open.access, Some(EntryAccess::Open)) && open.trusted);
    assert_eq!(open.hidden_characters, HiddenCharacters::Strip);
    let EntryServer::Http(url) = open.server else { panic!("over HTTP") };
    assert_eq!(url.to_string(), "https://tracker.example/mcp");
    let secret = with("secret = \"env:TOOLGATE_SECRET_A\"\nheader = \"X-Key\"\nauth_type = \"api_key\"");
    let Some(EntryAccess::Secret { auth_type, metadata, material }) = secret.access else { panic!("a secret") };
    assert_eq!(auth_type, AuthType::ApiKey);
    assert_eq!(metadata["auth"]["header_name"], "X-Key");
    assert_eq!(material.get("api_key").unwrap().expose(), "a-secret");
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_mount() {
    let with = |further: &str| format!("[[mounts]]\nname = \"files\"\ncommand = [\"server\"]\n{further}\n");
    let over_http = |further: &str| format!("[[mounts]]\nname = \"files\"\nurl = \"https://a.example/\"\n{further}\n");
    for (text, expected) in [
        (with("shell = true"), "unknown field `shell`"),
        ("[[mounts]]\nname = \"files\"\ncommand = \"server\"\n".to_owned(), "invalid type"),
        ("[[mounts]]\nname = \"files\"\ncommand = []\n".to_owned(), "`command` must be a list"),
        ("[[mounts]]\nname = \"files\"\n".to_owned(), "give `url`, or `command`"),
        (with("url = \"https://a.example/\""), "give `url`, or `command`"),
        (with("credential = \"TOKEN\""), "`credential` must be env:NAME"),
        (with("env = {\"A-B\" = \"1\"}"), "`env.A-B` is no name"),
        (with("env = {A = \"1\"}\ncredential = \"env:A\""), "`env` has the variable"),
        (with("max_processes = 0"), "`max_processes` must be from 1 to 1000"),
        (with("sandbox = \"none\""), "`sandbox` must be auto"),
        (with("writable = [\"a\"]"), "must be an absolute path"),
        (with("header = \"X\""), "`header` is for a server over HTTP"),
        (with("secret = \"env:TOOLGATE_SECRET_A\""), "needs `credential`"),
        (with("mount = false\ncredential_id = \"x\""), "`credential_id` is used only where `mount`"),
        (format!("{}{}", with(""), with("")), "is there twice"),
        (over_http("stateful = true"), "`stateful` is for a process"),
        (over_http("mount = false"), "`mount` can be false only for a process"),
        (over_http("auth_type = \"api_key\""), "`auth_type` needs a `secret`"),
        (over_http("secret = \"sk_live_1\""), "and not the secret itself"),
        (over_http("secret = \"env:TOKEN\""), "begins with TOOLGATE_SECRET_"),
        (over_http("secret = \"env:TOOLGATE_SECRET_B\""), "TOOLGATE_SECRET_B is not set"),
        (over_http("secret = \"file:none\""), "/nowhere/none cannot be read"),
        (over_http("secret = \"env:TOOLGATE_SECRET_A\"\nauth_type = \"oauth2_token\""), "name a `credential_id`"),
        (over_http("secret = \"env:TOOLGATE_SECRET_A\"\nauth_type = \"basic_auth\""), "must be a JSON object"),
        (over_http("secret = \"env:TOOLGATE_SECRET_A\"\nprefix = \"x\""), "`prefix` needs `header`"),
        (over_http("credential_id = \"x\""), "`credential_id` is not the id"),
        (over_http("credential_id = \"x\"\nquery = \"k\""), "give `credential_id` or `query`"),
        (over_http("hidden_characters = \"none\""), "`hidden_characters` must be"),
    ] {
        let problems = parsed(&text).err().unwrap().join("; ");
        assert!(problems.contains(expected) && !problems.contains("a-secret"), "{problems}");
    }
}
