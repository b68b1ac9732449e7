//! What servers do, lawful or not, and what a host before the gateway sees of it: each
//! row of the table by which eras are told apart, and each fault, in weather of a few
//! seeds.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::rc::Rc;

use mcpx_core::driver::ListenerId;
use mcpx_core::protocol::revision::Revision;
use mcpx_tests::host::Host;
use mcpx_tests::net::Door;
use mcpx_tests::odd::{Deed, Heard, Manners, Odd};
use mcpx_tests::sim::Sim;
use serde_json::{Value, json};

const MODERN: Revision = Revision::R2026_07_28;
const LEGACY: Revision = Revision::R2025_11_25;
const SEEDS: std::ops::Range<u64> = 0..4;

/// Whether a server is a process or at a URL.
#[derive(Clone, Copy, PartialEq, Debug)]
enum By {
    Pipe,
    Url,
}

/// A world with such a server; `make` makes the manners of each process, or those of
/// the one at the URL.
fn world(seed: u64, by: By, make: impl Fn() -> Manners + 'static) -> Sim {
    Sim::before(seed, by == By::Url, |world| match by {
        By::Pipe => {
            world.install("server", Box::new(move |_, _| Box::new(Odd::on_pipe(make()))));
        }
        By::Url => {
            let node = world.add(Box::new(Odd::on_http(make())));
            world.listen("localhost:9000", node, ListenerId(0));
        }
    })
}

fn result(id: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

fn error(id: &Value, code: i32, data: &Value) -> String {
    let error = json!({"code": code, "message": "no", "data": data});
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()
}

fn respond(status: &str, kind: &str, body: &str) -> Vec<Deed> {
    let length = body.len();
    vec![Deed::Say(format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
    ))]
}

/// Says a message in the way of the transport.
fn say(heard: &Heard, message: String) -> Vec<Deed> {
    match heard.verb.as_str() {
        "" => vec![Deed::Say(message)],
        _ => respond("200 OK", "application/json", &message),
    }
}

/// What a good legacy server says, and how it answers calls: with the name of the tool.
fn legacy(heard: &Heard) -> Vec<Deed> {
    let id = heard.id();
    let text = heard.message["params"]["name"].clone();
    let called = json!({"content": [{"type": "text", "text": text}]});
    match (heard.verb.as_str(), heard.method()) {
        ("GET" | "DELETE", _) => respond("405 Method Not Allowed", "text/plain", ""),
        (_, "initialize") => {
            let info = json!({"name": "odd", "version": "1"});
            let agreed = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info});
            say(heard, result(&id, &agreed))
        }
        (_, "tools/call") => say(heard, result(&id, &called)),
        ("POST", _) if id.is_null() => respond("202 Accepted", "text/plain", ""),
        (_, _) if id.is_null() => Vec::new(),
        _ => say(heard, error(&id, -32601, &Value::Null)),
    }
}

/// The same of a modern one.
fn modern(heard: &Heard) -> Vec<Deed> {
    match heard.method() {
        "server/discover" => {
            let found = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}});
            say(heard, result(&heard.id(), &found))
        }
        "initialize" => say(heard, error(&heard.id(), -32601, &Value::Null)),
        _ => legacy(heard),
    }
}

/// What a host of a revision gets for a call.
fn call(sim: &mut Sim, revision: Revision) -> Result<String, String> {
    let mut host = Host::new(sim, Door::Lines, revision, json!({}));
    let begun = host.begin(sim);
    let why = |error: &Value| error["message"].as_str().unwrap().to_owned();
    if let Some(error) = begun.0.get("error") {
        return Err(why(error));
    }
    let answer = host.tool(sim, "hello", json!({}));
    assert!(host.rest().is_empty(), "{:?}", host.rest());
    match answer.0.get("error") {
        Some(error) => Err(why(error)),
        None => Ok(answer.text().to_owned()),
    }
}

