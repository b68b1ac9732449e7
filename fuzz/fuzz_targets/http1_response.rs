//! Responses on a connection: whole and cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpx_core::wire::http1::{Error, Limits, Part, ResponseReader};
use mcpx_fuzz::input::{Cuts, Source};
use mcpx_fuzz::memory::Watch;

#[derive(PartialEq, Debug, Default)]
struct Read {
    /// Heads, bodies and trailers; the pieces of a body are joined.
    heads: Vec<String>,
    bodies: Vec<Vec<u8>>,
    ends: Vec<String>,
    left: usize,
    end: Option<Result<(), Error>>,
}

/// The requests that are answered: bits of `asked` say which of them are HEAD.
fn reader(limits: Limits, asked: u8) -> ResponseReader {
    let mut reader = ResponseReader::new(limits);
    for n in 0..asked % 4 {
        reader.expect(if asked >> (n + 2) & 1 == 1 { "HEAD" } else { "POST" });
    }
    reader
}

fn read(limits: Limits, asked: u8, pieces: &[&[u8]]) -> Read {
    let mut reader = reader(limits, asked);
    let mut read = Read::default();
    for piece in pieces {
        let mut input = *piece;
        loop {
            match reader.next(&mut input) {
                Ok(Some(Part::Interim(head))) => {
                    assert!(head.is_interim());
                    read.heads.push(format!("{head:?}"));
                }
                Ok(Some(Part::Head(head))) => {
                    assert!(!head.is_interim());
                    read.heads.push(format!("{head:?} {}", head.reason().escape_ascii()));
                    read.bodies.push(Vec::new());
                }
                Ok(Some(Part::Data(data))) => {
                    assert!(!data.is_empty());
                    read.bodies.last_mut().expect("a head comes first").extend_from_slice(data);
                }
                Ok(Some(Part::End(trailers))) => read.ends.push(format!("{trailers:?}")),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(reader.next(&mut &b"HTTP"[..]).err(), Some(error));
                    assert_eq!(error.status(), 502);
                    read.end = Some(Err(error));
                    return read;
                }
            }
        }
        read.left += input.len();
    }
    let end = reader.finish();
    if let Ok(Some(Part::End(trailers))) = &end {
        read.ends.push(format!("{trailers:?}"));
    }
    read.end = Some(end.map(|_| ()));
    read
}

fuzz_target!(|data: &[u8]| {
    let mut source = Source::new(data);
    let limits = Limits {
        head_bytes: 64 + 4 * usize::from(source.byte()),
        fields: source.below(12),
        body_bytes: u64::from(source.byte()),
        chunk_extension_bytes: source.below(32),
        trailer_bytes: usize::from(source.byte()),
        interim_responses: source.below(4) as u32,
    };
    let asked = source.byte();
    let mut cuts = source.cuts();
    let bytes = source.rest();
    let pieces = cuts.pieces(bytes);
    assert_eq!(read(limits, asked, &pieces), read(limits, asked, &Cuts::none().pieces(bytes)));

    let watch = Watch::new(4 * (limits.head_bytes + limits.trailer_bytes) + 16384);
    let mut reader = reader(limits, asked);
    for piece in pieces {
        let mut input = piece;
        while let Ok(Some(_)) = reader.next(&mut input) {}
        watch.check();
    }
});
