//! Sealed tokens: what others keep for us, and must neither read nor change.
//!
//! XChaCha20-Poly1305 (RFC 8439; its nonces are long enough to be random). A
//! token is the nonce and the sealed content as base64url, so that it fits into
//! header fields and URLs.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

use crate::entropy::Entropy;

/// The bytes of a nonce.
pub const NONCE: usize = 24;

/// Seals, and opens what it, or another with the same key, has sealed.
pub struct Sealer(XChaCha20Poly1305);

impl Sealer {
    /// A sealer with this key.
    pub fn new(key: [u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(&key.into()))
    }

    /// A token that holds `content`. It opens for the same `purpose` only, and no
    /// two are alike. `None` if the content is longer than the cipher takes
    /// (256 GiB).
    pub fn seal(&self, entropy: &mut Entropy, purpose: &str, content: &[u8]) -> Option<String> {
        self.seal_with(entropy.bytes(), purpose, content)
    }

    /// The same, with a nonce of the caller's, who has none for two contents.
    pub fn seal_with(&self, nonce: [u8; NONCE], purpose: &str, content: &[u8]) -> Option<String> {
        let payload = Payload { msg: content, aad: purpose.as_bytes() };
        let sealed = self.0.encrypt(&XNonce::from(nonce), payload).ok()?;
        let mut bytes = Vec::with_capacity(NONCE + sealed.len());
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(&sealed);
        Some(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// What a token holds; nothing if it was not sealed for this purpose with our
    /// key. How long that takes says nothing about the key.
    pub fn open(&self, purpose: &str, token: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>()?;
        let payload = Payload { msg: sealed, aad: purpose.as_bytes() };
        self.0.decrypt(&XNonce::from(*nonce), payload).ok()
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_what_it_sealed_and_nothing_else() {
        let mut entropy = Entropy::new([1; 32]);
        let (ours, theirs) = (Sealer::new([2; 32]), Sealer::new([3; 32]));
        let token = ours.seal(&mut entropy, "a", b"content").unwrap();
        assert!(token.bytes().all(|byte| byte.is_ascii_graphic()));
        assert_eq!(ours.open("a", &token).as_deref(), Some(&b"content"[..]));
        assert_eq!(Sealer::new([2; 32]).open("a", &token), ours.open("a", &token));
        assert_eq!(theirs.open("a", &token), None);
        assert_eq!(ours.open("b", &token), None);
        assert_ne!(ours.seal(&mut entropy, "a", b"content").unwrap(), token);
    }

    #[test]
    fn any_change_breaks_the_seal() {
        let sealer = Sealer::new([2; 32]);
        let token = sealer.seal(&mut Entropy::new([1; 32]), "a", b"content").unwrap();
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'Q' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(sealer.open("a", &changed), None, "{at}");
            assert_eq!(sealer.open("a", &token[..at]), None, "{at}");
        }
        for bad in ["", "A", "=", "é", &"A".repeat(10_000)] {
            assert_eq!(sealer.open("a", bad), None);
        }
    }
}
