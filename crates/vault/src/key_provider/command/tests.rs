//! Tests of the command provider against real programs, friendly and hostile ones.

use std::path::Path;

use tempfile::TempDir;

use super::*;

/// A key service in a few lines of shell: the ciphertext is a checksum of the context, a dot, and the key in clear.
const SERVICE: &str = r#"
input=$(cat)
field() { printf '%s' "$input" | sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p'; }
context=$(printf '%s' "$input" | sed 's/.*"context"://' | cksum | cut -d ' ' -f 1)
case "$1" in
    status) echo '{"key_id":"kms/1"}' ;;
    wrap) printf '{"key_id":"kms/1","ciphertext":"%s.%s"}\n' "$context" "$(field plaintext)" ;;
    unwrap)
        ciphertext=$(field ciphertext)
        if [ "$(field key_id)" != kms/1 ]; then echo '{"refused":"unknown_key"}'
        elif [ "${ciphertext%%.*}" != "$context" ]; then echo '{"refused":"damaged"}'
        else printf '{"plaintext":"%s"}' "${ciphertext#*.}"; fi ;;
esac
"#;

const CONTEXT: &str = r#"{"tenant":"acme \ \"one\""}"#;

/// Scripts are given to the shell by name rather than executed, so that no other thread's fork can hold them open.
fn provider(directory: &Path, script: &str, timeout: Duration) -> CommandProvider {
    let path = directory.join("service.sh");
    std::fs::write(&path, script).unwrap();
    CommandProvider::new(&["/bin/sh".to_owned(), path.to_str().unwrap().to_owned()], timeout).unwrap()
}

/// The patience of tests whose commands end by themselves.
const PATIENT: Duration = Duration::from_secs(120);

async fn status_of(script: &str) -> Result<MasterKeyId, KeyError> {
    let directory = TempDir::new().unwrap();
    provider(directory.path(), script, PATIENT).current_key().await
}

async fn wrap_with(script: &str) -> Result<WrappedKey, KeyError> {
    let directory = TempDir::new().unwrap();
    provider(directory.path(), script, PATIENT).wrap(&SymmetricKey::random().unwrap(), CONTEXT).await
}

async fn unwrap_with(script: &str) -> Result<SymmetricKey, KeyError> {
    let directory = TempDir::new().unwrap();
    let provider = provider(directory.path(), script, PATIENT);
    provider.unwrap(&MasterKeyId("kms/1".to_owned()), b"ciphertext", CONTEXT).await
}

#[tokio::test]
async fn a_key_goes_out_wrapped_and_comes_back_for_the_same_context_only() {
    let directory = TempDir::new().unwrap();
    let provider = provider(directory.path(), SERVICE, PATIENT);
    let data_key = SymmetricKey::random().unwrap();
    let wrapped = provider.wrap(&data_key, CONTEXT).await.unwrap();
    assert_eq!(wrapped.key, MasterKeyId("kms/1".to_owned()));
    assert_eq!(provider.current_key().await.as_ref(), Ok(&wrapped.key));
    assert_eq!(provider.renew().await.as_ref(), Ok(&wrapped.key));
    assert_eq!(provider.forget(&wrapped.key).await, Ok(()));
    assert_eq!(provider.check().await, Ok(()));

    assert!(provider.unwrap(&wrapped.key, &wrapped.bytes, CONTEXT).await.unwrap().is_same(&data_key));
    assert_eq!(provider.unwrap(&wrapped.key, &wrapped.bytes, "elsewhere").await.err(), Some(KeyError::Unauthentic));
    assert_eq!(provider.unwrap(&wrapped.key, b"\xff\xfe", CONTEXT).await.err(), Some(KeyError::Unauthentic));
    let other = MasterKeyId("kms/2".to_owned());
    let missing = provider.unwrap(&other, &wrapped.bytes, CONTEXT).await.err();
    assert_eq!(missing, Some(KeyError::Missing { key: other }));
}

#[tokio::test]
async fn a_command_that_hangs_is_killed() {
    let directory = TempDir::new().unwrap();
    let pid_file = directory.path().join("pid");
    let script = format!("echo $$ > '{}'; exec sleep 600", pid_file.display());
    let provider = provider(directory.path(), &script, Duration::from_secs(1));
    let reason = provider.current_key().await.unwrap_err().to_string();
    assert!(reason.contains("did not exit within 1s and was killed"), "{reason}");

    // On a busy machine it may have been killed before it could say who it was.
    if let Ok(pid) = std::fs::read_to_string(&pid_file)
        && !pid.is_empty()
    {
        let alive = std::process::Command::new("/bin/sh").args(["-c", &format!("kill -0 {pid}")]).output().unwrap();
        assert!(!alive.status.success(), "the command is still there");
    }
}

