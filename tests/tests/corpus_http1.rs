//! The HTTP/1.1 readers against test vectors: `shared/corpora/http1`.
//!
//! Every case is fed whole, byte by byte, and cut where it says. Where a case
//! allows more than one answer, the one that it calls preferred (always the
//! refusal) is demanded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mcpx_core::wire::http1::{
    Error, Fields, Form, Framing, Limits, Part, Peer, RequestHead, RequestReader, ResponseHead,
    ResponseReader, Version,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    id: String,
    kind: String,
    role: String,
    b64: Option<String>,
    parts: Option<Vec<Piece>>,
    #[serde(default)]
    cuts: Vec<usize>,
    #[serde(default)]
    eof: bool,
    request_methods: Option<Vec<String>>,
    verdict: String,
    prefer: Option<String>,
    if_reject: Option<Answer>,
    #[serde(flatten)]
    answer: Answer,
}

#[derive(Deserialize)]
struct Piece {
    text: String,
    #[serde(default = "once")]
    times: usize,
}

fn once() -> usize {
    1
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    status: Vec<u16>,
    #[serde(default)]
    messages: Vec<Message>,
    pending: Option<Message>,
    #[serde(default)]
    leftover: usize,
}

#[derive(Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(deny_unknown_fields)]
struct Message {
    method: Option<String>,
    target: Option<String>,
    form: Option<String>,
    effective_host: Option<String>,
    #[serde(default)]
    expect_continue: bool,
    status: Option<u16>,
    reason: Option<String>,
    #[serde(default)]
    interim: bool,
    version: String,
    headers: Vec<(String, String)>,
    framing: String,
    keep_alive: bool,
    body_len: usize,
    body_b64: Option<String>,
    #[serde(default)]
    trailers: Vec<(String, String)>,
}

/// What a reader made of the bytes.
#[derive(Debug, Default)]
struct Seen {
    messages: Vec<Message>,
    /// A message whose end did not come.
    pending: Option<Message>,
    body: Vec<u8>,
    error: Option<Error>,
    left: usize,
}

impl Seen {
    fn head(&mut self, message: Message) {
        assert!(self.pending.is_none(), "a head inside a message");
        self.body.clear();
        self.pending = Some(message);
    }

    fn end(&mut self, trailers: &Fields) {
        let mut message = self.pending.take().expect("an end without a head");
        message.body_len = self.body.len();
        message.body_b64 = (self.body.len() <= 2048).then(|| BASE64_STANDARD.encode(&self.body));
        message.trailers = pairs(trailers);
        self.messages.push(message);
    }
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&b| char::from(b)).collect()
}

fn pairs(fields: &Fields) -> Vec<(String, String)> {
    fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), latin1(value))).collect()
}

fn common(fields: &Fields, version: Version, framing: Framing, keep_alive: bool) -> Message {
    let version = match version {
        Version::Http10 => "1.0",
        Version::Http11 => "1.1",
    };
    let framing = match framing {
        Framing::None => "none",
        Framing::Length(_) => "length",
        Framing::Chunked => "chunked",
        Framing::Eof => "eof",
    };
    Message {
        version: version.into(),
        headers: pairs(fields),
        framing: framing.into(),
        keep_alive,
        body_b64: Some(String::new()),
        ..Message::default()
    }
}

fn request(head: &RequestHead) -> Message {
    let form = match head.form() {
        Form::Origin => "origin",
        Form::Absolute => "absolute",
        Form::Authority => "authority",
        Form::Asterisk => "asterisk",
    };
    let absolute = head.form() == Form::Absolute;
    Message {
        method: Some(head.method().into()),
        target: Some(head.target().into()),
        form: Some(form.into()),
        effective_host: head.host().filter(|_| absolute).map(Into::into),
        expect_continue: head.expect_continue,
        ..common(&head.fields, head.version(), head.framing, head.keep_alive)
    }
}

fn response(head: &ResponseHead) -> Message {
    Message {
        status: Some(head.status),
        reason: Some(latin1(head.reason())),
        interim: head.is_interim(),
        ..common(&head.fields, head.version, head.framing, head.keep_alive)
    }
}

/// Feeds `pieces`; what is not taken is offered again with the next piece.
fn feed<'p>(
    pieces: impl Iterator<Item = &'p [u8]>,
    seen: &mut Seen,
    mut next: impl FnMut(&mut &[u8], &mut Seen) -> Result<bool, Error>,
) {
    let mut waiting: Vec<u8> = Vec::new();
    for piece in pieces {
        waiting.extend_from_slice(piece);
        let mut input = &waiting[..];
        loop {
            match next(&mut input, seen) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    seen.error = Some(error);
                    return;
                }
            }
        }
        let taken = waiting.len() - input.len();
        waiting.drain(..taken);
    }
    seen.left = waiting.len();
}

fn read_requests<'p>(limits: Limits, pieces: impl Iterator<Item = &'p [u8]>) -> Seen {
    let mut reader = RequestReader::new(limits);
    let mut seen = Seen::default();
    feed(pieces, &mut seen, |input, seen| {
        match reader.next(input)? {
            None => return Ok(false),
            Some(Part::Head(head)) => seen.head(request(&head)),
            Some(Part::Data(data)) => seen.body.extend_from_slice(data),
            Some(Part::End(trailers)) => seen.end(&trailers),
        }
        Ok(true)
    });
    seen
}