/// Plays a server to hosts of both eras. `first` is what it does about the question
/// that tells them apart; otherwise it is good.
fn told_apart(
    by: &[By],
    good: fn(&Heard) -> Vec<Deed>,
    first: impl Fn(&Heard) -> Vec<Deed> + Clone + 'static,
    modern_sees: Result<(), &str>,
    legacy_sees: Result<(), &str>,
) {
    for (seed, by) in SEEDS.flat_map(|seed| by.iter().map(move |by| (seed, *by))) {
        for (revision, sees) in [(MODERN, modern_sees), (LEGACY, legacy_sees)] {
            let first = first.clone();
            let mut sim = world(seed, by, move || {
                let first = first.clone();
                Box::new(move |heard: &Heard| match heard.method() {
                    "server/discover" => first(heard),
                    _ => good(heard),
                })
            });
            match (call(&mut sim, revision), sees) {
                (Ok(text), Ok(())) => assert_eq!(text, "hello"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{by:?}: {why}"),
                (got, _) => panic!("{by:?} {revision}: {got:?}"),
            }
        }
    }
}

const BOTH: &[By] = &[By::Pipe, By::Url];

#[test]
fn probe_a_discover_result_is_modern() {
    told_apart(BOTH, modern, modern, Ok(()), Ok(()));
}

#[test]
fn probe_a_refusal_that_names_a_common_version_is_modern_and_asked_again() {
    // Ours is the first of all requests.
    let first = |heard: &Heard| match heard.id() == json!(1) {
        true => say(heard, error(&heard.id(), -32022, &json!({"supported": ["2026-07-28"]}))),
        false => modern(heard),
    };
    told_apart(BOTH, modern, first, Ok(()), Ok(()));
}

#[test]
fn probe_only_later_versions_are_an_error() {
    let first = |heard: &Heard| {
        say(heard, error(&heard.id(), -32022, &json!({"supported": ["2031-01-01"]})))
    };
    told_apart(BOTH, modern, first, Err("only what came after"), Err("only what came after"));
}

#[test]
fn probe_what_only_a_modern_server_says_is_no_reason_to_fall_back() {
    for code in [-32020, -32021] {
        let first = move |heard: &Heard| {
            let body = error(&heard.id(), code, &Value::Null);
            respond("400 Bad Request", "application/json", &body)
        };
        told_apart(
            &[By::Url],
            modern,
            first,
            Err("refused server/discover"),
            Err("refused server/discover"),
        );
    }
}

#[test]
fn probe_any_other_answer_is_legacy() {
    for code in [-32601, -32602, -32600, -32000] {
        let first = move |heard: &Heard| say(heard, error(&heard.id(), code, &Value::Null));
        told_apart(BOTH, legacy, first, Ok(()), Ok(()));
    }
    let shapeless = |heard: &Heard| say(heard, result(&heard.id(), &json!({"tools": []})));
    told_apart(BOTH, legacy, shapeless, Ok(()), Ok(()));
    for status in ["400 Bad Request", "404 Not Found", "405 Method Not Allowed"] {
        let first = move |_: &Heard| respond(status, "text/plain", "what?");
        told_apart(&[By::Url], legacy, first, Ok(()), Ok(()));
    }
}

#[test]
fn probe_locked_doors_and_broken_servers_say_nothing_of_eras() {
    for (status, part) in [
        ("401 Unauthorized", "wants authorization"),
        ("403 Forbidden", "forbids"),
        ("500 Internal Server Error", "HTTP 500"),
        ("503 Service Unavailable", "HTTP 503"),
    ] {
        let first = move |_: &Heard| respond(status, "text/plain", "");
        told_apart(&[By::Url], legacy, first, Err(part), Ok(()));
    }
    for revision in [MODERN, LEGACY] {
        let mut sim = Sim::before(1, true, |_| {});
        assert!(call(&mut sim, revision).unwrap_err().contains("nobody listens"));
    }
}

#[test]
fn probe_silence_is_legacy_on_a_pipe_and_an_error_at_a_url() {
    let first = |_: &Heard| Vec::new();
    told_apart(&[By::Pipe], legacy, first, Ok(()), Ok(()));
    told_apart(&[By::Url], legacy, first, Err("does not answer"), Ok(()));
}

#[test]
fn probe_a_process_that_ends_is_legacy_and_started_again() {
    told_apart(&[By::Pipe], legacy, |_: &Heard| vec![Deed::Quit(1)], Ok(()), Ok(()));
}

/// A session with a server, and what it answers a call of `hello`.
fn with_session(
    by: &[By],
    make: impl Fn() -> Manners + Clone + 'static,
    check: impl Fn(&mut Sim, &mut Host),
) {
    for (seed, by) in SEEDS.flat_map(|seed| by.iter().map(move |by| (seed, *by))) {
        let mut sim = world(seed, by, make.clone());
        let mut host = Host::connect(&mut sim, Door::Lines, LEGACY, json!({"roots": {}}));
        check(&mut sim, &mut host);
        assert!(host.rest().is_empty(), "{:?}", host.rest());
    }
}

#[test]
fn fault_a_server_that_forgets_its_sessions() {
    // Each session serves two calls.
    let make = || -> Manners {
        let (mut sessions, mut calls) = (0, 0);
        Box::new(move |heard| match heard.method() {
            "initialize" => {
                (sessions, calls) = (sessions + 1, 0);
                let agreed = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}});
                let body = result(&heard.id(), &agreed);
                let length = body.len();
                vec![Deed::Say(format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s{sessions}\r\nContent-Length: {length}\r\n\r\n{body}"
                ))]
            }
            "tools/call" => {
                calls += 1;
                let known = heard.session.as_deref() == Some(&*format!("s{sessions}"));
                if calls > 2 || !known {
                    respond("404 Not Found", "text/plain", "")
                } else {
                    legacy(heard)
                }
            }
            _ => legacy(heard),
        })
    };
    with_session(&[By::Url], make, |sim, host| {
        for _ in 0..3 {
            sim.world.pass(std::time::Duration::from_secs(2));
            for _ in 0..2 {
                assert_eq!(host.tool(sim, "hello", json!({})).text(), "hello");
            }
        }
    });
}

