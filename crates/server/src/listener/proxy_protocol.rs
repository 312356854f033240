//! The PROXY protocol, versions 1 and 2: before the first byte of a client, the proxy in front sends the client's
//! address.

use std::io;
use std::net::IpAddr;

use proxy_header::{ParseConfig, ProxyHeader};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The maximum length of a version 1 header, with its line end.
const MAX_LINE: usize = 107;
/// The signature, version, family and length of version 2.
const FIXED: usize = 16;
/// The maximum length of the rest in version 2: addresses and extensions.
const MAX_REST: usize = 2048;

/// Reads the header, and nothing after it. Returns the client's address; `None` if the proxy speaks for itself, as in a
/// health check.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<IpAddr>> {
    let mut header = vec![stream.read_u8().await?];
    match header.first() {
        Some(b'P') => read_line(stream, &mut header).await?,
        Some(b'\r') => read_binary(stream, &mut header).await?,
        _ => return Err(no_header()),
    }
    let (header, _) = ProxyHeader::parse(&header, ParseConfig { include_tlvs: false, ..ParseConfig::default() })
        .map_err(|_| no_header())?;
    Ok(header.proxied_address().map(|addresses| addresses.source.ip().to_canonical()))
}

async fn read_line(stream: &mut (impl AsyncRead + Unpin), header: &mut Vec<u8>) -> io::Result<()> {
    while header.last() != Some(&b'\n') {
        if header.len() == MAX_LINE {
            return Err(no_header());
        }
        header.push(stream.read_u8().await?);
    }
    Ok(())
}

async fn read_binary(stream: &mut (impl AsyncRead + Unpin), header: &mut Vec<u8>) -> io::Result<()> {
    let mut fixed = [0; FIXED - 1];
    stream.read_exact(&mut fixed).await?;
    header.extend_from_slice(&fixed);
    let [.., high, low] = fixed;
    let rest = usize::from(u16::from_be_bytes([high, low]));
    if rest > MAX_REST {
        return Err(no_header());
    }
    header.resize(FIXED + rest, 0);
    stream.read_exact(header.get_mut(FIXED..).unwrap_or_default()).await?;
    Ok(())
}

fn no_header() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the connection does not begin with a PROXY header")
}

#[cfg(test)]
mod tests {
    use proxy_header::ProxiedAddress;

    use super::*;

    /// The parsed header of these bytes, and the remaining bytes.
    async fn read_from(bytes: &[u8]) -> (Option<Option<String>>, Vec<u8>) {
        let mut stream = bytes;
        let client = read(&mut stream).await.ok();
        (client.map(|client| client.map(|address| address.to_string())), stream.to_vec())
    }

    fn addresses() -> ProxyHeader<'static> {
        let parse = |text: &str| text.parse().unwrap();
        ProxyHeader::with_address(ProxiedAddress::stream(parse("203.0.113.5:4711"), parse("192.0.2.1:443")))
    }

    #[tokio::test]
    async fn both_versions_name_the_client_and_leave_its_bytes() {
        let (mut text, mut binary) = (Vec::new(), Vec::new());
        addresses().encode_v1(&mut text).unwrap();
        addresses().encode_v2(&mut binary).unwrap();
        for mut bytes in [text, binary] {
            bytes.extend_from_slice(b"GET / HTTP/1.1");
            assert_eq!(read_from(&bytes).await, (Some(Some("203.0.113.5".to_owned())), b"GET / HTTP/1.1".to_vec()));
        }
    }

    #[tokio::test]
    async fn a_proxy_may_speak_for_itself() {
        let mut binary = Vec::new();
        ProxyHeader::with_local().encode_v2(&mut binary).unwrap();
        assert_eq!(read_from(&binary).await, (Some(None), Vec::new()));
        assert_eq!(read_from(b"PROXY UNKNOWN\r\n").await, (Some(None), Vec::new()));
    }

    #[tokio::test]
    async fn anything_else_is_refused() {
        let mut binary = Vec::new();
        addresses().encode_v2(&mut binary).unwrap();
        let long = [&binary[..14], &[0xff, 0xff], &[0; 100]].concat();
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"PROXY TCP4 nonsense\r\n",
            b"PROXY TCP4 203.0.113.5 192.0.2.1 4711",
            &[b'P'; 300],
            &long,
            &binary[..20],
            b"",
        ] {
            assert_eq!(read_from(bytes).await.0, None, "{bytes:?}");
        }
    }
}