fn read_responses<'p>(limits: Limits, case: &Case, pieces: impl Iterator<Item = &'p [u8]>) -> Seen {
    let mut reader = ResponseReader::new(limits);
    match &case.request_methods {
        None => reader.expect("POST"),
        Some(methods) => methods.iter().for_each(|method| reader.expect(method)),
    }
    let mut seen = Seen::default();
    feed(pieces, &mut seen, |input, seen| {
        match reader.next(input)? {
            None => return Ok(false),
            Some(Part::Interim(head)) => {
                seen.head(response(&head));
                seen.end(&Fields::default());
            }
            Some(Part::Head(head)) => seen.head(response(&head)),
            Some(Part::Data(data)) => seen.body.extend_from_slice(data),
            Some(Part::End(trailers)) => seen.end(&trailers),
        }
        Ok(true)
    });
    if case.eof && seen.error.is_none() {
        match reader.finish() {
            Ok(None) => {}
            Ok(Some(Part::End(trailers))) => seen.end(&trailers),
            Ok(Some(other)) => panic!("finish gave {other:?}"),
            Err(error) => seen.error = Some(error),
        }
    }
    seen
}

/// The allowed statuses are those of our own answer. Some cases list, for a bad
/// response, what a server would say to the same fault in a request.
fn check_status(error: Error, listed: &[u16]) -> Result<(), String> {
    let fits = match error.peer {
        Peer::Client => listed.contains(&error.status()),
        Peer::Server => {
            error.status() == 502
                && (listed.contains(&502) || listed.contains(&error.reason.status()))
        }
    };
    if fits { Ok(()) } else { Err(format!("{error}: {} is not in {listed:?}", error.status())) }
}

fn check_refusal(seen: &Seen, answer: &Answer) -> Result<(), String> {
    let Some(error) = seen.error else { return Err("not refused".into()) };
    check_status(error, &answer.status)?;
    same("messages", &seen.messages, &answer.messages)
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, ours: &T, theirs: &T) -> Result<(), String> {
    if ours == theirs {
        Ok(())
    } else {
        Err(format!("{what}:\n    ours   {ours:?}\n    theirs {theirs:?}"))
    }
}

fn check(case: &Case, seen: &Seen) -> Result<(), String> {
    let answer = &case.answer;
    let peer = if case.role == "request" { Peer::Client } else { Peer::Server };
    if let Some(error) = seen.error {
        same("peer", &error.peer, &peer)?;
    }
    match case.verdict.as_str() {
        // Limits: without messages to compare, all that counts is a clean end.
        "either" if case.kind == "limits" => match seen.error {
            Some(error) => check_status(error, &answer.status),
            None => Ok(()),
        },
        "either" => {
            same("preference", &case.prefer.as_deref(), &Some("reject"))?;
            check_refusal(seen, case.if_reject.as_ref().ok_or("no if_reject")?)
        }
        "reject" if case.kind == "limits" => match seen.error {
            Some(error) => check_status(error, &answer.status),
            None => Err("not refused".into()),
        },
        "reject" => check_refusal(seen, answer),
        "accept" | "incomplete" => {
            same("error", &seen.error, &None)?;
            same("messages", &seen.messages, &answer.messages)?;
            same("left", &seen.left, &answer.leftover)?;
            // A pending message is a head, whatever came of its body.
            same("pending", &seen.pending, &answer.pending)
        }
        "truncated" => {
            let Some(error) = seen.error else { return Err("a short success".into()) };
            same("status", &error.status(), &502)?;
            same("messages", &seen.messages, &answer.messages)
        }
        unknown => panic!("{}: unknown verdict {unknown}", case.id),
    }
}

fn input(case: &Case) -> Vec<u8> {
    match (&case.b64, &case.parts) {
        (Some(b64), None) => BASE64_STANDARD.decode(b64).expect("base64"),
        (None, Some(parts)) => {
            parts.iter().map(|p| p.text.repeat(p.times)).collect::<String>().into_bytes()
        }
        _ => panic!("{}: neither b64 nor parts", case.id),
    }
}

fn cut_at<'a>(input: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let ends = cuts.iter().copied().chain([input.len()]);
    let starts = [0].into_iter().chain(cuts.iter().copied());
    starts.zip(ends).map(|(start, end)| &input[start..end]).collect()
}

fn run(case: &Case) -> Result<(), String> {
    // Large enough for everything but the cases about limits, which are meant
    // for ordinary ones.
    let limits = match case.kind.as_str() {
        "limits" => Limits { body_bytes: 4 << 20, ..Limits::default() },
        _ => Limits { body_bytes: u64::MAX, ..Limits::default() },
    };
    let input = input(case);
    let bytewise: Vec<usize> = (1..input.len()).collect();
    for (how, cuts) in
        [("whole", &[][..]), ("byte by byte", &bytewise[..]), ("cut", &case.cuts[..])]
    {
        let pieces = cut_at(&input, cuts).into_iter().filter(|piece| !piece.is_empty());
        let seen = match case.role.as_str() {
            "request" => read_requests(limits, pieces),
            "response" => read_responses(limits, case, pieces),
            unknown => panic!("{}: unknown role {unknown}", case.id),
        };
        check(case, &seen).map_err(|why| format!("{how}: {why}"))?;
    }
    Ok(())
}

fn corpora() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|a| a.join("shared/corpora")).find(|folder| folder.is_dir())
}

#[test]
fn every_case_gets_an_allowed_answer() {
    let Some(corpora) = corpora() else {
        eprintln!("skipped: there is no shared/corpora above the project");
        return;
    };
    let text =
        std::fs::read_to_string(corpora.join("http1/cases.jsonl")).expect("http1/cases.jsonl");
    let mut verdicts = BTreeMap::<String, usize>::new();
    let mut failures = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let case: Case =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if let Err(why) = run(&case) {
            failures.push(format!("{} ({}): {why}", case.id, case.verdict));
        }
        *verdicts.entry(case.verdict).or_default() += 1;
    }
    eprintln!("{verdicts:?}");
    assert!(verdicts.values().sum::<usize>() > 0, "no cases");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
