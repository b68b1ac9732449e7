//! Both ends in memory: our layer, and a server of rustls.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::Arc;

use mcpx_core::driver::{Action, CloseReason, ConnId, Input, Machine, Target};
use mcpx_core::event::Event;
use mcpx_core::time::Instant;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

use super::*;

const CONN: ConnId = ConnId::requested(1);

/// Connects, says what it is told to say, and remembers what it hears.
#[derive(Debug, Default)]
struct Talker {
    asked: bool,
    says: Vec<u8>,
    heard: Vec<u8>,
    told: Vec<&'static str>,
    actions: VecDeque<Action>,
}

impl Machine for Talker {
    fn handle(&mut self, _: Instant, input: Input<'_>) {
        match input {
            Input::Connected { .. } => {
                self.told.push("connected");
                self.actions.push_back(Action::Flush(CONN));
            }
            Input::Received { bytes, .. } => self.heard.extend_from_slice(bytes),
            Input::Finished { .. } => self.told.push("finished"),
            Input::Closed { why: CloseReason::Untrusted, .. } => self.told.push("untrusted"),
            Input::Closed { why: CloseReason::Reset, .. } => self.told.push("reset"),
            Input::Closed { .. } => self.told.push("closed"),
            _ => {}
        }
    }

    fn poll(&mut self) -> Option<Action> {
        if !std::mem::replace(&mut self.asked, true) {
            let to = Target::Tls { host: "server.test".to_owned(), port: 443 };
            return Some(Action::Connect { conn: CONN, to });
        }
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn outgoing(&self, _: ConnId) -> &[u8] {
        &self.says
    }

    fn sent(&mut self, _: Instant, _: ConnId, n: usize) {
        self.says.drain(..n);
    }
}

/// An authority, and a server with a certificate of it.
struct Town {
    ca: tempfile::Path,
    server: ServerConnection,
}

mod tempfile {
    //! A file that goes when its test does.

    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    pub(super) struct Path(pub(super) PathBuf);

    impl Path {
        pub(super) fn with(text: &str) -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let name = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("mcpx-tls-{}-{name}.pem", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, text).unwrap();
            Self(path)
        }
    }

    impl Drop for Path {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

impl Town {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let ca = tempfile::Path::with(&params.self_signed(&key).unwrap().pem());
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["server.test".to_owned()]).unwrap();
        let cert = CertificateDer::from(params.signed_by(&key, &issuer).unwrap());
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let config = builder.with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_no_client_auth().with_single_cert(vec![cert], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { ca, server: ServerConnection::new(Arc::new(config)).unwrap() }
    }

    fn settings(&self, proxy: Option<&str>) -> Settings {
        let options = Options { ca: Some(self.ca.0.clone()), ..Options::default() };
        settings(&options, proxy)
    }
}

fn settings(options: &Options, proxy: Option<&str>) -> Settings {
    let variable = |name: &str| (name == "HTTPS_PROXY").then(|| proxy.map(str::to_owned))?;
    let mut settings = Settings::default();
    settings.add("server.test", 443, options, variable).unwrap();
    settings
}

fn shared(settings: Settings) -> Shared {
    Rc::new(RefCell::new(settings))
}

/// Moves bytes in pieces of this length until both sides are quiet.
fn settle(secure: &mut Secure<'_, Talker>, server: &mut ServerConnection, piece: usize) -> Vec<u8> {
    let mut heard = Vec::new();
    loop {
        while secure.poll().is_some() {}
        let mut moved = false;
        let out = secure.outgoing(CONN);
        let n = out.len().min(piece);
        if n > 0 {
            let mut bytes = &out[..n];
            while !bytes.is_empty() {
                server.read_tls(&mut bytes).unwrap();
                let Ok(state) = server.process_new_packets() else { break };
                let mut plain = vec![0; state.plaintext_bytes_to_read()];
                server.reader().read_exact(&mut plain).unwrap();
                heard.extend(plain);
            }
            secure.sent(Instant::START, CONN, n);
            moved = true;
        }
        let mut back = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut back).unwrap();
        }
        for bytes in back.chunks(piece) {
            secure.handle(Instant::START, Input::Received { conn: CONN, bytes });
            moved = true;
        }
        if !moved {
            return heard;
        }
    }
}

fn connect(secure: &mut Secure<'_, Talker>) -> Target {
    let Some(Action::Connect { to, .. }) = secure.poll() else { panic!("no connection") };
    secure.handle(Instant::START, Input::Connected { conn: CONN });
    to
}

