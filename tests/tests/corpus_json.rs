//! The cases of `corpora/json`, every one of them.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpx_core::jsonrpc::{
    Batch, Envelope, Incoming, Kind, Limits, Message, RejectReason, Rejected, compact, get, same_id,
};
use mcpx_core::wire::ndjson::{Decoder, Line, looks_like_message};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The folder of the cases, or nothing where only the project is there.
fn corpus() -> Option<PathBuf> {
    let found = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("shared/corpora"))
        .find(|folder| folder.is_dir());
    if found.is_none() {
        eprintln!("skipped: there is no shared/corpora");
    }
    found.map(|folder| folder.join("json"))
}

fn cases<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let Some(folder) = corpus() else { return Vec::new() };
    let text = fs::read_to_string(folder.join(file)).expect("the file of the cases");
    let cases: Vec<T> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(!cases.is_empty(), "{file} has no cases");
    cases
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

/// The bytes of a case, given in one of two ways.
fn input(b64: &Option<String>, parts: &Option<Vec<Part>>) -> Vec<u8> {
    match (b64, parts) {
        (Some(b64), None) => STANDARD.decode(b64).expect("base64"),
        (None, Some(parts)) => {
            parts.iter().map(|part| part.text.repeat(part.times)).collect::<String>().into()
        }
        _ => panic!("a case must have either bytes or parts"),
    }
}

fn parse(bytes: &[u8]) -> Result<Incoming<'_>, Rejected> {
    Message::parse(Cow::Borrowed(bytes), &Limits::DEFAULT)
}

/// Whether it is JSON that is taken, whatever it means.
fn is_json(bytes: &[u8]) -> bool {
    use RejectReason::{NotJson, NotUtf8, TooDeep};
    !parse(bytes).is_err_and(|e| matches!(e.reason, NotJson | NotUtf8 | TooDeep))
}

#[derive(Deserialize)]
struct Text {
    id: String,
    kind: String,
    verdict: String,
    prefer: Option<String>,
    b64: Option<String>,
    parts: Option<Vec<Part>>,
}