#[test]
fn fault_answers_in_another_order() {
    let make = || -> Manners {
        let mut kept: Vec<Value> = Vec::new();
        Box::new(move |heard| match heard.method() {
            "tools/call" => {
                kept.push(heard.id());
                if kept.len() < 3 {
                    return Vec::new();
                }
                let answer = |id: &Value| {
                    let content = json!([{"type": "text", "text": id.to_string()}]);
                    Deed::Say(result(id, &json!({"content": content})))
                };
                let answers = kept.iter().rev().map(answer).collect();
                kept.clear();
                answers
            }
            _ => legacy(heard),
        })
    };
    with_session(&[By::Pipe], make, |sim, host| {
        let ids: Vec<Value> =
            (0..3).map(|_| host.request(sim, "tools/call", json!({"name": "n"}))).collect();
        let texts: Vec<u64> =
            ids.iter().map(|id| host.answer(sim, id).text().parse().unwrap()).collect();
        assert!(texts.is_sorted(), "{texts:?}");
    });
}

#[test]
fn fault_questions_with_ids_of_every_kind() {
    let make = || -> Manners {
        let mut call = Value::Null;
        let ids = [json!("a"), json!("1"), json!(1), json!(-7), json!("é\"\\"), json!(1u64 << 60)];
        let mut asked = 0;
        let mut waiting: Vec<Value> = Vec::new();
        Box::new(move |heard| match heard.method() {
            "tools/call" => {
                call = heard.id();
                waiting = ids.to_vec();
                let question = |id| json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"});
                waiting.iter().map(|id| Deed::Say(question(id).to_string())).collect()
            }
            "" => {
                asked += 1;
                let at = waiting.iter().position(|id| *id == heard.message["id"]).unwrap();
                waiting.remove(at);
                if waiting.is_empty() {
                    let content = json!([{"type": "text", "text": asked.to_string()}]);
                    return vec![Deed::Say(result(&call, &json!({"content": content})))];
                }
                Vec::new()
            }
            _ => legacy(heard),
        })
    };
    with_session(&[By::Pipe], make, |sim, host| {
        let id = host.request(sim, "tools/call", json!({"name": "n"}));
        for _ in 0..6 {
            let question = host.hear(sim, "roots/list");
            host.reply(sim, &question, json!({"roots": []}));
        }
        assert_eq!(host.answer(sim, &id).text(), "6");
    });
}

#[test]
fn fault_banners_and_a_flood_of_errors() {
    let make = || -> Manners {
        Box::new(|heard| {
            let mut deeds = vec![
                Deed::Say("Server v1.0 ready!".into()),
                Deed::Say(String::new()),
                Deed::Mutter("e".repeat(1 << 20)),
            ];
            deeds.extend(legacy(heard));
            deeds
        })
    };
    with_session(&[By::Pipe], make, |sim, host| {
        assert_eq!(host.tool(sim, "hello", json!({})).text(), "hello");
    });
}

#[test]
fn fault_a_server_that_never_answers() {
    for (seed, by) in SEEDS.flat_map(|seed| BOTH.iter().map(move |by| (seed, *by))) {
        let mut sim = world(seed, by, || {
            Box::new(|heard| match heard.method() {
                "tools/call" => Vec::new(),
                _ => legacy(heard),
            })
        });
        let mut host = Host::connect(&mut sim, Door::Lines, LEGACY, json!({}));
        let id = host.request(&mut sim, "tools/call", json!({"name": "n"}));
        sim.world.pass(std::time::Duration::from_secs(3601));
        let answer = host.answer(&mut sim, &id);
        let why = answer.error()["message"].as_str().unwrap();
        assert!(why.contains("did not answer in time"), "{why}");
    }
}

#[test]
fn fault_a_server_that_dies() {
    let make = || -> Manners {
        Box::new(|heard| match heard.message["params"]["name"].as_str() {
            Some("die") => vec![Deed::Mutter("farewell".into()), Deed::Quit(9)],
            _ => legacy(heard),
        })
    };
    with_session(&[By::Pipe], make, |sim, host| {
        for _ in 0..5 {
            let died = host.tool(sim, "die", json!({}));
            let why = died.error()["message"].as_str().unwrap().to_owned();
            assert!(why.contains("code 9") && why.contains("farewell"), "{why}");
            assert_eq!(host.tool(sim, "hello", json!({})).text(), "hello");
        }
    });
}

