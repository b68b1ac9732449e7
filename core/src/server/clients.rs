//! What each client has: connections and sessions, counted by its address.
//!
//! One client shall not take all the room of the others. Whoever comes from
//! this machine is not counted: a Unix socket, our own standard input, and
//! loopback addresses, behind which a reverse proxy may stand for everybody.

use alloc::collections::BTreeMap;
use core::net::{IpAddr, Ipv4Addr};

/// A client: an IPv4 address, or the /64 of an IPv6 address, since that is what
/// one customer has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Client {
    V4(Ipv4Addr),
    V6(u64),
}

impl Client {
    pub(super) fn at(address: Option<IpAddr>) -> Option<Self> {
        match address?.to_canonical() {
            ip if ip.is_loopback() => None,
            IpAddr::V4(ip) => Some(Self::V4(ip)),
            IpAddr::V6(ip) => Some(Self::V6((ip.to_bits() >> 64) as u64)),
        }
    }
}

/// Everybody who has something.
#[derive(Debug, Default)]
pub(super) struct Clients(BTreeMap<Client, Held>);

/// What a client has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Held {
    pub(super) connections: usize,
    pub(super) sessions: usize,
}

impl Clients {
    pub(super) fn of(&self, client: Option<Client>) -> Held {
        client.and_then(|client| self.0.get(&client)).copied().unwrap_or_default()
    }

    pub(super) fn change(&mut self, client: Option<Client>, change: impl FnOnce(&mut Held)) {
        let Some(client) = client else { return };
        let held = self.0.entry(client).or_default();
        change(held);
        if *held == Held::default() {
            self.0.remove(&client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_who_it_is() {
        let at = |text: &str| Client::at(Some(text.parse().unwrap()));
        assert_eq!(Client::at(None), None);
        for local in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(at(local), None, "{local}");
        }
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("192.0.2.2"), at("192.0.2.1"));
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:0:0:1"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
    }

    #[test]
    fn who_has_nothing_is_forgotten() {
        let mut clients = Clients::default();
        let client = Client::at(Some("192.0.2.1".parse().unwrap()));
        clients.change(client, |held| held.connections += 1);
        assert_eq!(clients.of(client).connections, 1);
        clients.change(client, |held| held.connections -= 1);
        assert!(clients.0.is_empty());
    }
}
