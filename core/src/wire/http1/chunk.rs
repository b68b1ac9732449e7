//! The line before a chunk: RFC 9112 section 7.1.

use super::RejectReason;
use super::chars::{is_text_char, is_token_char};
use super::framing::GREATEST_LENGTH;

/// Digits of a chunk size, leading zeros included.
const DIGITS: u8 = 16;

/// A chunk line on its way. No byte of it is kept: the size is summed up and
/// extensions are checked and forgotten, as RFC 9112 section 7.1.1 has it for
/// those that nobody understands. White space around them is refused.
#[derive(Default, Debug)]
pub(super) struct ChunkLine {
    size: u64,
    digits: u8,
    expect: Expect,
}

#[derive(Clone, Copy, Default, Debug)]
enum Expect {
    #[default]
    Size,
    Name,
    MoreName,
    Value,
    MoreValue,
    Quoted,
    Escaped,
    AfterQuoted,
    Lf,
}

impl ChunkLine {
    /// Takes the line from the front of `input` and gives its size; `None` if
    /// more is needed. `extension_bytes` is what is left of their limit.
    pub(super) fn read(
        &mut self,
        input: &mut &[u8],
        extension_bytes: &mut usize,
    ) -> Result<Option<u64>, RejectReason> {
        while let Some((&byte, rest)) = input.split_first() {
            *input = rest;
            self.expect = match self.expect {
                Expect::Size => self.size_byte(byte)?,
                Expect::Lf if byte == b'\n' => return Ok(Some(self.size)),
                Expect::Lf => return Err(RejectReason::InvalidChunkEnd),
                expect => {
                    *extension_bytes = extension_bytes
                        .checked_sub(1)
                        .ok_or(RejectReason::ChunkExtensionsTooLong)?;
                    extension_byte(expect, byte).ok_or(RejectReason::InvalidChunkExtension)?
                }
            };
        }
        Ok(None)
    }

    fn size_byte(&mut self, byte: u8) -> Result<Expect, RejectReason> {
        match (char::from(byte).to_digit(16), byte) {
            (Some(digit), _) if self.digits < DIGITS => {
                self.digits += 1;
                self.size = self.size << 4 | u64::from(digit);
                Ok(Expect::Size)
            }
            (None, b';' | b'\r') if self.digits > 0 => match byte {
                _ if self.size > GREATEST_LENGTH => Err(RejectReason::BodyTooLong),
                b';' => Ok(Expect::Name),
                _ => Ok(Expect::Lf),
            },
            _ => Err(RejectReason::InvalidChunkSize),
        }
    }
}

/// `*( ";" token [ "=" ( token / quoted-string ) ] ) CR`, after the first `;`.
fn extension_byte(expect: Expect, byte: u8) -> Option<Expect> {
    Some(match (expect, byte) {
        (Expect::Quoted, b'"') => Expect::AfterQuoted,
        (Expect::Quoted, b'\\') => Expect::Escaped,
        (Expect::Quoted | Expect::Escaped, b) if is_text_char(b) => Expect::Quoted,
        (Expect::Name | Expect::MoreName, b) if is_token_char(b) => Expect::MoreName,
        (Expect::Value | Expect::MoreValue, b) if is_token_char(b) => Expect::MoreValue,
        (Expect::MoreName, b'=') => Expect::Value,
        (Expect::Value, b'"') => Expect::Quoted,
        (Expect::MoreName | Expect::MoreValue | Expect::AfterQuoted, b';') => Expect::Name,
        (Expect::MoreName | Expect::MoreValue | Expect::AfterQuoted, b'\r') => Expect::Lf,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut line: &[u8]) -> Result<Option<u64>, RejectReason> {
        ChunkLine::default().read(&mut line, &mut 64)
    }

    #[test]
    fn sizes_are_hexadecimal() {
        assert_eq!(read(b"1aF\r\n"), Ok(Some(0x1af)));
        assert_eq!(read(b"0000000000000005\r\n"), Ok(Some(5)));
        assert_eq!(read(b"7fffffffffffffff\r\n"), Ok(Some(GREATEST_LENGTH)));
        assert_eq!(read(b"8000000000000000\r\n"), Err(RejectReason::BodyTooLong));
        assert_eq!(read(b"12\r"), Ok(None));
        for bad in [
            "00000000000000005\r\n",
            "\r\n",
            "0x5\r\n",
            "+5\r\n",
            "5 \r\n",
            " 5\r\n",
            "5\n",
            ";a\r\n",
        ] {
            assert_eq!(read(bad.as_bytes()), Err(RejectReason::InvalidChunkSize), "{bad:?}");
        }
        assert_eq!(read(b"5\rx"), Err(RejectReason::InvalidChunkEnd));
    }

    #[test]
    fn extensions_are_checked_and_counted() {
        for good in ["5;a\r\n", "5;a=b;c\r\n", "5;a=\"x \\\" ;\t\";b=c\r\n", "5;a=\"\"\r\n"] {
            assert_eq!(read(good.as_bytes()), Ok(Some(5)), "{good:?}");
        }
        for bad in [
            "5;\r\n",
            "5;=b\r\n",
            "5;a=\r\n",
            "5; a\r\n",
            "5;a =b\r\n",
            "5;a=\"\r\n",
            "5;a=\"x\"y\r\n",
            "5;a\n",
        ] {
            assert_eq!(read(bad.as_bytes()), Err(RejectReason::InvalidChunkExtension), "{bad:?}");
        }
        let mut left = 4;
        assert_eq!(ChunkLine::default().read(&mut &b"5;a=b\r\n"[..], &mut left), Ok(Some(5)));
        assert_eq!(left, 0);
        let too_long = ChunkLine::default().read(&mut &b"5;a\r\n"[..], &mut left);
        assert_eq!(too_long, Err(RejectReason::ChunkExtensionsTooLong));
    }
}
