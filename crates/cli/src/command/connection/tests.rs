//! Which gate and which key: the more explicit wins, and no key goes to another gate than its own.

use super::*;
use crate::logins::Owner;

const LOCAL: &str = "http://127.0.0.1:7300";
const REMOTE: &str = "https://gate.example";

fn logins() -> Logins {
    let mut logins = Logins::default();
    for (name, url) in [("admin", LOCAL), ("billing", LOCAL), ("remote", REMOTE)] {
        let owner = Some(Owner { principal: name.to_owned(), tenant: "default".to_owned() });
        logins.save(Profile {
            name: name.to_owned(),
            url: url.to_owned(),
            owner,
            key: Secret::new(format!("key-{name}")),
        });
    }
    logins
}

/// The URL, and the name of the login or the key of the environment.
fn chosen(flags: [&str; 2], variables: [&str; 3], current: &str) -> Result<(String, String), String> {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let connection = Connection { url: given(flags[0]), profile: given(flags[1]), json: false };
    let surroundings = Surroundings {
        url: given(variables[0]),
        profile: given(variables[1]),
        key: given(variables[2]).map(Secret::new),
    };
    let access = connection.choose(surroundings, || {
        let mut logins = logins();
        if current.is_empty() {
            logins.remove("admin");
        } else {
            assert!(logins.select(current));
        }
        Ok(logins)
    });
    let access = access.map_err(|failure| failure.to_string())?;
    let from = access.profile.unwrap_or_else(|| access.key.expose().to_owned());
    Ok((access.url, from))
}

#[test]
fn the_more_explicit_choice_wins() {
    for (flags, variables, current, url, from) in [
        (["", ""], ["", "", ""], "admin", LOCAL, "admin"),
        (["", ""], ["", "", ""], "remote", REMOTE, "remote"),
        (["", ""], ["", "billing", ""], "remote", LOCAL, "billing"),
        (["", ""], [REMOTE, "", ""], "admin", REMOTE, "remote"),
        (["", ""], [LOCAL, "", ""], "billing", LOCAL, "billing"),
        (["", ""], ["", "", "key"], "remote", REMOTE, "key"),
        (["", ""], [LOCAL, "", "key"], "remote", LOCAL, "key"),
        (["", ""], ["", "remote", "key"], "admin", REMOTE, "key"),
        (["", "billing"], [REMOTE, "remote", "key"], "admin", LOCAL, "billing"),
        ([REMOTE, ""], ["", "", ""], "admin", REMOTE, "remote"),
        (["https://gate.example/", ""], [LOCAL, "", ""], "admin", REMOTE, "remote"),
        ([REMOTE, ""], ["", "billing", ""], "admin", REMOTE, "remote"),
        ([LOCAL, ""], ["", "billing", ""], "admin", LOCAL, "billing"),
        ([LOCAL, "billing"], ["", "", ""], "admin", LOCAL, "billing"),
    ] {
        let expected = Ok((url.to_owned(), from.to_owned()));
        assert_eq!(chosen(flags, variables, current), expected, "{flags:?} {variables:?} {current}");
    }
}

#[test]
fn what_cannot_be_chosen_says_what_to_do() {
    for (flags, variables, current, message) in [
        ([REMOTE, "billing"], ["", "", ""], "admin", "--url is https://gate.example"),
        (["", ""], [REMOTE, "billing", ""], "admin", "TOOLGATE_URL is https://gate.example"),
        (["", "biling"], ["", "", ""], "admin", "known profiles: admin, billing, remote"),
        (["", ""], ["", "nobody", ""], "admin", "no profile nobody"),
        ([LOCAL, ""], ["", "", ""], "remote", "select one with --profile: admin, billing"),
        (["http://other", ""], ["", "", ""], "admin", "toolgate login --url http://other"),
        (["", ""], ["", "", ""], "", "toolgate profile use NAME"),
        (["ftp://x", ""], ["", "", ""], "admin", "not the URL of a gate"),
    ] {
        let said = chosen(flags, variables, current).unwrap_err();
        assert!(said.contains(message), "{flags:?} {variables:?}: {said}");
    }
}
