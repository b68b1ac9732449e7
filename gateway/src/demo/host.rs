//! What is known about whoever asks: a legacy host says it once, a modern one
//! with every request.

use mcpx_core::jsonrpc::{code, get, string};
use mcpx_core::protocol::fault::Fault;
use mcpx_core::protocol::meta;
use mcpx_core::protocol::revision::Revision;

/// How a host speaks and what it can do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    pub(super) revision: Revision,
    /// Whether it shows forms to its user.
    pub(super) elicits: bool,
    /// Whether it lends out its model.
    pub(super) samples: bool,
    /// Whether it tells which places its user works in.
    pub(super) has_roots: bool,
    /// The lowest level of log messages that it wants; none: it wants none.
    pub(super) level: Option<Level>,
}

/// What a legacy session has agreed on.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) host: Host,
    /// Whether it has subscribed to `demo://counter`.
    pub(super) watches: bool,
}

impl Host {
    /// The host that sends these parameters of `initialize`. It gets the revision
    /// that it asks for, if that is a legacy one, and the newest of those otherwise.
    pub(super) fn of_initialize(params: &str) -> Result<Self, Fault> {
        let wanted = get(params, "protocolVersion").and_then(string).ok_or_else(|| {
            Fault::new(code::INVALID_PARAMS, "initialize needs protocolVersion, a string")
        })?;
        let revision = Revision::parse_legacy(&wanted).unwrap_or(Revision::NEWEST_LEGACY);
        Ok(Self::able(revision, get(params, "capabilities").unwrap_or_default()))
    }

    /// The host that sends a modern request with these parameters. The endpoint
    /// has seen to it that their `_meta` is complete.
    pub(super) fn of_request(params: &str) -> Result<Self, Fault> {
        let meta = meta::of(params).unwrap_or_default();
        let capabilities = get(meta, meta::CLIENT_CAPABILITIES).unwrap_or_default();
        let mut host = Self::able(Revision::NEWEST_MODERN, capabilities);
        if let Some(level) = get(meta, meta::LOG_LEVEL) {
            host.level = Some(Level::parse(level).ok_or_else(Level::unknown)?);
        }
        Ok(host)
    }

    /// A host of which nothing else is known.
    pub(super) fn unknown(revision: Revision) -> Self {
        Self::able(revision, "")
    }

    fn able(revision: Revision, capabilities: &str) -> Self {
        let declared = |name| get(capabilities, name).filter(|value| value.starts_with('{'));
        Self {
            revision,
            // An empty object means forms (2025-11-25 `client/elicitation`).
            elicits: revision >= Revision::R2025_06_18
                && declared("elicitation").is_some_and(|modes| {
                    get(modes, "form").is_some() || get(modes, "url").is_none()
                }),
            samples: declared("sampling").is_some(),
            has_roots: declared("roots").is_some(),
            level: None,
        }
    }

    /// Whether it wants to see log messages of this level.
    pub(super) fn hears(&self, level: Level) -> bool {
        self.level.is_some_and(|least| least <= level)
    }
}

/// The severity of a log message, mildest first (RFC 5424 section 6.2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl Level {
    /// The level that raw JSON names.
    pub(super) fn parse(raw: &str) -> Option<Self> {
        Some(match &*string(raw)? {
            "debug" => Self::Debug,
            "info" => Self::Info,
            "notice" => Self::Notice,
            "warning" => Self::Warning,
            "error" => Self::Error,
            "critical" => Self::Critical,
            "alert" => Self::Alert,
            "emergency" => Self::Emergency,
            _ => return None,
        })
    }

    /// The answer to a level that does not exist.
    pub(super) fn unknown() -> Fault {
        Fault::new(
            code::INVALID_PARAMS,
            "A log level is debug, info, notice, warning, error, critical, alert or emergency",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(version: &str, capabilities: &str) -> Host {
        let params = format!(r#"{{"protocolVersion":"{version}","capabilities":{capabilities}}}"#);
        Host::of_initialize(&params).unwrap()
    }

    #[test]
    fn a_legacy_host_gets_its_revision_or_the_newest() {
        for revision in Revision::ALL {
            let expected = revision.min(Revision::NEWEST_LEGACY);
            assert_eq!(host(revision.as_str(), "{}").revision, expected);
        }
        assert_eq!(host("1999-01-01", "{}").revision, Revision::NEWEST_LEGACY);
        assert!(Host::of_initialize("{}").is_err());
        assert!(Host::of_initialize(r#"{"protocolVersion":1}"#).is_err());
    }

    #[test]
    fn capabilities_are_read_as_the_revision_means_them() {
        assert!(host("2025-06-18", r#"{"elicitation":{}}"#).elicits);
        assert!(host("2025-11-25", r#"{"elicitation":{"form":{},"url":{}}}"#).elicits);
        assert!(!host("2025-11-25", r#"{"elicitation":{"url":{}}}"#).elicits);
        assert!(!host("2025-03-26", r#"{"elicitation":{}}"#).elicits);
        assert!(host("2024-11-05", r#"{"sampling":{}}"#).samples);
        assert!(!host("2024-11-05", r#"{"sampling":null}"#).samples);
    }

    #[test]
    fn levels_are_in_order() {
        let quiet = Host { level: Some(Level::Warning), ..host("2025-11-25", "{}") };
        assert!(quiet.hears(Level::Error) && quiet.hears(Level::Warning));
        assert!(!quiet.hears(Level::Info));
        assert!(!host("2025-11-25", "{}").hears(Level::Emergency));
        assert_eq!(Level::parse(r#""loud""#), None);
        assert_eq!(Level::parse("1"), None);
    }
}
