//! Whom to trust, who we are, and which way to go.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpx_core::driver::Target;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// What a server's configuration says about TLS.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Options {
    /// A file (PEM) with authorities to trust besides the system's.
    pub(crate) ca: Option<PathBuf>,
    /// Files (PEM) with our certificate, and its key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
    /// Any certificate will do.
    pub(crate) insecure: bool,
}

/// The TLS of all servers, ready for use.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    servers: BTreeMap<(String, u16), (Options, Arc<ClientConfig>)>,
    /// Those that are reached through a proxy.
    proxies: BTreeMap<(String, u16), Proxy>,
}

/// Settings that may be replaced while they are in use.
pub(crate) type Shared = Rc<RefCell<Settings>>;

/// An HTTP proxy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Proxy {
    host: String,
    port: u16,
    credentials: Option<String>,
}

impl Settings {
    /// Makes a server by https known, with the proxy that `variable` names: it gives
    /// the value of a variable of the environment.
    pub(crate) fn add(
        &mut self,
        host: &str,
        port: u16,
        options: &Options,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        match self.servers.get(&(host.to_owned(), port)) {
            Some((known, _)) if known == options => return Ok(()),
            Some(_) => {
                let why = "another server at the same host and port has other \"tls\": \
                           make them the same";
                return Err(why.to_owned());
            }
            None => {}
        }
        let config = Arc::new(config(options)?);
        self.servers.insert((host.to_owned(), port), (options.clone(), config));
        self.add_proxy("https_proxy", host, port, variable)
    }

    /// The same of one by http, which needs no more than the proxy.
    pub(crate) fn add_plain(
        &mut self,
        host: &str,
        port: u16,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        self.add_proxy("http_proxy", host, port, variable)
    }

    fn add_proxy(
        &mut self,
        name: &str,
        host: &str,
        port: u16,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        let set = |name: &str| {
            let found = variable(name).or_else(|| variable(&name.to_uppercase()));
            found.filter(|value| !value.trim().is_empty())
        };
        let Some(address) = set(name).or_else(|| set("all_proxy")) else { return Ok(()) };
        let proxy = Proxy::parse(&address)?;
        if !is_direct(host, &set("no_proxy").unwrap_or_default()) {
            self.proxies.insert((host.to_owned(), port), proxy);
        }
        Ok(())
    }

    pub(super) fn config(&self, host: &str, port: u16) -> Result<Arc<ClientConfig>, String> {
        let found = self.servers.get(&(host.to_owned(), port)).map(|(_, config)| config.clone());
        found.ok_or_else(|| "nothing is configured for TLS with it".to_owned())
    }

    /// The proxy that leads to a server.
    pub(super) fn proxy(&self, host: &str, port: u16) -> Option<&Proxy> {
        self.proxies.get(&(host.to_owned(), port))
    }
}

/// Whether a host is reached without a proxy: it is in the list, or below a domain that
/// is.
fn is_direct(host: &str, list: &str) -> bool {
    let host = host.to_lowercase();
    let entries = list.split(',').map(|entry| entry.trim().trim_start_matches('.'));
    let listed = |entry: String| {
        let rest = host.strip_suffix(entry.as_str());
        entry == "*" || rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    // Nobody means their own machine to be reached from elsewhere.
    let own = host == "localhost" || host.starts_with("127.") || host == "::1";
    own || entries.filter(|entry| !entry.is_empty()).map(str::to_lowercase).any(listed)
}

impl Proxy {
    /// Reads `[http://][USER:PASSWORD@]HOST:PORT`. The message about a wrong one
    /// does not show it: it may hold a password.
    fn parse(address: &str) -> Result<Self, String> {
        let wrong = || {
            "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY is not http://[USER:PASSWORD@]HOST:PORT"
                .to_owned()
        };
        let rest = match address.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => return Err(wrong()),
            None => address,
        };
        let rest = rest.trim_end_matches('/');
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        let (host, port) = place.rsplit_once(':').unwrap_or((place, "3128"));
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse().map_err(|_| wrong())?;
        if host.is_empty() || port == 0 {
            return Err(wrong());
        }
        let credentials = user.map(|user| STANDARD.encode(decoded(user)));
        Ok(Self { host: host.to_owned(), port, credentials })
    }

    pub(super) fn target(&self) -> Target {
        Target::Tcp { host: self.host.clone(), port: self.port }
    }

    pub(super) fn credentials(&self) -> Option<&str> {
        self.credentials.as_deref()
    }
}

/// Text without its percent-encoding.
fn decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| byte == b'%') {
            Some(byte) => {
                out.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

fn config(options: &Options) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be used: {error}"))?;
    let builder = if options.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider)))
    } else {
        builder.with_root_certificates(roots(options.ca.as_deref())?)
    };
    let config = match &options.identity {
        None => Ok(builder.with_no_client_auth()),
        Some((cert, key)) => {
            let (chain, key_der) = (certificates(cert)?, private_key(key)?);
            builder.with_client_auth_cert(chain, key_der)
        }
    };
    let mut config = config.map_err(|error| format!("our certificate cannot be used: {error}"))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The system's authorities, and those of a file.
fn roots(extra: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    if let Some(path) = extra {
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    if roots.is_empty() {
        return Err("the system has no certificate authorities: install ca-certificates, or name \
                    a file with some as \"tls\": {\"ca\": FILE}"
            .to_owned());
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).and_then(|found| found.collect());
    match found {
        Ok(found) if found.is_empty() => Err(format!("{shown} has no certificate in PEM")),
        Ok(found) => Ok(found),
        Err(error) => Err(format!("{shown} cannot be read: {error}")),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|error| format!("{} has no private key in PEM: {error}", path.display()))
}

/// Takes any certificate, as the user has asked for. The other side must still
/// have its key.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
