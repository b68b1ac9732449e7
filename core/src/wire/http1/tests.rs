//! Both readers, against each other's writers and against bad peers, with the
//! bytes cut everywhere.

use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use super::write::{self, BodyLen};
use super::*;

/// What a reader made of its input.
#[derive(Clone, PartialEq, Debug, Default)]
struct Outcome {
    /// Head, body and trailers of every message, as text.
    messages: Vec<String>,
    error: Option<RejectReason>,
    /// Bytes that were not taken.
    left: usize,
}

fn show(fields: &Fields) -> String {
    fields.iter().map(|(name, value)| format!(" {name}={}", value.escape_ascii())).collect()
}

/// Feeds the pieces as a runtime would: what is not taken is offered again
/// together with what comes next.
fn feed<'p>(
    pieces: impl IntoIterator<Item = &'p [u8]>,
    mut next: impl FnMut(&mut &[u8], &mut Outcome) -> Result<bool, Error>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut waiting = Vec::new();
    for piece in pieces {
        waiting.extend_from_slice(piece);
        let mut input = &waiting[..];
        loop {
            match next(&mut input, &mut outcome) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    assert_eq!(next(&mut input, &mut outcome), Err(error), "an error stays");
                    return Outcome { error: Some(error.reason), left: 0, ..outcome };
                }
            }
        }
        let left = input.len();
        waiting.drain(..waiting.len() - left);
    }
    Outcome { left: waiting.len(), ..outcome }
}

fn note<H, I>(
    part: Part<'_, H, I>,
    head: fn(&H) -> String,
    interim: fn(&I) -> String,
    outcome: &mut Outcome,
) {
    match part {
        Part::Interim(i) => outcome.messages.push(interim(&i)),
        Part::Head(h) => outcome.messages.push(head(&h) + " |"),
        Part::Data(data) => {
            assert!(!data.is_empty());
            outcome.messages.last_mut().unwrap().push_str(&data.escape_ascii().to_string());
        }
        Part::End(trailers) => {
            outcome.messages.last_mut().unwrap().push_str(&format!("|{}", show(&trailers)))
        }
    }
}

/// The outcome, after checking that no cut changes it.
fn any_cut(input: &[u8], run: impl Fn(&mut dyn Iterator<Item = &[u8]>) -> Outcome) -> Outcome {
    let whole = run(&mut [input].into_iter());
    assert_eq!(run(&mut input.chunks(1)), whole, "byte by byte: {}", input.escape_ascii());
    for cut in 1..input.len() {
        let (a, b) = input.split_at(cut);
        assert_eq!(run(&mut [a, b].into_iter()), whole, "cut at {cut}: {}", input.escape_ascii());
    }
    whole
}

fn requests_within(limits: Limits, input: &[u8]) -> Outcome {
    any_cut(input, |pieces| {
        let mut reader = RequestReader::new(limits);
        feed(pieces, |input, outcome| {
            let Some(part) = reader.next(input)? else { return Ok(false) };
            let head =
                |h: &RequestHead| format!("{} {}{}", h.method(), h.target(), show(&h.fields));
            note(part, head, |never| match *never {}, outcome);
            Ok(true)
        })
    })
}

fn requests(input: &str) -> Outcome {
    requests_within(Limits::default(), input.as_bytes())
}

fn responses_within(limits: Limits, methods: &[&str], input: &[u8]) -> Outcome {
    any_cut(input, |pieces| {
        let mut reader = ResponseReader::new(limits);
        methods.iter().for_each(|method| reader.expect(method));
        feed(pieces, |input, outcome| {
            let Some(part) = reader.next(input)? else { return Ok(false) };
            let head = |h: &ResponseHead| {
                format!("{} {}{}", h.status, h.reason().escape_ascii(), show(&h.fields))
            };
            note(part, head, head, outcome);
            Ok(true)
        })
    })
}

fn responses(methods: &[&str], input: &str) -> Outcome {
    responses_within(Limits::default(), methods, input.as_bytes())
}

fn messages(texts: &[&str], left: usize) -> Outcome {
    Outcome { messages: texts.iter().map(|t| t.to_string()).collect(), error: None, left }
}

fn request_head(input: &str) -> RequestHead {
    match RequestReader::new(Limits::default()).next(&mut input.as_bytes()) {
        Ok(Some(Part::Head(head))) => head,
        other => panic!("{other:?}"),
    }
}

