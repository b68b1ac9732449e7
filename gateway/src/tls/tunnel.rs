//! The way through a proxy: CONNECT (RFC 9110 9.3.6).

use super::settings::Proxy;

/// The longest answer of a proxy that is read.
const LONGEST: usize = 16 * 1024;

#[derive(Debug)]
pub(super) struct Tunnel {
    request: Vec<u8>,
    /// What has come of the answer.
    answer: Vec<u8>,
}

impl Tunnel {
    pub(super) fn new(proxy: &Proxy, host: &str, port: u16) -> Self {
        let authority = match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
        if let Some(credentials) = proxy.credentials() {
            request += &format!("Proxy-Authorization: Basic {credentials}\r\n");
        }
        request += "\r\n";
        Self { request: request.into_bytes(), answer: Vec::new() }
    }

    pub(super) fn request(&self) -> &[u8] {
        &self.request
    }

    /// Takes the proxy's answer from `bytes`, and nothing after it. Says whether
    /// the way is open.
    pub(super) fn receive(&mut self, bytes: &mut &[u8]) -> Result<bool, String> {
        while let Some((&byte, rest)) = bytes.split_first() {
            self.answer.push(byte);
            *bytes = rest;
            if self.answer.ends_with(b"\r\n\r\n") {
                return self.judge().map(|()| true);
            }
            if self.answer.len() > LONGEST {
                return Err("the proxy's answer is too long".to_owned());
            }
        }
        Ok(false)
    }

    fn judge(&self) -> Result<(), String> {
        let line = self.answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.splitn(3, ' ');
        let version = words.next().unwrap_or_default();
        match (version, words.next(), words.next()) {
            ("HTTP/1.1" | "HTTP/1.0", Some(status), _)
                if status.len() == 3 && status.starts_with('2') =>
            {
                Ok(())
            }
            ("HTTP/1.1" | "HTTP/1.0", Some("407"), _) => {
                Err("the proxy wants other credentials (407): put them into HTTPS_PROXY or HTTP_PROXY as \
                 http://USER:PASSWORD@HOST:PORT"
                    .to_owned())
            }
            ("HTTP/1.1" | "HTTP/1.0", Some(status), reason) => Err(format!(
                "the proxy refuses to connect ({status} {}): ask who runs it, or name this host \
                 in NO_PROXY",
                reason.unwrap_or_default()
            )),
            _ => Err("the proxy does not answer as one: check HTTPS_PROXY and HTTP_PROXY".to_owned()),
        }
    }
}
