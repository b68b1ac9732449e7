//! What a machine is made from, besides its servers and its seed.

use mcpx_core::server;

use crate::access;
use crate::listen::{Door, PATH};

/// The hosts' side.
#[derive(Debug, Default)]
pub(crate) struct Setup {
    /// Where they come in.
    pub(crate) doors: Vec<Door>,
    pub(crate) access: access::Options,
    /// The tokens that those who come by HTTP must have.
    pub(crate) tokens: Vec<String>,
}

impl Setup {
    /// The same in words that the core understands.
    pub(crate) fn endpoint(&self) -> Result<server::Config, String> {
        let access = &self.access;
        let listeners = self.doors.iter().map(|door| {
            Ok(match door {
                Door::Http(bound) => server::Listener::Http(access.rules(bound)?),
                Door::Ndjson => server::Listener::Ndjson,
                Door::Stdio => server::Listener::Stdio,
            })
        });
        Ok(server::Config {
            listeners: listeners.collect::<Result<_, String>>()?,
            path: PATH.into(),
            access: server::Access {
                tokens: self.tokens.clone(),
                cors: !access.origins.is_empty(),
            },
            legacy_sse: access.legacy_sse.then(server::LegacySse::default),
            ..server::Config::default()
        })
    }
}