#[test]
fn pipelined_requests_come_one_after_the_other() {
    let input = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello\r\n\
                 PUT /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=\"y\"\r\nhel\r\n2\r\nlo\r\n0\r\nT: 1\r\n\r\n\
                 GET /c HTTP/1.1\r\nHost: h\r\n\r\n\r\n";
    let expected = [
        "POST /a Host=h Content-Length=5 |hello|",
        "PUT /b Host=h Transfer-Encoding=Chunked |hello| T=1",
        "GET /c Host=h ||",
    ];
    assert_eq!(requests(input), messages(&expected, 0));
}

#[test]
fn nothing_is_read_after_a_request_that_closes() {
    for close in [
        "1.1\r\nHost: h\r\nConnection: x, Close",
        "1.0\r\nHost: h",
        "1.0\r\nConnection: keep-alive, close",
    ] {
        let outcome =
            requests(&format!("GET / HTTP/{close}\r\n\r\nGET /evil HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!((outcome.messages.len(), outcome.error, outcome.left), (1, None, 31), "{close}");
    }
    let outcome =
        requests("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\nGET / HTTP/1.0\r\n\r\n");
    assert_eq!((outcome.messages.len(), outcome.left), (2, 0));
}

#[test]
fn a_request_head_tells_its_parts() {
    let head = request_head(
        "GET http://B:81/mcp/x?y?z HTTP/1.2\r\nHost: a\r\nX:  1 \r\nx: 2\r\nX: \u{e9}\r\n\r\n",
    );
    assert_eq!(
        (head.method(), head.target(), head.form()),
        ("GET", "http://B:81/mcp/x?y?z", Form::Absolute)
    );
    assert_eq!((head.path(), head.query(), head.host()), ("/mcp/x", Some("y?z"), Some("B:81")));
    assert_eq!(
        (head.version(), head.framing, head.keep_alive),
        (Version::Http11, Framing::None, true)
    );
    assert_eq!((head.fields.get_str("x"), head.fields.len()), (Some("1"), 4));
    assert_eq!(head.fields.get_all("X").count(), 3);

    let head = request_head("OPTIONS http://b HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((head.path(), head.query(), head.host()), ("/", None, Some("b")));
    let head = request_head("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((head.path(), head.host()), ("*", Some("a")));
    let head = request_head("CONNECT b:80 HTTP/1.0\r\n\r\n");
    assert_eq!((head.path(), head.host(), head.keep_alive), ("", Some("b:80"), false));
    assert_eq!(request_head("GET / HTTP/1.0\r\n\r\n").host(), None);
}

#[test]
fn a_client_that_waits_for_100_is_known() {
    let waits = |version| {
        let input = format!(
            "POST / HTTP/{version}\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n"
        );
        request_head(&input).expect_continue
    };
    assert!(waits("1.1"));
    assert!(!waits("1.0"));
}

#[test]
fn bad_requests_are_refused_for_their_reason() {
    use RejectReason::*;
    let cases: &[(&str, RejectReason)] = &[
        // Lines
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", BareLf),
        ("GET / HTTP/1.1\r\nHost: a\n", BareLf),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", BareLf),
        ("\n", BareLf),
        ("\rGET / HTTP/1.1\r\n", InvalidRequestLine),
        ("\r\n\r\n", InvalidRequestLine),
        ("GET / HTTP/1.1\rX\r\n", InvalidVersion),
        ("GET / HTTP/1.1\r\nHost: a\r\n b\r\n", ObsoleteFold),
        ("GET / HTTP/1.1\r\n Host: a\r\n", ObsoleteFold),
        // The request line
        ("GET /\r\n", InvalidRequestLine),
        ("GET  / HTTP/1.1\r\n", InvalidRequestLine),
        ("GET / HTTP/1.1 \r\n", InvalidRequestLine),
        ("GET\t/\tHTTP/1.1\r\n", InvalidRequestLine),
        ("GET HTTP/1.1\r\n", InvalidRequestLine),
        (" GET / HTTP/1.1\r\n", InvalidRequestLine),
        ("G@T / HTTP/1.1\r\n", InvalidMethod),
        ("GET * HTTP/1.1\r\n", InvalidTarget),
        ("GET / http/1.1\r\n", InvalidVersion),
        ("GET / HTTP/1.10\r\n", InvalidVersion),
        ("PRI * HTTP/2.0\r\n", UnsupportedVersion),
        // Fields
        ("GET / HTTP/1.1\r\nHost : a\r\n", InvalidFieldName),
        ("GET / HTTP/1.1\r\nHost\r\n", InvalidFieldName),
        ("GET / HTTP/1.1\r\n: a\r\n", InvalidFieldName),
        ("GET / HTTP/1.1\r\nA: b\rC: d\r\n", InvalidFieldValue),
        ("GET / HTTP/1.1\r\nA: b\0\r\n", InvalidFieldValue),
        ("GET / HTTP/1.1\r\nA B: c\r\nD: e\0\r\nF: g\n\r\n", InvalidFieldName),
        // Host
        ("GET / HTTP/1.1\r\nA: b\r\n\r\n", MissingHost),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", RepeatedHost),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", InvalidHost),
        ("GET http://a/ HTTP/1.1\r\nHost: a b\r\n\r\n", InvalidHost),
        // Framing
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", InvalidContentLength),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n", InvalidContentLength),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            RepeatedContentLength,
        ),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", BodyTooLong),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            ConflictingFraming,
        ),
        (
            "GET / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            TransferEncodingInHttp10,
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            UnsupportedTransferEncoding,
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
            InvalidTransferEncoding,
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
            InvalidTransferEncoding,
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: , chunked\r\n\r\n",
            InvalidTransferEncoding,
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            InvalidTransferEncoding,
        ),
    ];
    for &(input, reason) in cases {
        let refused = Outcome { error: Some(reason), ..Outcome::default() };
        assert_eq!(requests(input), refused, "{input:?}");
        // Nor is anything read after it.
        assert_eq!(
            requests(&format!("{input}GET / HTTP/1.1\r\nHost: a\r\n\r\n")),
            refused,
            "{input:?}"
        );
    }
}

