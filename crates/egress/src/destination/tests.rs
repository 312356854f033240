//! What a URL alone reveals.

use super::*;

fn check(url: &str, allow: &[&str], hosts: &[&HostSet]) -> Result<(), SendError> {
    let policy = AddressPolicy::new(allow.iter().map(|network| network.parse().unwrap()).collect());
    Destination::check(&Url::parse(url).unwrap(), &policy, hosts).map(|_| ())
}

#[test]
fn a_refusal_says_what_is_wrong_with_the_url() {
    assert_eq!(check("ftp://example.com/", &[], &[]), Err(SendError::UnsupportedScheme));
    assert_eq!(check("file:///etc/passwd", &[], &[]), Err(SendError::UnsupportedScheme));
    assert_eq!(check("https://user@example.com/", &[], &[]), Err(SendError::UserInfo));
    assert_eq!(check("https://:word@example.com/", &[], &[]), Err(SendError::UserInfo));
    assert_eq!(check("https://example.com:0/", &[], &[]), Err(SendError::NoHost));
    let name = SendError::PrivateName { host: "metadata.google.internal".to_owned() };
    assert_eq!(check("http://METADATA.google.internal/", &[], &[]), Err(name));
    assert!(matches!(check("http://0x7f.1/", &[], &[]), Err(SendError::ForbiddenAddress(_))));
}

#[test]
fn a_private_name_is_looked_up_only_where_the_operator_exempts_addresses() {
    let url = Url::parse("http://localhost:8080/").unwrap();
    assert!(Destination::check(&url, &AddressPolicy::default(), &[]).is_err());
    let policy = AddressPolicy::new(vec!["127.0.0.1/32".parse().unwrap()]);
    let destination = Destination::check(&url, &policy, &[]).unwrap();
    assert_eq!(destination.target, Target::Name { name: "localhost", private: true });
    assert_eq!((destination.port, destination.secure), (8080, false));
}

#[test]
fn names_that_only_look_private_are_public() {
    for name in ["mylocalhost", "localhost.example.com", "internal.example.com", "metadata.example.com", "thelocal"] {
        assert_eq!(check(&format!("https://{name}/"), &[], &[]), Ok(()), "{name}");
    }
}

#[test]
fn every_set_must_contain_the_host() {
    let wide = HostSet::parse(["example.com", "8.8.8.8"]).unwrap();
    let narrow = HostSet::parse(["api.example.com"]).unwrap();
    let outside = |host: &str| Err(SendError::ForbiddenHost { host: host.to_owned() });
    assert_eq!(check("https://api.example.com/", &[], &[&wide, &narrow]), Ok(()));
    assert_eq!(check("https://www.example.com/", &[], &[&wide]), Ok(()));
    assert_eq!(check("https://www.example.com/", &[], &[&wide, &narrow]), outside("www.example.com"));
    assert_eq!(check("https://api.example.com.evil.test/", &[], &[&wide]), outside("api.example.com.evil.test"));
    assert_eq!(check("https://134744072/", &[], &[&wide]), Ok(()));
    assert_eq!(check("https://8.8.4.4/", &[], &[&wide]), outside("8.8.4.4"));
    assert_eq!(check("https://example.com/", &[], &[&HostSet::parse([]).unwrap()]), outside("example.com"));
}
