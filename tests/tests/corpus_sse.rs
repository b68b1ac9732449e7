//! The cases of `corpora/sse`, every one of them.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpx_core::wire::sse::{Decoder, Outgoing, comment, encode, is_event_stream};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const LIMIT: usize = 1 << 20;

/// The folder of the cases, or nothing where only the project is there.
fn corpus() -> Option<PathBuf> {
    let found = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("shared/corpora"))
        .find(|folder| folder.is_dir());
    if found.is_none() {
        eprintln!("skipped: there is no shared/corpora");
    }
    found.map(|folder| folder.join("sse"))
}

fn cases<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let Some(folder) = corpus() else { return Vec::new() };
    let text = fs::read_to_string(folder.join(file)).expect("the file of the cases");
    let cases: Vec<T> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(!cases.is_empty(), "{file} has no cases");
    cases
}

#[derive(Deserialize, Clone, PartialEq, Debug)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    data: String,
    id: String,
}

#[derive(Deserialize)]
struct Part {
    text: String,
    #[serde(default = "once")]
    times: usize,
}

fn once() -> usize {
    1
}

#[derive(Deserialize)]
struct Case {
    id: String,
    name: String,
    b64: Option<String>,
    parts: Option<Vec<Part>>,
    #[serde(default)]
    cuts: Vec<usize>,
    events: Option<Vec<Event>>,
    events_count: Option<usize>,
    last_event_id: Option<String>,
    retry: Option<Vec<Value>>,
    discarded_tail: Option<bool>,
    #[serde(default)]
    either: Vec<String>,
}

#[derive(PartialEq, Debug)]
struct Outcome {
    events: Vec<Event>,
    last_event_id: String,
    /// Every change of it.
    retry: Vec<u64>,
    unfinished: bool,
}

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Outcome {
    let mut decoder = Decoder::new(LIMIT);
    let mut events = Vec::new();
    let mut retry = Vec::new();
    for mut piece in pieces {
        loop {
            let event = decoder.next(&mut piece).expect("events within the limit");
            if decoder.retry() != retry.last().copied() {
                retry.extend(decoder.retry());
            }
            let Some(event) = event else { break };
            events.push(Event {
                kind: event.kind.into_owned(),
                data: event.data.into_owned(),
                id: decoder.last_event_id().to_owned(),
            });
        }
        assert!(piece.is_empty());
    }
    let last_event_id = decoder.last_event_id().to_owned();
    Outcome { events, last_event_id, retry, unfinished: decoder.is_unfinished() }
}

/// The pieces between the places where `input` is cut.
fn cut<'a>(input: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let ends = cuts.iter().copied().chain([input.len()]);
    ends.scan(0, |start, end| Some(&input[std::mem::replace(start, end)..end])).collect()
}

#[test]
fn streams_become_events() {
    for case in cases::<Case>("cases.jsonl") {
        let name = format!("{} {}", case.id, case.name);
        let input = match (&case.b64, &case.parts) {
            (Some(b64), None) => STANDARD.decode(b64).expect(&name),
            (None, Some(parts)) => {
                parts.iter().map(|part| part.text.repeat(part.times)).collect::<String>().into()
            }
            _ => panic!("{name}: no input"),
        };
        let whole = read([&*input].into_iter());
        let sizes: &[usize] = if case.parts.is_some() { &[7, 4096] } else { &[1, 2, 3, 7] };
        for size in sizes {
            assert_eq!(read(input.chunks(*size)), whole, "{name} in pieces of {size}");
        }
        assert_eq!(read(cut(&input, &case.cuts).into_iter()), whole, "{name} at its cuts");
        if input.len() < 1000 {
            for at in 0..=input.len() {
                assert_eq!(read(cut(&input, &[at]).into_iter()), whole, "{name} cut at {at}");
            }
        }
        if let Some(count) = case.events_count {
            assert_eq!(whole.events.len(), count, "{name}");
            assert!(case.events.is_none() && case.parts.is_some(), "{name}");
            continue;
        }
        assert_eq!(Some(whole.events), case.events, "{name}");
        assert_eq!(Some(whole.last_event_id), case.last_event_id, "{name}");
        assert_eq!(Some(whole.unfinished), case.discarded_tail, "{name}");
        let retry: Vec<Value> = whole.retry.into_iter().map(Value::from).collect();
        if case.either.iter().any(|free| free == "retry") {
            assert_eq!(retry, [Value::from(u64::MAX)], "{name}");
        } else {
            assert_eq!(Some(retry), case.retry, "{name}");
        }
    }
}

#[test]
fn long_data_comes_as_it_was_sent() {
    let input = "data: y\n".repeat(100_000) + "\n";
    let expected = vec!["y"; 100_000].join("\n");
    for size in [7, 1000, input.len()] {
        let outcome = read(input.as_bytes().chunks(size));
        assert!(outcome.events.iter().map(|event| &event.data).eq([&expected]));
    }
}

#[derive(Deserialize)]
struct Encode {
    id: String,
    name: String,
    #[serde(rename = "in")]
    input: Input,
    expect: String,
    #[serde(default)]
    out_any_of: Vec<String>,
    decodes_to: Option<DecodesTo>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    event: Option<String>,
    id: Option<String>,
    retry: Option<u64>,
    data: Option<String>,
    comment: Option<String>,
}

#[derive(Deserialize)]
struct DecodesTo {
    events: Vec<Event>,
    last_event_id: String,
    retry: Vec<u64>,
}

#[test]
fn what_is_written_is_safe() {
    for case in cases::<Encode>("encode.jsonl") {
        let name = format!("{} {}", case.id, case.name);
        let mut out = Vec::new();
        let result = match &case.input.comment {
            Some(text) => {
                comment(&mut out, text);
                Ok(())
            }
            None => {
                let Input { event, id, retry, data, .. } = &case.input;
                let block = Outgoing {
                    event: event.as_deref(),
                    id: id.as_deref(),
                    retry: *retry,
                    data: data.as_deref(),
                };
                encode(&mut out, &block)
            }
        };
        let refused = match case.expect.as_str() {
            "ok" => false,
            "refuse" => true,
            "refuse-or-lf" => result.is_err(),
            other => panic!("{name}: {other}"),
        };
        assert_eq!(result.is_err(), refused, "{name}");
        if refused {
            assert!(out.is_empty(), "{name}");
            continue;
        }
        let expected = case.decodes_to.expect(&name);
        let outcome = read([&*out].into_iter());
        assert_eq!(outcome.events, expected.events, "{name}");
        assert_eq!(outcome.last_event_id, expected.last_event_id, "{name}");
        assert_eq!(outcome.retry, expected.retry, "{name}");
        assert!(!outcome.unfinished, "{name}");
        let text = String::from_utf8(out).expect(&name);
        assert!(case.out_any_of.contains(&text), "{name}: {text:?}");
    }
}

#[derive(Deserialize)]
struct ContentType {
    id: String,
    content_type: Option<String>,
    is_event_stream: bool,
}

#[test]
fn streams_are_known_by_their_type() {
    for case in cases::<ContentType>("content_type.jsonl") {
        let got = is_event_stream(case.content_type.as_deref().map(str::as_bytes));
        assert_eq!(got, case.is_event_stream, "{}", case.id);
    }
}