#[tokio::test]
async fn a_command_that_never_stops_talking_is_stopped() {
    let reason = wrap_with("exec yes").await.unwrap_err().to_string();
    assert!(reason.contains("more than 65536 bytes"), "{reason}");
    // On its error output it may say what it likes; only the beginning is kept.
    let talkative = "yes complaint | head -c 300000 >&2; echo '{\"key_id\":\"kms/1\"}'";
    assert_eq!(status_of(talkative).await, Ok(MasterKeyId("kms/1".to_owned())));
}

#[tokio::test]
async fn a_failing_command_is_reported_by_its_exit_status() {
    let reason = status_of("printf 'no \\033route\\nsecond' >&2; exit 3").await.unwrap_err().to_string();
    assert!(reason.ends_with("status` failed with exit status: 3: no route"), "{reason}");
    let reason = status_of("exit 3").await.unwrap_err().to_string();
    assert!(reason.ends_with("failed with exit status: 3"), "{reason}");
    let reason = status_of("kill -9 $$").await.unwrap_err().to_string();
    assert!(reason.contains("failed with signal: 9"), "{reason}");
}

#[tokio::test]
async fn what_a_command_says_about_a_key_is_never_repeated() {
    let leaks = "cat >&2; exit 1";
    let ended = "failed with exit status: 1; its error output is discarded, because it may contain a key";
    let reason = wrap_with(leaks).await.unwrap_err().to_string();
    assert_eq!(reason, format!("the key command `/bin/sh wrap` {ended}"));
    let reason = unwrap_with(leaks).await.err().unwrap().to_string();
    assert_eq!(reason, format!("the key command `/bin/sh unwrap` {ended}"));
    for answer in [r#"{"plaintext":"bGVhaw=="}"#, r#"{"bGVhaw":1}"#, r#""bGVhaw==""#] {
        let reason = unwrap_with(&format!("echo '{answer}'")).await.err().unwrap().to_string();
        assert!(!reason.contains("bGVhaw"), "{reason}");
    }
}

#[tokio::test]
async fn an_answer_that_is_not_the_expected_object_is_refused() {
    for answer in ["", "hello", "[]", "{}", r#"{"key_id":1}"#, r#"{"key_id":"a"} {}"#, r#"{"key_id":"a","more":1}"#] {
        let reason = status_of(&format!("printf '%s' '{answer}'")).await.unwrap_err().to_string();
        assert!(reason.contains("did not return the expected JSON object"), "{answer}: {reason}");
    }
    for key_id in [String::new(), "x".repeat(201), "caf\u{e9}".to_owned(), "a\\nb".to_owned()] {
        let reason = status_of(&format!(r#"printf '%s' '{{"key_id":"{key_id}"}}'"#)).await.unwrap_err().to_string();
        assert!(reason.contains("printable ASCII"), "{reason}");
    }
    assert!(wrap_with(r#"echo '{"key_id":"a","ciphertext":""}'"#).await.is_err());
    for answer in ["{}", r#"{"plaintext":"QQ=="}"#, r#"{"plaintext":"QQ==","refused":"damaged"}"#, r#"{"refused":"x"}"#]
    {
        let error = unwrap_with(&format!("echo '{answer}'")).await.err().unwrap();
        assert!(matches!(error, KeyError::Failed { .. }), "{answer}");
    }
}

#[tokio::test]
async fn the_command_sees_the_environment_without_the_settings_of_the_gate() {
    // A test cannot set variables of its own process, so it runs itself once more with them set.
    if std::env::var_os("TOOLGATE_MASTER_KEY").is_none() {
        let name = "key_provider::command::tests::the_command_sees_the_environment_without_the_settings_of_the_gate";
        let inner = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .envs([("TOOLGATE_MASTER_KEY", "secret"), ("KMS_REGION", "moon")])
            .output()
            .unwrap();
        let report = String::from_utf8_lossy(&inner.stdout);
        assert!(inner.status.success() && report.contains("1 passed"), "{report}");
        return;
    }
    let script = r#"env | grep -q '^TOOLGATE_' && exit 1; echo "{\"key_id\":\"$KMS_REGION\"}""#;
    assert_eq!(status_of(script).await, Ok(MasterKeyId("moon".to_owned())));
}

#[tokio::test]
async fn an_empty_or_absent_program_is_refused() {
    assert!(CommandProvider::new(&[], PATIENT).is_err());
    assert!(CommandProvider::new(&[String::new()], PATIENT).is_err());
    let absent = CommandProvider::new(&["/nonexistent/key-service".to_owned()], PATIENT).unwrap();
    let reason = absent.check().await.unwrap_err().to_string();
    assert!(reason.contains("could not be started"), "{reason}");
}