/// What a server that wants to be polled sends for a call: the events of a stream.
fn events(id: &Value) -> [String; 3] {
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "half"}});
    let answer = result(id, &json!({"content": [{"type": "text", "text": "whole"}]}));
    [
        "id: 1\nretry: 100\ndata:\n\n".to_owned(),
        format!("id: 2\ndata: {progress}\n\n"),
        format!("id: 3\ndata: {answer}\n\n"),
    ]
}

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// A server whose response to a call ends after `cut` bytes, and which has the rest for
/// whoever comes with the id of the last event. Notes how often it was called.
fn cut_off(cut: usize, calls: Rc<RefCell<usize>>) -> Manners {
    let mut call = Value::Null;
    Box::new(move |heard| match (heard.verb.as_str(), heard.method()) {
        (_, "initialize") => {
            let agreed = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}});
            let body = result(&heard.id(), &agreed);
            let length = body.len();
            vec![Deed::Say(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s\r\nContent-Length: {length}\r\n\r\n{body}"
            ))]
        }
        (_, "tools/call") => {
            *calls.borrow_mut() += 1;
            call = heard.id();
            let whole: String = events(&call).iter().map(|event| chunk(event)).collect();
            let whole = format!("{STREAM}Transfer-Encoding: chunked\r\n\r\n{whole}0\r\n\r\n");
            let kept = whole.get(..cut).unwrap_or(&whole).to_owned();
            if kept.is_empty() { vec![Deed::HangUp] } else { vec![Deed::Say(kept), Deed::HangUp] }
        }
        ("GET", _) => match heard.after.as_deref().and_then(|id| id.parse::<usize>().ok()) {
            None => respond("405 Method Not Allowed", "text/plain", ""),
            Some(after) => {
                let rest: String =
                    events(&call).iter().skip(after).map(|event| chunk(event)).collect();
                vec![Deed::Say(format!(
                    "{STREAM}Transfer-Encoding: chunked\r\n\r\n{rest}0\r\n\r\n"
                ))]
            }
        },
        _ => legacy(heard),
    })
}

#[test]
fn fault_a_stream_cut_anywhere() {
    let length: usize = events(&json!(2)).iter().map(|event| chunk(event).len()).sum();
    let length = length + STREAM.len() + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n".len();
    let (mut whole, mut failed) = (0, 0);
    for cut in 0..=length {
        let calls = Rc::new(RefCell::new(0));
        let noted = Rc::clone(&calls);
        // The weather is still: the bytes are what they are.
        let mut sim = world(0, By::Url, move || cut_off(cut, Rc::clone(&noted)));
        let mut host = Host::connect(&mut sim, Door::Lines, LEGACY, json!({}));
        let answer = host.tool(&mut sim, "n", json!({}));
        // It may have been done, so it is not asked for again.
        assert_eq!(*calls.borrow(), 1, "{cut}");
        match answer.0.get("error") {
            None => {
                assert_eq!(answer.text(), "whole", "{cut}");
                let half = host.take(|message| message["method"] == "notifications/message");
                assert_eq!(half.unwrap()["params"]["data"], "half", "{cut}");
                whole += 1;
            }
            Some(error) => {
                let why = error["message"].as_str().unwrap();
                assert!(why.contains("broke before the answer"), "{cut}: {why}");
                failed += 1;
            }
        }
        assert!(host.rest().is_empty(), "{cut}: {:?}", host.rest());
    }
    // From the first event on, nothing is lost.
    let begun = STREAM.len() + "Transfer-Encoding: chunked\r\n\r\n".len();
    let first = begun + chunk(&events(&json!(2))[0]).len();
    assert_eq!(whole + failed, length + 1);
    assert!(failed <= first, "{failed} of {first}");
}

#[test]
fn fault_a_server_that_wants_to_be_polled() {
    let first = STREAM.len() + "Transfer-Encoding: chunked\r\n\r\n".len();
    let cut = first + chunk(&events(&json!(2))[0]).len();
    for seed in SEEDS {
        let calls = Rc::new(RefCell::new(0));
        let noted = Rc::clone(&calls);
        let mut sim = world(seed, By::Url, move || cut_off(cut, Rc::clone(&noted)));
        let mut host = Host::connect(&mut sim, Door::Lines, LEGACY, json!({}));
        assert_eq!(host.tool(&mut sim, "n", json!({})).text(), "whole");
        assert_eq!(*calls.borrow(), 1);
    }
}