#[test]
fn bad_bodies_are_refused_for_their_reason() {
    use RejectReason::*;
    for (body, reason) in [
        ("g\r\n", InvalidChunkSize),
        ("3\r\nabcX", InvalidChunkEnd),
        ("3\r\nabc\rX", InvalidChunkEnd),
        ("3\r\nabc\n", InvalidChunkEnd),
        ("3\n", InvalidChunkSize),
        ("3\rX", InvalidChunkEnd),
        ("3;\r\n", InvalidChunkExtension),
        ("0\r\nA: b\n", BareLf),
        ("0\r\n A: b\r\n", ObsoleteFold),
        ("0\r\nnope\r\n", InvalidFieldName),
    ] {
        let input = format!(
            "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n{body}"
        );
        let outcome = requests(&input);
        assert_eq!((outcome.messages.len(), outcome.error), (1, Some(reason)), "{body:?}");
    }
}

#[test]
fn every_limit_holds_at_its_value_and_not_below() {
    use RejectReason::*;
    type Set = fn(&mut Limits, usize);
    let chunked = "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let cases: &[(Set, usize, String, RejectReason)] = &[
        (|l, n| l.head_bytes = n, 27, "GET / HTTP/1.1\r\nHost: a\r\n\r\n".into(), SectionTooLong),
        (|l, n| l.fields = n, 2, "GET / HTTP/1.1\r\nHost: a\r\nB: c\r\n\r\n".into(), TooManyFields),
        (
            |l, n| l.body_bytes = n as u64,
            3,
            "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc".into(),
            BodyTooLong,
        ),
        (
            |l, n| l.body_bytes = n as u64,
            3,
            format!("{chunked}1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"),
            BodyTooLong,
        ),
        (
            |l, n| l.chunk_extension_bytes = n,
            8,
            format!("{chunked}1;a=b\r\na\r\n0;a=b\r\n\r\n"),
            ChunkExtensionsTooLong,
        ),
        (|l, n| l.trailer_bytes = n, 8, format!("{chunked}0\r\nA: b\r\n\r\n"), SectionTooLong),
    ];
    for (set, value, input, reason) in cases {
        let mut limits = Limits::default();
        set(&mut limits, *value);
        let within = requests_within(limits, input.as_bytes());
        assert_eq!((within.messages.len(), within.error), (1, None), "{input:?}");
        set(&mut limits, *value - 1);
        assert_eq!(requests_within(limits, input.as_bytes()).error, Some(*reason), "{input:?}");
    }
    let limits = Limits { head_bytes: 16, ..Limits::default() };
    assert_eq!(requests_within(limits, b"GET /aaaaaaaaaaaaaaaaaaa").error, Some(StartLineTooLong));
}

