//! What stands in the place of secrets: as many other characters, the same for the same
//! secret, in one recording.
//!
//! Bytes come in pieces of any size, so each character is replaced as it comes, by one
//! that depends on all of the secret up to there.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, DefaultHasher, Hasher as _, RandomState};

use mcpx_core::driver::ConnId;

/// Header fields whose values are secrets, whoever sends them.
const SECRET: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "set-cookie"];
/// The same if a server sends it: our own tokens must stay what they are, for they are
/// made from the seed.
const THEIRS: &str = "mcp-session-id";
/// What stands before credentials (RFC 9110 11.4).
const SCHEMES: [&[u8]; 3] = [b"bearer ", b"basic ", b"digest "];
/// The longest of these names.
const LONGEST: usize = 19;

const LETTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// The veil of one recording.
pub(super) struct Veil {
    key: RandomState,
    conns: BTreeMap<ConnId, Place>,
}

/// Where in its lines a connection is.
#[derive(Clone)]
enum Place {
    /// In the first bytes of one, which may be the name of a field.
    Name(Vec<u8>),
    /// In one that is of no concern.
    Rest,
    /// In the value of a secret field.
    Value(Value),
}

#[derive(Clone)]
struct Value {
    /// What has come of it that may be a scheme.
    scheme: Vec<u8>,
    open: bool,
    hash: DefaultHasher,
}

impl Veil {
    pub(super) fn new() -> Self {
        Self { key: RandomState::new(), conns: BTreeMap::new() }
    }

    /// A connection is gone.
    pub(super) fn forget(&mut self, conn: ConnId) {
        self.conns.remove(&conn);
    }

    /// What stands in the place of a token.
    pub(super) fn token(&self, token: &str) -> String {
        let mut value = self.value();
        value.open = false;
        let mut bytes = token.as_bytes().to_vec();
        bytes.iter_mut().for_each(|byte| value.hide(byte));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Hides the secrets in what came on a connection.
    pub(super) fn hide(&mut self, conn: ConnId, bytes: &mut [u8]) {
        let mut place = self.conns.remove(&conn).unwrap_or(Place::Name(Vec::new()));
        let mut at = 0;
        while let Some(rest) = bytes.get_mut(at..).filter(|rest| !rest.is_empty()) {
            if matches!(place, Place::Rest) {
                let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { break };
                at += end + 1;
                place = Place::Name(Vec::new());
                continue;
            }
            let byte = &mut rest[0];
            at += 1;
            place = self.step(conn, place, byte);
        }
        self.conns.insert(conn, place);
    }

    fn step(&self, conn: ConnId, place: Place, byte: &mut u8) -> Place {
        match place {
            _ if *byte == b'\n' => Place::Name(Vec::new()),
            Place::Name(name) if *byte == b':' => {
                let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
                let secret = SECRET.iter().any(|known| is(known));
                match secret || conn.is_requested() && is(THEIRS) {
                    true => Place::Value(self.value()),
                    false => Place::Rest,
                }
            }
            Place::Name(mut name) if name.len() < LONGEST => {
                name.push(*byte);
                Place::Name(name)
            }
            Place::Name(_) | Place::Rest => Place::Rest,
            Place::Value(mut value) => {
                value.hide(byte);
                Place::Value(value)
            }
        }
    }

    fn value(&self) -> Value {
        Value { scheme: Vec::new(), open: true, hash: self.key.build_hasher() }
    }
}

impl Value {
    fn hide(&mut self, byte: &mut u8) {
        if self.open && !(self.scheme.is_empty() && byte.is_ascii_whitespace()) {
            self.scheme.push(byte.to_ascii_lowercase());
            let begins = |scheme: &&[u8]| scheme.starts_with(&self.scheme);
            if SCHEMES.iter().any(begins) {
                self.open = !SCHEMES.contains(&self.scheme.as_slice());
                return;
            }
            self.open = false;
        }
        if byte.is_ascii_whitespace() {
            return;
        }
        self.hash.write_u8(*byte);
        let number = self.hash.finish() % LETTERS.len() as u64;
        *byte = usize::try_from(number).map_or(b'x', |place| LETTERS[place]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "POST /mcp HTTP/1.1\r\nHost: h\r\nauthorization:  Bearer s3cr3t-t0ken \r\n\
        Cookie: id=s3cr3t-t0ken\r\nMcp-Session-Id: abc\r\nX-Authorization: open\r\n\r\n{\"Authorization\": \"x\"}\n";

    fn hidden(veil: &mut Veil, conn: ConnId, text: &str, size: usize) -> String {
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            let mut piece = piece.to_vec();
            veil.hide(conn, &mut piece);
            out.extend(piece);
        }
        veil.forget(conn);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_secret_is_hidden_however_it_is_cut() {
        let mut veil = Veil::new();
        let (host, server) = (ConnId::accepted(1), ConnId::requested(1));
        let whole = hidden(&mut veil, host, HEAD, 1000);
        assert!(whole.len() == HEAD.len() && !whole.contains("s3cr3t"), "{whole}");
        let token = veil.token("s3cr3t-t0ken");
        assert!(whole.contains(&format!("authorization:  Bearer {token} \r\n")), "{whole}");
        for kept in ["Host: h", "Mcp-Session-Id: abc", "X-Authorization: open", "\": \"x\"}"] {
            assert!(whole.contains(kept), "{whole}");
        }
        for size in 1..9 {
            assert_eq!(hidden(&mut veil, host, HEAD, size), whole);
        }
        assert!(!hidden(&mut veil, server, HEAD, 5).contains("Mcp-Session-Id: abc"));
        assert_ne!(veil.token("s3cr3t-t0keN"), token);
        assert_ne!(Veil::new().token("s3cr3t-t0ken"), token);
    }

    #[test]
    fn what_has_no_known_scheme_is_hidden_as_well() {
        let mut veil = Veil::new();
        let text = "Authorization: s3cr3t\r\nAuthorization: Beware\r\n";
        let shown = hidden(&mut veil, ConnId::accepted(1), text, 3);
        assert!(!shown.contains("s3cr3t") && !shown.contains("ware"), "{shown}");
    }
}