#[test]
fn bytes_go_both_ways_however_they_are_cut() {
    let long: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
    for piece in [1, 7, 1000, 100_000] {
        let mut town = Town::new();
        let mut talker = Talker { says: long.clone(), ..Talker::default() };
        let mut secure = Secure::new(&mut talker, shared(town.settings(None)));
        let to = connect(&mut secure);
        assert_eq!(to, Target::Tcp { host: "server.test".to_owned(), port: 443 });
        assert_eq!(settle(&mut secure, &mut town.server, piece), long);
        assert_eq!(town.server.alpn_protocol(), Some(&b"http/1.1"[..]));
        town.server.writer().write_all(b"hello").unwrap();
        town.server.send_close_notify();
        settle(&mut secure, &mut town.server, piece);
        secure.handle(Instant::START, Input::Finished { conn: CONN });
        assert_eq!(talker.heard, b"hello");
        assert_eq!(talker.told, ["connected", "finished"]);
    }
}

#[test]
fn no_more_is_encrypted_than_the_runtime_takes() {
    let mut town = Town::new();
    let mut talker = Talker::default();
    let mut secure = Secure::new(&mut talker, shared(town.settings(None)));
    connect(&mut secure);
    settle(&mut secure, &mut town.server, 1000);
    secure.machine.says = vec![b'x'; 1 << 20];
    secure.machine.actions.push_back(Action::Flush(CONN));
    assert_eq!(secure.poll(), Some(Action::Flush(CONN)));
    assert_eq!(secure.poll(), None);
    assert!(secure.outgoing(CONN).len() < 100_000);
    assert!(secure.machine.says.len() > 900_000);
    secure.machine.actions.push_back(Action::Finish(CONN));
    assert_eq!(secure.poll(), None);
    let mut finished = false;
    while !secure.outgoing(CONN).is_empty() {
        let n = secure.outgoing(CONN).len();
        secure.sent(Instant::START, CONN, n);
        finished |= secure.actions.contains(&Action::Finish(CONN));
        while secure.poll().is_some() {}
    }
    assert!(finished && talker.says.is_empty());
}

#[test]
fn strangers_are_refused_unless_anybody_will_do() {
    let insecure = Options { insecure: true, ..Options::default() };
    let other = Town::new();
    for (settings, expected) in
        [(other.settings(None), "untrusted"), (settings(&insecure, None), "connected")]
    {
        let mut town = Town::new();
        let mut talker = Talker::default();
        let mut secure = Secure::new(&mut talker, shared(settings));
        connect(&mut secure);
        settle(&mut secure, &mut town.server, 1000);
        assert_eq!(talker.told, [expected]);
    }
}

#[test]
fn an_end_without_farewell_is_none() {
    let mut town = Town::new();
    let mut talker = Talker::default();
    let mut secure = Secure::new(&mut talker, shared(town.settings(None)));
    connect(&mut secure);
    settle(&mut secure, &mut town.server, 1000);
    secure.handle(Instant::START, Input::Finished { conn: CONN });
    assert_eq!(secure.poll(), Some(Action::Close(CONN)));
    assert_eq!(talker.told, ["connected", "reset"]);

    let mut talker = Talker::default();
    let mut secure = Secure::new(&mut talker, shared(town.settings(None)));
    connect(&mut secure);
    secure.handle(Instant::START, Input::Received { conn: CONN, bytes: b"HTTP/1.1 400 Bad\r\n" });
    assert_eq!(talker.told, ["closed"]);
}

#[test]
fn a_proxy_is_asked_for_the_way() {
    let mut town = Town::new();
    let mut talker = Talker { says: b"hello".to_vec(), ..Talker::default() };
    let proxy = Some("http://user:p%40ss@proxy.test:8080/");
    let mut secure = Secure::new(&mut talker, shared(town.settings(proxy)));
    let to = connect(&mut secure);
    assert_eq!(to, Target::Tcp { host: "proxy.test".to_owned(), port: 8080 });
    assert_eq!(secure.poll(), Some(Action::Flush(CONN)));
    let asked = secure.outgoing(CONN).to_vec();
    assert_eq!(
        asked.escape_ascii().to_string(),
        r"CONNECT server.test:443 HTTP/1.1\r\nHost: server.test:443\r\nProxy-Authorization: Basic dXNlcjpwQHNz\r\n\r\n"
    );
    secure.sent(Instant::START, CONN, asked.len());
    for bytes in b"HTTP/1.1 200 OK\r\nVia: x\r\n\r\n".chunks(5) {
        secure.handle(Instant::START, Input::Received { conn: CONN, bytes });
    }
    assert_eq!(settle(&mut secure, &mut town.server, 100), b"hello");
    assert_eq!(talker.told, ["connected"]);

    for (answer, word) in [
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "credentials"),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", "403 Forbidden"),
        ("hello\r\n\r\n", "HTTPS_PROXY"),
    ] {
        let mut talker = Talker::default();
        let mut secure = Secure::new(&mut talker, shared(town.settings(proxy)));
        connect(&mut secure);
        secure.handle(Instant::START, Input::Received { conn: CONN, bytes: answer.as_bytes() });
        let told = std::iter::from_fn(|| secure.poll()).find_map(|action| match action {
            Action::Event(Event::Warning(text)) => Some(text),
            _ => None,
        });
        assert!(told.unwrap().contains(word));
        assert_eq!(talker.told, ["closed"]);
    }
}

