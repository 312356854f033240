//! Tests of the file provider: modes, places, sharing between processes, crashes.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use tempfile::TempDir;

use super::*;

const CONTEXT: &str = "here";

fn open(path: &Path) -> FileProvider {
    FileProvider::open(path, None).unwrap()
}

fn refusal(path: &Path, data_dir: Option<&Path>) -> String {
    FileProvider::open(path, data_dir).err().expect("must be refused").to_string()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn the_first_start_makes_a_key_that_only_its_owner_can_read() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("one/two/master.key");
    let provider = open(&path);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    for parent in ["one", "one/two"] {
        assert_eq!(fs::metadata(directory.path().join(parent)).unwrap().mode() & 0o7777, 0o700);
    }
    assert_eq!(provider.check().await, Ok(()));
    assert_eq!(open(&path).current_key().await, provider.current_key().await);
}

#[test]
fn a_file_that_others_can_use_is_refused_with_the_command_that_helps() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("master.key");
    open(&path);
    for mode in [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o666] {
        set_mode(&path, mode);
        let reason = refusal(&path, None);
        assert!(reason.contains(&format!("(mode {mode:04o}); run: chmod 600 {}", path.display())), "{reason}");
    }
    for mode in [0o600, 0o400] {
        set_mode(&path, mode);
        open(&path);
    }
}

#[tokio::test]
async fn a_file_that_is_opened_to_others_later_wraps_nothing_more() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("master.key");
    let provider = open(&path);
    let data_key = SymmetricKey::random().unwrap();
    let wrapped = provider.wrap(&data_key, CONTEXT).await.unwrap();
    set_mode(&path, 0o644);
    assert!(provider.wrap(&data_key, CONTEXT).await.is_err());
    assert!(provider.check().await.is_err(), "readiness tells it");
    set_mode(&path, 0o600);
    assert!(provider.wrap(&data_key, CONTEXT).await.is_ok());
    assert!(provider.unwrap(&wrapped.key, &wrapped.bytes, CONTEXT).await.is_ok());
}

#[tokio::test]
async fn a_key_that_was_loaded_goes_on_opening_whatever_becomes_of_its_file() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("master.key");
    let provider = open(&path);
    let data_key = SymmetricKey::random().unwrap();
    let first = provider.wrap(&data_key, CONTEXT).await.unwrap();
    provider.renew().await.unwrap();
    let second = provider.wrap(&data_key, CONTEXT).await.unwrap();
    let good = fs::read(&path).unwrap();
    let spoil: [&dyn Fn(); 4] =
        [&|| set_mode(&path, 0o666), &|| fs::write(&path, "{}").unwrap(), &|| fs::remove_file(&path).unwrap(), &|| {
            fs::create_dir(&path).unwrap()
        }];
    for spoil in spoil {
        spoil();
        // Whatever looks at the file fails, and takes nothing away.
        assert!(provider.check().await.is_err() && provider.current_key().await.is_err());
        assert!(provider.wrap(&data_key, CONTEXT).await.is_err() && provider.renew().await.is_err());
        for wrapped in [&first, &second] {
            let opened = provider.unwrap(&wrapped.key, &wrapped.bytes, CONTEXT).await.unwrap();
            assert!(opened.is_same(&data_key));
        }
    }
    fs::remove_dir(&path).unwrap();
    fs::write(&path, good).unwrap();
    set_mode(&path, 0o600);
    assert_eq!(provider.check().await, Ok(()));
}

#[test]
fn only_a_regular_file_of_sensible_size_is_read() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("master.key");
    fs::create_dir(&path).unwrap();
    set_mode(&path, 0o700);
    assert!(refusal(&path, None).contains("not a regular file"));
    assert!(refusal(Path::new("/dev/null"), None).contains("not a regular file"));
    let large = directory.path().join("large.key");
    fs::write(&large, vec![b' '; 70_000]).unwrap();
    set_mode(&large, 0o600);
    assert!(refusal(&large, None).contains("too large"));
}

#[test]
fn a_file_inside_the_data_directory_is_refused_and_not_made() {
    let directory = TempDir::new().unwrap();
    let data = directory.path().join("data");
    for path in [data.join("master.key"), data.join("deep/er/master.key"), directory.path().join("other/../data/k")] {
        fs::create_dir_all(directory.path().join("other")).unwrap();
        assert!(FileProvider::open(&path, Some(&data)).is_err(), "before the directory exists");
        fs::create_dir_all(&data).unwrap();
        assert!(refusal(&path, Some(&data)).contains("inside the data directory"));
        assert!(names_in(&data).is_empty());
        fs::remove_dir(&data).unwrap();
    }

    fs::create_dir(&data).unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&data, &link).unwrap();
    assert!(refusal(&link.join("master.key"), Some(&data)).contains("inside"), "a link leads inside");
    assert!(refusal(&data.join("master.key"), Some(&link)).contains("inside"), "the directory is given by a link");
    FileProvider::open(&directory.path().join("data.key"), Some(&data)).unwrap();
}

