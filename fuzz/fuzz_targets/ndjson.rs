//! Lines: against a model that splits at every line feed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpx_core::wire::ndjson::{Decoder, Line};
use mcpx_fuzz::input::{Cuts, Source};
use mcpx_fuzz::memory::Watch;

#[derive(PartialEq, Debug)]
enum Seen {
    Text(Vec<u8>),
    TooLong { id: Option<String>, method: bool, answer: bool, length: u64 },
}

fn read(limit: usize, pieces: &[&[u8]]) -> Vec<Seen> {
    let mut decoder = Decoder::new(limit);
    let mut seen = Vec::new();
    let mut see = |line: Line<'_>| {
        seen.push(match line {
            Line::Text(text) => Seen::Text(text.into_owned()),
            Line::TooLong { skimmed, length } => Seen::TooLong {
                id: skimmed.id,
                method: skimmed.method,
                answer: skimmed.answer,
                length,
            },
        });
    };
    for piece in pieces {
        let mut input = *piece;
        while let Some(line) = decoder.next(&mut input) {
            see(line);
        }
        assert!(input.is_empty());
    }
    if let Some(line) = decoder.finish() {
        see(line);
    }
    assert_eq!(decoder.buffered(), 0);
    seen
}

/// What the lines should be, without what is learned of those thrown away.
fn model(limit: usize, bytes: &[u8]) -> Vec<Result<Vec<u8>, u64>> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| {
            line.len() > limit || !line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
        })
        .map(|line| if line.len() > limit { Err(line.len() as u64) } else { Ok(line.to_vec()) })
        .collect()
}

fuzz_target!(|data: &[u8]| {
    let mut source = Source::new(data);
    let limit = usize::from(source.byte());
    let mut cuts = source.cuts();
    let bytes = source.rest();
    let whole = read(limit, &Cuts::none().pieces(bytes));
    let pieces = cuts.pieces(bytes);
    assert_eq!(read(limit, &pieces), whole);
    let plain: Vec<_> = whole
        .into_iter()
        .map(|seen| match seen {
            Seen::Text(text) => Ok(text),
            Seen::TooLong { length, .. } => Err(length),
        })
        .collect();
    assert_eq!(plain, model(limit, bytes));

    let watch = Watch::new(4 * limit + 4096);
    let mut decoder = Decoder::new(limit);
    for piece in pieces {
        let mut input = piece;
        while decoder.next(&mut input).is_some() {}
        assert!(decoder.buffered() <= limit + 1);
        watch.check();
    }
});
