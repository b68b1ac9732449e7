use std::borrow::ToOwned;
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use super::*;
use crate::client::session::{self, Trouble};
use crate::client::{Failure, Place};
use crate::driver::{Action, Command, ConnId, ExitStatus, Input, Machine, Signal};
use crate::jsonrpc::get;
use crate::time::Instant;
use crate::wire::http1::Url;

const MODERN: &str = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#;
const LEGACY: &str =
    r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{}}}"#;

/// A visit, and what it has done to the outside.
struct Visit {
    machine: OneShot,
    /// Actions besides messages, in words, in order.
    log: Vec<String>,
    /// What was sent and not yet looked at.
    sent: Vec<String>,
    conn: Option<ConnId>,
    over: bool,
}

impl Visit {
    fn new(place: Place, jobs: Vec<Job>) -> Self {
        let limits = Limits { pages: 3, ..Limits::default() };
        let session = session::Config::new("s", place);
        Self::with(Config { session, limits }, jobs)
    }

    fn with(config: Config, jobs: Vec<Job>) -> Self {
        let machine = OneShot::new(config, jobs);
        let mut visit =
            Self { machine, log: Vec::new(), sent: Vec::new(), conn: None, over: false };
        visit.act();
        visit
    }

    fn process(jobs: Vec<Job>) -> Self {
        Self::new(Place::Process(Command::default()), jobs)
    }

    fn url(jobs: Vec<Job>) -> Self {
        let url = Url::parse("http://a/mcp").unwrap();
        Self::new(Place::Url { url, fields: Vec::new() }, jobs)
    }

    fn handle(&mut self, at: u64, input: Input<'_>) {
        self.machine.handle(Instant::from_micros(at * 1_000_000), input);
        self.act();
    }