#[test]
fn the_grammar_is_rfc_8259() {
    for case in cases::<Text>("parsing.jsonl") {
        let bytes = input(&case.b64, &case.parts);
        let taken = is_json(&bytes);
        let verdict = match (&*case.verdict, case.prefer.as_deref()) {
            ("either", None | Some("either")) => None,
            ("either", Some(preferred)) => Some(preferred),
            (verdict, _) => Some(verdict),
        };
        match verdict {
            Some("accept") => assert!(taken, "{}", case.id),
            Some("reject") => assert!(!taken, "{}", case.id),
            None => assert!(["i", "transform"].contains(&&*case.kind), "{}", case.id),
            Some(other) => panic!("{}: {other}", case.id),
        }
        // The same inside a message; and what is taken stays as it was.
        let message = [br#"{"jsonrpc":"2.0","id":1,"result":"#, &*bytes, b"}"].concat();
        match parse(&message) {
            Ok(Incoming::Message(message)) => {
                let result = message.result().expect(&case.id);
                assert!(taken, "{}", case.id);
                assert_eq!(result.as_bytes(), bytes.trim_ascii(), "{}", case.id);
            }
            Ok(Incoming::Batch(_)) => panic!("{}: a batch", case.id),
            Err(_) => assert!(!taken, "{}", case.id),
        }
    }
}

#[derive(Deserialize, PartialEq, Debug)]
struct Reply {
    code: i32,
    id_raw: String,
}

#[derive(Deserialize)]
struct Call {
    id: String,
    name: String,
    kind: String,
    b64: Option<String>,
    parts: Option<Vec<Part>>,
    class: String,
    relay: String,
    prefer: Option<String>,
    id_raw: Option<String>,
    echo_id_raw: Option<String>,
    method: Option<String>,
    arguments_raw: Option<String>,
    reply: Option<Reply>,
    #[serde(default)]
    reply_any_of: Vec<Reply>,
}

#[test]
fn messages_are_taken_or_refused() {
    for case in cases::<Call>("jsonrpc.jsonl") {
        let name = format!("{} {}", case.id, case.name);
        let bytes = input(&case.b64, &case.parts);
        let parsed = parse(&bytes);
        let owned = Message::parse(Cow::Owned(bytes.clone()), &Limits::DEFAULT);
        assert_eq!(parsed, owned, "{name}");
        match (&*case.relay, case.prefer.as_deref()) {
            ("forward", _) => assert!(parsed.is_ok(), "{name}"),
            ("reject", _) | ("either", Some("reject")) => assert!(parsed.is_err(), "{name}"),
            ("either", None) => {}
            ("by-version", None) => {
                let Ok(Incoming::Batch(batch)) = &parsed else { panic!("{name}: no batch") };
                assert_eq!(case.class, "batch", "{name}");
                check_batch(&name, batch, &bytes);
                continue;
            }
            other => panic!("{name}: {other:?}"),
        }
        match parsed {
            Ok(Incoming::Message(message)) => check_taken(&name, &case, &message),
            Ok(Incoming::Batch(_)) => panic!("{name}: a batch"),
            Err(rejected) => check_refused(&name, &case, &rejected),
        }
    }
}

fn check_taken(name: &str, case: &Call, message: &Message<'_>) {
    let kind = match &*case.class {
        "request" => Kind::Request,
        "notification" => Kind::Notification,
        "response" => Kind::Response,
        "error-response" => Kind::Error,
        other => panic!("{name}: taken, but it is {other}"),
    };
    assert_eq!(message.kind(), kind, "{name}");
    let id = case.id_raw.as_deref().filter(|raw| *raw != "null");
    assert_eq!(message.id(), id, "{name}");
    assert_eq!(message.method(), case.method.as_deref().unwrap_or_default(), "{name}");
    if let Some(arguments) = &case.arguments_raw {
        let params = message.params().expect(name);
        assert_eq!(get(params, "arguments"), Some(arguments.as_str()), "{name}");
    }
    if let Some(echo) = &case.echo_id_raw {
        let mut line = Vec::new();
        Envelope::Result { id: message.id().expect(name), result: "{}" }.write_line(&mut line);
        let Ok(Incoming::Message(answer)) = parse(&line) else { panic!("{name}") };
        assert_eq!(answer.id(), Some(echo.as_str()), "{name}");
        assert!(same_id(echo, answer.id().expect(name)), "{name}");
    }
}

fn check_refused(name: &str, case: &Call, rejected: &Rejected) {
    // What may be taken, but is refused, is still a request to be answered.
    let allowed: Vec<&Reply> = case.reply.iter().chain(&case.reply_any_of).collect();
    assert_eq!(rejected.answerable, !allowed.is_empty(), "{name}: {rejected:?}");
    if rejected.answerable {
        let id_raw = rejected.id.clone().unwrap_or_else(|| "null".into());
        let reply = Reply { code: rejected.code, id_raw };
        assert!(allowed.contains(&&reply), "{name}: {reply:?}");
    }
    assert_ne!(case.kind, "fidelity", "{name}");
}

/// Each element is judged by itself; the text of the whole is untouched.
fn check_batch(name: &str, batch: &Batch<'_>, bytes: &[u8]) {
    let values: Vec<Value> = serde_json::from_slice(bytes).expect(name);
    let elements: Vec<Value> =
        batch.elements().map(|raw| serde_json::from_str(raw).expect(name)).collect();
    assert_eq!(elements, values, "{name}");
    assert_eq!(batch.is_empty(), values.is_empty(), "{name}");
    for (raw, value) in batch.elements().zip(&values) {
        if !value.is_object() {
            let rejected = parse(raw.as_bytes()).expect_err(name);
            assert_eq!((rejected.code, rejected.id, rejected.answerable), (-32600, None, true));
        }
    }
}

#[derive(Deserialize)]
struct Correlation {
    id: String,
    sent_id_raw: String,
    response_id_raw: Option<String>,
    #[serde(rename = "match")]
    matches: String,
}

#[test]
fn answers_find_their_requests() {
    for case in cases::<Correlation>("correlation.jsonl") {
        let got = case.response_id_raw.is_some_and(|raw| same_id(&case.sent_id_raw, &raw));
        match &*case.matches {
            // What some servers do to numbers is understood.
            "yes" | "either" => assert!(got, "{}", case.id),
            "no" => assert!(!got, "{}", case.id),
            other => panic!("{}: {other}", case.id),
        }
    }
}

#[derive(Deserialize)]
struct Stream {
    id: String,
    name: String,
    kind: String,
    b64: Option<String>,
    parts: Option<Vec<Part>>,
    lines: Option<Vec<String>>,
    count: Option<usize>,
    #[serde(default)]
    rest: String,
    #[serde(default)]
    cuts: Vec<usize>,
    parse: Option<String>,
    parse_lines: Option<Vec<String>>,
    #[serde(default)]
    either: Vec<String>,
}

/// The lines; what was left over before the end of the input; and how many lines
/// were too long.
#[derive(PartialEq, Debug, Default)]
struct Lines {
    lines: Vec<Vec<u8>>,
    rest: usize,
    too_long: usize,
}

fn read<'a>(limit: usize, pieces: impl Iterator<Item = &'a [u8]>) -> Lines {
    let mut decoder = Decoder::new(limit);
    let mut out = Lines::default();
    let mut push = |line: Line<'_>| match line {
        Line::Text(line) => out.lines.push(line.into_owned()),
        Line::TooLong { .. } => out.too_long += 1,
    };
    for mut piece in pieces {
        while let Some(line) = decoder.next(&mut piece) {
            push(line);
        }
        assert!(piece.is_empty() && decoder.buffered() <= limit + 1);
    }
    let rest = decoder.buffered();
    if let Some(line) = decoder.finish() {
        push(line);
    }
    Lines { rest, ..out }
}