#[test]
fn some_hosts_need_no_proxy() {
    let variable = |name: &str| match name {
        "all_proxy" => Some("proxy:1".to_owned()),
        "NO_PROXY" => Some("example.com, .internal ,10.1.2.3".to_owned()),
        _ => None,
    };
    let has_proxy = |host| {
        let mut settings = Settings::default();
        let options = Options { insecure: true, ..Options::default() };
        settings.add(host, 1, &options, variable).unwrap();
        settings.proxy(host, 1).is_some()
    };
    for host in ["example.com", "a.Example.com", "x.internal", "10.1.2.3", "localhost", "127.0.0.1"]
    {
        assert!(!has_proxy(host), "{host}");
    }
    for host in ["notexample.com", "example.org", "10.1.2.30"] {
        assert!(has_proxy(host), "{host}");
    }
    for wrong in ["socks5://a:1", "http://:1", "http://a:0", "http://a:x"] {
        let variable = |name: &str| (name == "https_proxy").then(|| wrong.to_owned());
        let why = Settings::default().add("a", 1, &Options::default(), variable).unwrap_err();
        assert!(why.contains("HTTPS_PROXY") && !why.contains(wrong), "{why}");
    }
}

#[test]
fn servers_at_one_place_have_one_kind_of_tls() {
    let mut settings = Settings::default();
    let insecure = Options { insecure: true, ..Options::default() };
    for port in [1, 1, 2] {
        settings.add("a", port, &insecure, |_| None).unwrap();
    }
    let why = settings.add("a", 2, &Options::default(), |_| None).unwrap_err();
    assert!(why.contains("same host and port"), "{why}");
}

#[test]
fn files_that_do_not_fit_are_named() {
    let file = tempfile::Path::with("nothing");
    let missing = std::path::PathBuf::from("/nonexistent/ca.pem");
    for path in [&file.0, &missing] {
        let options = Options { ca: Some(path.clone()), ..Options::default() };
        let why = Settings::default().add("a", 1, &options, |_| None).unwrap_err();
        assert!(why.contains(path.to_str().unwrap()), "{why}");
        let identity = Some((path.clone(), path.clone()));
        let options = Options { identity, insecure: true, ..Options::default() };
        let why = Settings::default().add("a", 1, &options, |_| None).unwrap_err();
        assert!(why.contains(path.to_str().unwrap()), "{why}");
    }
}

#[test]
fn a_proxy_is_asked_for_the_way_in_the_clear_too() {
    let variable = |name: &str| match name {
        "HTTP_PROXY" => Some("http://proxy.test:8080".to_owned()),
        "no_proxy" => Some("near.test".to_owned()),
        _ => None,
    };
    let plain = |host| {
        let mut settings = Settings::default();
        settings.add_plain(host, 80, variable).unwrap();
        settings
    };
    for (answer, told) in [
        (Some("HTTP/1.1 200 OK\r\n\r\nhello"), "connected"),
        (Some("HTTP/1.1 403 Forbidden\r\n\r\n"), "closed"),
        (None, "closed"),
    ] {
        let mut talker = Talker { asked: true, says: b"hi".to_vec(), ..Talker::default() };
        let to = Target::Tcp { host: "server.test".to_owned(), port: 80 };
        talker.actions.push_back(Action::Connect { conn: CONN, to });
        let mut secure = Secure::new(&mut talker, shared(plain("server.test")));
        let proxy = Target::Tcp { host: "proxy.test".to_owned(), port: 8080 };
        assert_eq!(secure.poll(), Some(Action::Connect { conn: CONN, to: proxy }));
        secure.handle(Instant::START, Input::Connected { conn: CONN });
        assert_eq!(secure.poll(), Some(Action::Flush(CONN)));
        let asked = secure.outgoing(CONN).to_vec();
        assert!(asked.starts_with(b"CONNECT server.test:80 HTTP/1.1\r\n"));
        secure.sent(Instant::START, CONN, asked.len());
        assert!(secure.outgoing(CONN).is_empty() && secure.machine.told.is_empty());
        match answer {
            Some(answer) => {
                for byte in answer.as_bytes() {
                    let bytes = std::slice::from_ref(byte);
                    secure.handle(Instant::START, Input::Received { conn: CONN, bytes });
                }
            }
            None => secure.handle(Instant::START, Input::Finished { conn: CONN }),
        }
        assert_eq!(secure.machine.told, [told]);
        if told == "connected" {
            assert_eq!(secure.poll(), Some(Action::Flush(CONN)));
            assert_eq!(secure.outgoing(CONN), b"hi");
            assert_eq!(secure.machine.heard, b"hello");
        } else {
            assert!(matches!(secure.poll(), Some(Action::Event(Event::Warning(_)))));
            assert_eq!(secure.poll(), Some(Action::Close(CONN)));
        }
    }
    for host in ["near.test", "localhost"] {
        assert!(plain(host).proxy(host, 80).is_none(), "{host}");
    }
}