#[test]
fn a_body_past_the_limit_is_refused_before_any_of_it() {
    let mut reader = RequestReader::new(Limits { body_bytes: 10, ..Limits::default() });
    let error = reader
        .next(&mut &b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n"[..])
        .unwrap_err();
    assert_eq!((error.peer, error.status()), (Peer::Client, 413));
}

#[test]
fn a_client_may_leave_between_requests_only() {
    let finish = |input: &str| {
        let mut reader = RequestReader::new(Limits::default());
        let mut input = input.as_bytes();
        while reader.next(&mut input).unwrap().is_some() {}
        reader.finish().map_err(|error| error.reason)
    };
    for whole in [
        "",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\nx",
    ] {
        assert_eq!(finish(whole), Ok(()), "{whole:?}");
    }
    for cut in [
        "G",
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n",
    ] {
        assert_eq!(finish(cut), Err(RejectReason::Truncated), "{cut:?}");
    }
}

#[test]
fn responses_are_framed_by_what_they_answer() {
    let input = "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n\
                 HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n\
                 HTTP/1.1 204 No Content\r\nContent-Length: x\r\n\r\n\
                 HTTP/1.1 304 \r\nTransfer-Encoding: chunked\r\n\r\n\
                 HTTP/1.1 200  OK\r\nContent-Length: 2\r\n\r\nok\
                 HTTP/1.1 404 \u{e9}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\nrest";
    let expected = [
        "103 Early Hints A=b",
        "200 OK Content-Length=5 ||",
        "204 No Content Content-Length=x ||",
        "304  Transfer-Encoding=chunked ||",
        "200  OK Content-Length=2 |ok|",
        "404 \\xc3\\xa9 Transfer-Encoding=chunked |no|",
    ];
    assert_eq!(responses(&["HEAD", "GET", "GET", "GET", "POST"], input), messages(&expected, 4));
    assert_eq!(responses(&[], "HTTP/1.1 200 OK\r\n\r\n"), messages(&[], 19));
}

#[test]
fn bad_responses_are_refused_for_their_reason() {
    use RejectReason::*;
    for (input, reason) in [
        ("HTTP/1.1 200\r\n", InvalidStatusLine),
        ("HTTP/1.1  200 OK\r\n", InvalidStatusLine),
        ("\r\nHTTP/1.1 200 OK\r\n", InvalidStatusLine),
        ("HTTP/1.1 20 OK\r\n", InvalidStatusLine),
        ("HTTP/1.1 2000 OK\r\n", InvalidStatusLine),
        ("HTTP/1.1 200 O\rK\r\n", InvalidStatusLine),
        ("HTTP/1.1 099 X\r\n", InvalidStatus),
        ("HTTP/1.1 600 X\r\n", InvalidStatus),
        ("http/1.1 200 OK\r\n", InvalidVersion),
        ("HTTP/2.0 200 OK\r\n", UnsupportedVersion),
        ("hello world\n", BareLf),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", UnexpectedUpgrade),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            ConflictingFraming,
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", InvalidTransferEncoding),
        ("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n", ObsoleteFold),
    ] {
        let refused = Outcome { error: Some(reason), ..Outcome::default() };
        assert_eq!(responses(&["GET"], input), refused, "{input:?}");
    }
    let limits = Limits { interim_responses: 2, ..Limits::default() };
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    assert_eq!(responses_within(limits, &["GET"], interim.repeat(2).as_bytes()).error, None);
    assert_eq!(
        responses_within(limits, &["GET"], interim.repeat(3).as_bytes()).error,
        Some(TooManyInterim)
    );
}

#[test]
fn the_end_of_the_connection_ends_only_a_body_that_ends_so() {
    let finish = |input: &str| {
        let mut reader = ResponseReader::new(Limits::default());
        reader.expect("GET");
        let mut input = input.as_bytes();
        while reader.next(&mut input).unwrap().is_some() {}
        match reader.finish() {
            Ok(None) => Ok(false),
            Ok(Some(Part::End(_))) => Ok(true),
            Ok(Some(other)) => panic!("{other:?}"),
            Err(error) => Err(error.reason),
        }
    };
    assert_eq!(finish("HTTP/1.1 200 OK\r\n\r\nhello"), Ok(true));
    assert_eq!(finish("HTTP/1.1 200 OK\r\n\r\n"), Ok(true));
    assert_eq!(finish("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), Ok(false));
    assert_eq!(
        finish("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
        Ok(false)
    );
    assert_eq!(finish(""), Err(RejectReason::NoResponse));
    for cut in [
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
    ] {
        assert_eq!(finish(cut), Err(RejectReason::Truncated), "{cut:?}");
    }
}

#[test]
fn a_body_until_the_end_is_limited_too() {
    let limits = Limits { body_bytes: 5, ..Limits::default() };
    let outcome = responses_within(limits, &["GET"], b"HTTP/1.1 200 OK\r\n\r\nhello!");
    assert_eq!(
        (&outcome.messages[0][..], outcome.error),
        ("200 OK |hello", Some(RejectReason::BodyTooLong))
    );
}

#[test]
fn body_bytes_are_lent_from_the_input() {
    let input = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    let mut rest = &input[..];
    let mut reader = RequestReader::new(Limits::default());
    assert!(matches!(reader.next(&mut rest), Ok(Some(Part::Head(_)))));
    assert!(
        matches!(reader.next(&mut rest), Ok(Some(Part::Data(data))) if data.as_ptr() == input[input.len() - 5..].as_ptr())
    );
}

/// A small generator, so that the same cases come on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n
    }

    fn text(&mut self, max: usize, alphabet: &str) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        (0..self.below(max + 1)).map(|_| letters[self.below(letters.len())]).collect()
    }
}

#[test]
fn what_is_written_is_read_again() {
    let mut random = Random(1);
    for _ in 0..200 {
        let name = format!("x{}", random.text(8, "abcXYZ-_!#"));
        let value = random.text(12, "ab \t,;:=\"\u{e9}\u{4e16}");
        let target = format!("/{}", random.text(8, "ab/?.~:@&=+"));
        let data: Vec<String> =
            vec![random.text(40, "0\r\n{}\""), random.text(300, "ab\u{e9}"), random.text(3, "\n")];
        let body = data.concat();
        let body_shown = body.as_bytes().escape_ascii().to_string();
        let field_shown = format!(" {name}={}", chars::trim(value.as_bytes()).escape_ascii());
        let chunked = random.below(2) == 0;
        let (length, framing) = match chunked {
            true => (BodyLen::Chunked, "transfer-encoding=chunked".to_string()),
            false => (BodyLen::Length(body.len() as u64), format!("content-length={}", body.len())),
        };
        let write_body = |out: &mut Vec<u8>| match chunked {
            true => {
                data.iter().for_each(|part| write::chunk(out, &[part.as_bytes()]));
                write::chunk(out, &[]);
                write::last_chunk(out);
            }
            false => out.extend_from_slice(body.as_bytes()),
        };

        let mut out = Vec::new();
        write::request_head(&mut out, "POST", &target, "[::1]:80", &[(&name, &value)], length)
            .unwrap();
        write_body(&mut out);
        let expected = format!("POST {target} host=[::1]:80{field_shown} {framing} |{body_shown}|");
        assert_eq!(requests_within(Limits::default(), &out), messages(&[&expected], 0));

        let mut out = write::CONTINUE.to_vec();
        write::response_head(&mut out, 200, &[(&name, &value)], length).unwrap();
        write_body(&mut out);
        let expected = format!("200 OK{field_shown} {framing} |{body_shown}|");
        let outcome = responses_within(Limits::default(), &["POST"], &out);
        assert_eq!(outcome, messages(&["100 Continue", &expected], 0));
    }
}

#[test]
fn broken_bytes_give_one_outcome_however_they_are_cut() {
    let mut random = Random(7);
    let seed = "\r\nPOST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: 1\r\n\r\n\
                PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
    let limits = Limits { head_bytes: 70, fields: 3, trailer_bytes: 10, ..Limits::default() };
    for _ in 0..1500 {
        let mut bytes = seed.as_bytes().to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            let byte = b"\r\n \t:;,0aZ\0\xff"[random.below(12)];
            match random.below(3) {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        requests_within(limits, &bytes);
    }
}