#[tokio::test]
async fn a_damaged_file_is_named_and_left_alone() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("master.key");
    let provider = open(&path);
    let data_key = SymmetricKey::random().unwrap();
    let wrapped = provider.wrap(&data_key, CONTEXT).await.unwrap();
    let good = fs::read(&path).unwrap();
    for bad in [&b""[..], b"{}", b"\xff\x00\xff", &good[..good.len() / 2]] {
        fs::write(&path, bad).unwrap();
        let reason = refusal(&path, None);
        assert!(reason.starts_with(&format!("the key file {} is damaged", path.display())), "{reason}");
        assert!(matches!(provider.wrap(&data_key, CONTEXT).await, Err(KeyError::Failed { .. })));
        assert!(provider.unwrap(&wrapped.key, &wrapped.bytes, CONTEXT).await.is_ok(), "what was loaded still opens");
        assert!(provider.renew().await.is_err());
        assert_eq!(fs::read(&path).unwrap(), bad);
    }
    fs::write(&path, &good).unwrap();
    assert!(provider.unwrap(&wrapped.key, &wrapped.bytes, CONTEXT).await.unwrap().is_same(&data_key));
}

#[tokio::test]
async fn a_file_that_vanishes_is_not_silently_replaced() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("master.key");
    let provider = open(&path);
    fs::remove_file(&path).unwrap();
    assert!(provider.current_key().await.is_err());
    assert!(provider.renew().await.is_err());
    assert!(!path.exists());
}

#[tokio::test]
async fn two_providers_on_one_file_see_each_others_changes() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("master.key");
    let (left, right) = (open(&path), open(&path));
    let data_key = SymmetricKey::random().unwrap();
    let first = left.current_key().await.unwrap();

    let second = right.renew().await.unwrap();
    assert_ne!(first, second);
    assert_eq!(left.wrap(&data_key, CONTEXT).await.unwrap().key, second);

    // The left one learns of the third key only by being asked to unwrap under it.
    let third = right.renew().await.unwrap();
    let wrapped = right.wrap(&data_key, CONTEXT).await.unwrap();
    assert_eq!(wrapped.key, third);
    assert!(left.unwrap(&third, &wrapped.bytes, CONTEXT).await.unwrap().is_same(&data_key));

    right.forget(&first).await.unwrap();
    right.forget(&first).await.unwrap();
    assert_eq!(left.current_key().await.as_ref(), Ok(&third));
    let gone = left.unwrap(&first, &wrapped.bytes, CONTEXT).await.err();
    assert_eq!(gone, Some(KeyError::Missing { key: first }));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
}

#[tokio::test]
async fn the_current_key_is_never_forgotten() {
    let directory = TempDir::new().unwrap();
    let provider = open(&directory.path().join("master.key"));
    let current = provider.current_key().await.unwrap();
    assert!(provider.forget(&current).await.unwrap_err().to_string().contains("current one"));
    assert_eq!(provider.check().await, Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_key_is_lost_when_many_renew_at_once() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("master.key");
    let renewals: Vec<_> = (0..8)
        .map(|_| {
            // Each opens for itself, as another process would; some of them race to make the file.
            let path = path.clone();
            tokio::spawn(async move { FileProvider::open(&path, None).unwrap().renew().await.unwrap() })
        })
        .collect();
    let mut made = Vec::new();
    for renewal in renewals {
        made.push(renewal.await.unwrap());
    }
    let keyring = read(&path).unwrap().keyring;
    assert!(made.iter().all(|key| keyring.holds(key)));
    assert_eq!(keyring.iter().count(), 9);
}

#[tokio::test]
async fn what_a_crash_left_behind_does_no_harm_and_goes_away() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("master.key");
    let leftover = directory.path().join(".master.key.tmp");
    fs::write(&leftover, b"half a key fi").unwrap();
    fs::write(directory.path().join("master.key.lock"), b"").unwrap();
    let provider = open(&path);
    fs::write(&leftover, b"half a key fi").unwrap();
    assert_eq!(provider.check().await, Ok(()));
    let renewed = provider.renew().await.unwrap();
    assert_eq!(open(&path).current_key().await, Ok(renewed));
    assert_eq!(names_in(directory.path()), ["master.key", "master.key.lock"]);
}

#[tokio::test]
async fn a_linked_file_is_changed_where_it_lies() {
    let directory = TempDir::new().unwrap();
    let (path, link) = (directory.path().join("real/master.key"), directory.path().join("link.key"));
    let direct = open(&path);
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let renewed = open(&link).renew().await.unwrap();
    assert_eq!(direct.current_key().await, Ok(renewed));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}
