//! Requests on a connection: whole and cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpx_core::wire::http1::{Error, Limits, Part, RequestReader};
use mcpx_fuzz::input::{Cuts, Source};
use mcpx_fuzz::memory::Watch;

#[derive(PartialEq, Debug, Default)]
struct Read {
    /// Heads, bodies and trailers; the pieces of a body are joined.
    heads: Vec<String>,
    bodies: Vec<Vec<u8>>,
    ends: Vec<String>,
    end: Option<Result<(), Error>>,
}

fn read(limits: Limits, pieces: &[&[u8]]) -> Read {
    let mut reader = RequestReader::new(limits);
    let mut read = Read::default();
    for piece in pieces {
        let mut input = *piece;
        loop {
            match reader.next(&mut input) {
                Ok(Some(Part::Head(head))) => {
                    let parts = (head.method(), head.target(), head.path(), head.query());
                    let rest = (head.host(), head.form(), head.version(), head.keep_alive);
                    read.heads.push(format!("{parts:?} {rest:?} {head:?}"));
                    read.bodies.push(Vec::new());
                }
                Ok(Some(Part::Data(data))) => {
                    assert!(!data.is_empty());
                    read.bodies.last_mut().expect("a head comes first").extend_from_slice(data);
                }
                Ok(Some(Part::End(trailers))) => read.ends.push(format!("{trailers:?}")),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(reader.next(&mut &b"GET"[..]).err(), Some(error));
                    assert!((400..600).contains(&error.status()));
                    assert!(!error.to_string().is_empty());
                    read.end = Some(Err(error));
                    return read;
                }
            }
        }
    }
    read.end = Some(reader.finish());
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
        interim_responses: 0,
    };
    let mut cuts = source.cuts();
    let bytes = source.rest();
    let pieces = cuts.pieces(bytes);
    assert_eq!(read(limits, &pieces), read(limits, &Cuts::none().pieces(bytes)));

    let watch = Watch::new(4 * (limits.head_bytes + limits.trailer_bytes) + 16384);
    let mut reader = RequestReader::new(limits);
    for piece in pieces {
        let mut input = piece;
        while let Ok(Some(_)) = reader.next(&mut input) {}
        watch.check();
    }
});