    fn act(&mut self) {
        while let Some(action) = self.machine.poll() {
            match action {
                Action::Spawn { conn, .. } | Action::Connect { conn, .. } => {
                    self.conn = Some(conn);
                    self.log.push("connect".into());
                    self.machine.handle(self.machine.session.now(), Input::Connected { conn });
                }
                Action::Flush(conn) => {
                    let bytes = self.machine.outgoing(conn).to_vec();
                    self.machine.sent(self.machine.session.now(), conn, bytes.len());
                    self.sent.extend(String::from_utf8(bytes).unwrap().lines().map(str::to_owned));
                }
                Action::Finish(_) => self.log.push("finish".into()),
                Action::Close(_) => self.log.push("close".into()),
                Action::Signal { signal: Signal::Kill, .. } => self.log.push("kill".into()),
                Action::Exit => self.over = true,
                Action::Event(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The messages sent since this was last asked.
    fn sent(&mut self) -> Vec<String> {
        core::mem::take(&mut self.sent)
    }

    /// The only message sent since then.
    fn only(&mut self) -> String {
        let sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.into_iter().next().unwrap()
    }

    fn line(&mut self, line: &str) {
        let conn = self.conn.unwrap();
        self.handle(0, Input::Received { conn, bytes: format!("{line}\n").as_bytes() });
    }

    /// Answers the request that was sent last.
    fn answer(&mut self, expected: &str, member: &str, value: &str) -> String {
        let request = self.sent().pop().unwrap();
        assert_eq!(get(&request, "method").unwrap().trim_matches('"'), expected);
        let id = get(&request, "id").unwrap();
        self.line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":{value}}}"#));
        request
    }

    fn result(&mut self, expected: &str, value: &str) -> String {
        self.answer(expected, "result", value)
    }

    fn error(&mut self, expected: &str, code: i32) -> String {
        self.answer(expected, "error", &format!(r#"{{"code":{code},"message":"no"}}"#))
    }

    fn exits(&mut self, code: i32) {
        let conn = self.conn.unwrap();
        self.handle(0, Input::Exited { conn, status: ExitStatus::Code(code) });
    }

    /// The results of a visit that is over when its process has ended.
    fn end(mut self) -> Vec<Result<Answer, Trouble>> {
        assert!(!self.over);
        if self.machine.session.is_pipe() {
            self.exits(0);
        }
        assert!(self.over, "{:?}", self.machine.stage);
        assert_eq!(self.machine.deadline(), None);
        self.machine.into_results()
    }
}

fn call() -> Job {
    Job::Call { tool: "a\"b".into(), arguments: r#"{"x":1}"#.into() }
}

fn called(result: &str) -> Result<Answer, Trouble> {
    Ok(Answer::Called(result.into()))
}

fn initialize(visit: &mut Visit) {
    visit.result("initialize", LEGACY);
}

#[test]
fn a_modern_server_is_asked_with_metadata() {
    let mut visit = Visit::process(vec![call(), call()]);
    let probe = visit.result("server/discover", MODERN);
    assert!(
        probe.contains(
            r#""params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28""#
        )
    );
    let sent = visit.result("tools/call", "{}");
    assert!(sent.contains(r#""params":{"name":"a\"b","arguments":{"x":1},"_meta":{"io.model"#));
    visit.error("tools/call", -32602);
    assert_eq!(visit.log.last().unwrap(), "finish");
    let refused = r#"{"code":-32602,"message":"no"}"#.to_string();
    let refused = Trouble::Refused { method: "tools/call".into(), error: refused };
    assert_eq!(refused.to_string(), "it refused tools/call: no (-32602)");
    assert_eq!(visit.end(), [called("{}"), Err(refused)]);
}

#[test]
fn whoever_does_not_know_the_question_gets_a_handshake() {
    for (member, answer) in [
        ("error", r#"{"code":-32601,"message":""}"#),
        ("error", r#"{"code":-32602,"message":""}"#),
        ("error", r#"{"code":0,"message":""}"#),
        ("error", r#"{"code":-32022,"message":""}"#),
        ("error", r#"{"code":-32022,"message":"","data":{"supported":["x","2025-03-26"]}}"#),
        ("result", "{}"),
        ("result", r#"{"supportedVersions":["2025-11-25"]}"#),
    ] {
        let mut visit = Visit::process(vec![call()]);
        visit.answer("server/discover", member, answer);
        initialize(&mut visit);
        let sent = visit.sent();
        assert!(sent[0].contains(r#""method":"notifications/initialized""#), "{answer}");
        assert!(sent[1].contains(r#""params":{"name":"a\"b","arguments":{"x":1}}"#), "{answer}");
        let id = get(&sent[1], "id").unwrap();
        visit.line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#));
        assert_eq!(visit.end(), [called(r#"{"content":[]}"#)], "{answer}");
    }
}

#[test]
fn strangers_are_told_apart() {
    for (member, answer, trouble) in [
        ("result", r#"{"supportedVersions":["2027-01-01"]}"#, Trouble::NoCommonRevision),
        (
            "error",
            r#"{"code":-32022,"message":"","data":{"supported":["2027-01-01"]}}"#,
            Trouble::NoCommonRevision,
        ),
        (
            "error",
            r#"{"code":-32021,"message":"m"}"#,
            Trouble::Refused {
                method: "server/discover".into(),
                error: r#"{"code":-32021,"message":"m"}"#.into(),
            },
        ),
    ] {
        let mut visit = Visit::process(vec![call(), Job::List]);
        visit.answer("server/discover", member, answer);
        assert_eq!(visit.end(), [Err(trouble.clone()), Err(trouble)]);
    }
    for (answer, trouble) in [
        (r#"{"protocolVersion":"2026-07-28"}"#, Trouble::NoCommonRevision),
        (r#"{"protocolVersion":7}"#, Trouble::Malformed("initialize".into())),
    ] {
        let mut visit = Visit::process(vec![call()]);
        visit.error("server/discover", -32601);
        visit.result("initialize", answer);
        assert_eq!(visit.end(), [Err(trouble)]);
    }
}

#[test]
fn a_server_that_quits_at_the_question_is_started_again() {
    let mut visit = Visit::process(vec![call()]);
    visit.sent();
    let first = visit.conn;
    visit.exits(7);
    assert_ne!(visit.conn, first);
    initialize(&mut visit);
    visit.result("tools/call", "{}");
    assert_eq!(visit.end(), [called("{}")]);

    let mut visit = Visit::process(vec![call()]);
    visit.exits(7);
    visit.exits(8);
    assert!(visit.over);
    let failure = Failure::Exited(ExitStatus::Code(8), String::new());
    assert_eq!(visit.machine.into_results(), [Err(Trouble::Failure(failure))]);
}

#[test]
fn a_silent_server_gets_a_handshake_too() {
    let mut visit = Visit::process(vec![call()]);
    let probe = visit.only();
    visit.handle(4, Input::Tick);
    assert!(visit.sent().is_empty());
    assert_eq!(visit.machine.deadline(), Some(Instant::from_micros(5_000_000)));
    visit.handle(5, Input::Tick);
    let initialize = visit.only();
    assert!(initialize.contains(r#""method":"initialize""#));
    // It was only slow to start, and is modern.
    let answer = |visit: &mut Visit, to: &str, outcome: &str| {
        let id = get(to, "id").unwrap();
        visit.line(&format!(r#"{{"jsonrpc":"2.0","id":{id},{outcome}}}"#));
    };
    answer(&mut visit, &probe, &format!(r#""result":{MODERN}"#));
    answer(&mut visit, &initialize, r#""error":{"code":-32601,"message":""}"#);
    visit.result("tools/call", "{}");
    assert_eq!(visit.end(), [called("{}")]);

    let mut visit = Visit::process(vec![call()]);
    visit.handle(5, Input::Tick);
    visit.handle(65, Input::Tick);
    let silent = Trouble::Silent("initialize", core::time::Duration::from_secs(60));
    assert_eq!(visit.end(), [Err(silent)]);
}

#[test]
fn lists_are_read_to_their_end() {
    let mut visit = Visit::process(vec![Job::List]);
    visit.error("server/discover", -32601);
    initialize(&mut visit);
    visit.result("tools/list", r#"{"tools":[{"a":1}],"nextCursor":""}"#);
    let second = visit.result("tools/list", r#"{"tools":[{"b":2},{}],"nextCursor":null}"#);
    assert!(second.contains(r#""params":{"cursor":""}"#));
    visit.result("resources/list", r#"{"resources":[]}"#);
    visit.error("resources/templates/list", -32601);
    // Prompts were not declared.
    let tools = [r#"{"a":1}"#, r#"{"b":2}"#, "{}"].map(String::from).into();
    assert_eq!(visit.end(), [Ok(Answer::Listed(Listing { tools, ..Listing::default() }))]);
}

#[test]
fn lists_without_end_are_given_up() {
    for cursors in [&["1", "1"][..], &["1", "2", "3"]] {
        let mut visit = Visit::process(vec![Job::List]);
        visit.result("server/discover", MODERN);
        for cursor in cursors {
            visit.result("tools/list", &format!(r#"{{"tools":[],"nextCursor":"{cursor}"}}"#));
        }
        assert_eq!(visit.end(), [Err(Trouble::Endless("tools/list"))]);
    }
}

#[test]
fn a_failed_job_does_not_end_the_next() {
    let mut visit = Visit::process(vec![Job::List, Job::List, call(), call(), call()]);
    visit.result("server/discover", MODERN);
    visit.result("tools/list", r#"{"tools":{}}"#);
    visit.error("tools/list", -32603);
    visit.result("tools/call", "[]");
    visit.result("tools/call", r#"{"resultType":"input_required"}"#);
    visit.result("tools/call", r#"{"isError":true}"#);
    let results = visit.end();
    assert_eq!(results[0], Err(Trouble::Malformed("tools/list".into())));
    assert!(
        matches!(results[1], Err(Trouble::Refused { ref method, .. }) if method == "tools/list")
    );
    assert_eq!(results[2], Err(Trouble::Malformed("tools/call".into())));
    assert_eq!(results[3], Err(Trouble::NeedsInput));
    assert_eq!(results[4], called(r#"{"isError":true}"#));
}

#[test]
fn the_server_may_only_ping() {
    let mut visit = Visit::process(vec![call()]);
    visit.error("server/discover", -32601);
    visit.line(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert_eq!(visit.sent().pop().unwrap(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    visit.line(r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#);
    assert!(visit.only().starts_with(r#"{"jsonrpc":"2.0","id":"r","error":{"code":-32601,"#));
    visit.line(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#);
    assert!(visit.sent().is_empty());
}

#[test]
fn stopping_cancels_and_then_kills() {
    let mut visit = Visit::process(vec![call(), call()]);
    visit.result("server/discover", MODERN);
    visit.sent();
    visit.handle(1, Input::Stop);
    assert!(visit.only().contains(r#""method":"notifications/cancelled""#));
    visit.handle(1, Input::Stop);
    assert_eq!(visit.log.last().unwrap(), "kill");
    assert_eq!(visit.end(), [Err(Trouble::Interrupted), Err(Trouble::Interrupted)]);
}

#[test]
fn all_together_has_a_limit() {
    let mut visit = Visit::process(vec![call()]);
    visit.result("server/discover", MODERN);
    visit.sent();
    assert_eq!(visit.machine.deadline(), Some(Instant::from_micros(600_000_000)));
    visit.handle(600, Input::Tick);
    assert!(visit.only().contains(r#""method":"notifications/cancelled""#));
    let results = visit.end();
    assert_eq!(results, [Err(Trouble::OutOfTime(core::time::Duration::from_secs(600)))]);
}

/// Answers the HTTP request that was sent last.
fn respond(visit: &mut Visit, expected: &str, status: u16, member: &str, value: &str) -> String {
    let sent = visit.sent();
    let (body, head) = sent.split_last().unwrap();
    assert_eq!(get(body, "method").unwrap().trim_matches('"'), expected);
    let head = head.join("\n");
    let answer = match member {
        "" => String::new(),
        _ => format!(r#"{{"jsonrpc":"2.0","id":{},"{member}":{value}}}"#, get(body, "id").unwrap()),
    };
    let response = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
        answer.len()
    );
    let conn = visit.conn.unwrap();
    visit.handle(0, Input::Received { conn, bytes: response.as_bytes() });
    head
}

#[test]
fn arguments_that_headers_must_repeat_are_looked_up() {
    let mut visit = Visit::url(vec![call()]);
    respond(&mut visit, "server/discover", 200, "result", MODERN);
    let mismatch = r#"{"code":-32020,"message":"m"}"#;
    let head = respond(&mut visit, "tools/call", 400, "error", mismatch);
    assert!(head.contains("Mcp-Method: tools/call") && !head.contains("Mcp-Param"), "{head}");
    let tools = r#"{"tools":[{"name":"c"},{"name":"a\"b","inputSchema":{"type":"object",
        "properties":{"x":{"type":"integer","x-mcp-header":"Ex"}}}}]}"#;
    respond(&mut visit, "tools/list", 200, "result", tools);
    let head = respond(&mut visit, "tools/call", 200, "result", "{}");
    assert!(head.contains("Mcp-Param-Ex: 1"), "{head}");
    assert_eq!(head.matches("Mcp-Method").count(), 1, "{head}");
    assert_eq!(visit.machine.into_results(), [called("{}")]);
    assert!(visit.over);

    // Once is enough.
    let mut visit = Visit::url(vec![call()]);
    respond(&mut visit, "server/discover", 200, "result", MODERN);
    respond(&mut visit, "tools/call", 400, "error", mismatch);
    respond(&mut visit, "tools/list", 200, "result", r#"{"tools":[]}"#);
    respond(&mut visit, "tools/call", 400, "error", mismatch);
    assert!(matches!(visit.machine.into_results()[..], [Err(Trouble::Refused { .. })]));
}

#[test]
fn http_answers_that_say_nothing_of_revisions_are_no_verdict() {
    for status in [400, 404, 405] {
        let mut visit = Visit::url(vec![call()]);
        respond(&mut visit, "server/discover", status, "", "");
        let head = respond(&mut visit, "initialize", 200, "result", LEGACY);
        assert!(!head.contains("Mcp-Method") && !head.contains("MCP-Protocol-Version"), "{head}");
    }
    for status in [401, 403, 500, 503] {
        let mut visit = Visit::url(vec![call()]);
        respond(&mut visit, "server/discover", status, "", "");
        assert!(visit.over);
        let failure = Trouble::Failure(Failure::Status(status));
        assert_eq!(visit.machine.into_results(), [Err(failure)]);
    }
}

#[test]
fn a_server_that_the_question_stunned_is_started_again() {
    let mut visit = Visit::process(vec![call()]);
    visit.sent();
    visit.handle(5, Input::Tick);
    assert!(visit.only().contains("\"initialize\""));
    visit.exits(1);
    visit.result("initialize", LEGACY);
    assert_eq!(visit.sent().len(), 2);
    // It is not the question's fault for ever.
    let mut visit = Visit::process(vec![call()]);
    visit.sent();
    visit.handle(5, Input::Tick);
    visit.exits(1);
    visit.exits(1);
    assert!(visit.over);
    assert!(matches!(visit.machine.into_results()[..], [Err(Trouble::Failure(_))]));
}

#[test]
fn nothing_to_do_is_soon_done() {
    let mut visit = Visit::process(Vec::new());
    visit.result("server/discover", MODERN);
    assert_eq!(visit.end(), []);
}
