//! Event streams: whole and cut, and what we write ourselves.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpx_core::wire::sse::{Decoder, Outgoing, TooLong, comment, encode};
use mcpx_fuzz::input::{Cuts, Source};
use mcpx_fuzz::memory::Watch;

#[derive(PartialEq, Debug)]
struct Seen {
    kind: String,
    data: String,
    id: String,
}

#[derive(PartialEq, Debug)]
struct Read {
    events: Vec<Seen>,
    end: Result<(), TooLong>,
    id: String,
    retry: Option<u64>,
    unfinished: bool,
}

fn read(limit: usize, pieces: &[&[u8]]) -> Read {
    let mut decoder = Decoder::new(limit);
    let mut events = Vec::new();
    let mut end = Ok(());
    'pieces: for piece in pieces {
        let mut input = *piece;
        loop {
            match decoder.next(&mut input) {
                Ok(Some(event)) => events.push(Seen {
                    kind: event.kind.into_owned(),
                    data: event.data.into_owned(),
                    id: decoder.last_event_id().into(),
                }),
                Ok(None) => break,
                Err(error) => {
                    end = Err(error);
                    assert_eq!(decoder.next(&mut &b"\n\n"[..]), Err(error));
                    break 'pieces;
                }
            }
        }
        assert!(input.is_empty());
    }
    Read {
        events,
        end,
        id: decoder.last_event_id().into(),
        retry: decoder.retry(),
        unfinished: decoder.is_unfinished(),
    }
}

/// What is written is read back, whatever the text.
fn round_trip(text: &str, cuts: &mut Cuts) {
    let mut bytes = Vec::new();
    comment(&mut bytes, text);
    let block = Outgoing { event: None, id: Some(text), retry: Some(7), data: Some(text) };
    let id = encode(&mut bytes, &block).is_ok();
    let block = Outgoing { event: Some(text), id: None, retry: None, data: Some(text) };
    let kind = encode(&mut bytes, &block).is_ok();
    let read = read(usize::MAX, &cuts.pieces(&bytes));
    let data = text.replace("\r\n", "\n").replace('\r', "\n");
    let name = if text.is_empty() { "message" } else { text };
    let mut expected = Vec::new();
    let id = if id { text } else { "" };
    if id == text {
        expected.push(Seen { kind: "message".into(), data: data.clone(), id: id.into() });
    }
    if kind {
        expected.push(Seen { kind: name.into(), data, id: id.into() });
    }
    assert_eq!(read.events, expected);
    assert!(!read.unfinished);
}

fuzz_target!(|data: &[u8]| {
    let mut source = Source::new(data);
    let limit = usize::from(source.byte());
    let mut cuts = source.cuts();
    let bytes = source.rest();
    let pieces = cuts.pieces(bytes);
    assert_eq!(read(limit, &pieces), read(limit, &Cuts::none().pieces(bytes)));
    round_trip(&String::from_utf8_lossy(bytes), &mut cuts);

    // A line, the data, the type and two ids; a byte may become U+FFFD, which
    // has three, and a buffer may be twice as large as what is in it.
    let watch = Watch::new(40 * limit + 16384);
    let mut decoder = Decoder::new(limit);
    for piece in pieces {
        let mut input = piece;
        while let Ok(Some(_)) = decoder.next(&mut input) {}
        watch.check();
    }
});