/// The pieces between the places where `input` is cut.
fn cut<'a>(input: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let ends = cuts.iter().copied().chain([input.len()]);
    ends.scan(0, |start, end| Some(&input[std::mem::replace(start, end)..end])).collect()
}

#[test]
fn streams_become_lines() {
    const LIMIT: usize = 8 << 20;
    for case in cases::<Stream>("ndjson.jsonl") {
        let name = format!("{} {}", case.id, case.name);
        let bytes = input(&case.b64, &case.parts);
        if case.kind == "ndjson-limits" {
            check_limits(&name, &case, &bytes);
            continue;
        }
        assert_eq!(case.kind, "ndjson", "{name}");
        let whole = read(LIMIT, [&*bytes].into_iter());
        for size in [1, 2, 3, 7] {
            assert_eq!(read(LIMIT, bytes.chunks(size)), whole, "{name} in pieces of {size}");
        }
        for at in 0..=bytes.len() {
            assert_eq!(read(LIMIT, cut(&bytes, &[at]).into_iter()), whole, "{name} cut at {at}");
        }
        assert_eq!(read(LIMIT, cut(&bytes, &case.cuts).into_iter()), whole, "{name} at its cuts");
        match (&case.lines, case.count) {
            (Some(lines), None) => {
                assert!(whole.lines.iter().eq(lines.iter().map(String::as_bytes)), "{name}");
            }
            (None, Some(count)) => assert_eq!(whole.lines.len(), count, "{name}"),
            _ => panic!("{name}: neither lines nor a count"),
        }
        // A last line without its end is taken at the end of the input.
        let last = case.either.iter().any(|free| free == "last");
        let rest = if last { whole.lines.last().map_or(0, Vec::len) } else { case.rest.len() };
        assert_eq!(whole.rest, rest, "{name}");
        check_parse(&name, &case, &whole.lines);
    }
}

fn check_parse(name: &str, case: &Stream, lines: &[Vec<u8>]) {
    let verdicts = case
        .parse_lines
        .clone()
        .unwrap_or_else(|| vec![case.parse.clone().unwrap_or_else(|| "ok".into()); lines.len()]);
    assert_eq!(lines.len(), verdicts.len(), "{name}");
    for (line, verdict) in lines.iter().zip(verdicts) {
        let parsed = parse(line);
        if case.either.iter().any(|free| free == "parse") {
            assert!(parsed.is_ok() || !looks_like_message(line), "{name}");
            continue;
        }
        match &*verdict {
            "ok" => assert!(parsed.is_ok() && looks_like_message(line), "{name}"),
            "error" => assert_eq!(parsed.expect_err(name).code, -32700, "{name}"),
            other => panic!("{name}: {other}"),
        }
    }
}

fn check_limits(name: &str, case: &Stream, bytes: &[u8]) {
    let count = case.count.expect(name);
    let terminated = bytes.ends_with(b"\n");
    for size in [1000, 65_536, bytes.len()] {
        let roomy = read(bytes.len(), bytes.chunks(size));
        assert_eq!(roomy.lines.len(), if terminated { count } else { 1 }, "{name}");
        let narrow = read(1 << 20, bytes.chunks(size).chain([&b"\n{}\n"[..]]));
        assert_eq!(
            (narrow.lines.as_slice(), narrow.too_long),
            (&[b"{}".to_vec()][..], 1),
            "{name}"
        );
    }
    // The line that never ends is handed on by nobody before the end of the input.
    let mut decoder = Decoder::new(bytes.len());
    let before = std::iter::from_fn({
        let mut rest = bytes;
        move || decoder.next(&mut rest)
    });
    assert_eq!(before.count(), count, "{name}");
}

#[derive(Deserialize)]
struct Written {
    id: String,
    name: String,
    message_b64: String,
    line_any_of_b64: Vec<String>,
}

#[test]
fn a_message_becomes_one_line() {
    for case in cases::<Written>("ndjson_write.jsonl") {
        let name = format!("{} {}", case.id, case.name);
        let bytes = STANDARD.decode(&case.message_b64).expect(&name);
        let Ok(Incoming::Message(message)) = parse(&bytes) else { panic!("{name}") };

        let mut line = Vec::new();
        compact(message.as_str(), &mut line);
        line.push(b'\n');
        assert!(case.line_any_of_b64.contains(&STANDARD.encode(&line)), "{name}");

        // The same from its parts: another single line with the same value.
        let id = message.id().expect(&name);
        let envelope = match message.result() {
            Some(result) => Envelope::Result { id, result },
            None => Envelope::Request { id, method: message.method(), params: message.params() },
        };
        let mut line = Vec::new();
        envelope.write_line(&mut line);
        let (last, before) = line.split_last().expect(&name);
        assert!(*last == b'\n' && !before.contains(&b'\n') && !before.contains(&b'\r'), "{name}");
        let value = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).expect(&name);
        assert_eq!(value(&line), value(&bytes), "{name}");
    }
}
