//! What goes wrong, and what is left of it.

use std::collections::VecDeque;

use mcpx_tests::host::Answer;
use mcpx_tests::net::{Door, Upstream};
use serde_json::{Value, json};

use crate::stage::Stage;

pub(crate) fn broken_json(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}"#, "[".repeat(100_000));
    for (bytes, code) in [
        (&b"{oops"[..], -32700),
        (&b"\xff\xfe"[..], -32700),
        (&br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ec"#[..], -32700),
        (deep.as_bytes(), -32600),
        (&br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#[..], -32600),
        (&br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#[..], -32600),
        (&b"17"[..], -32600),
        (&b"[]"[..], -32600),
    ] {
        if host.door.is_http() {
            let line = host.http(net, "POST", "", bytes);
            assert_eq!(host.status(net, line), 400, "{}", bytes.escape_ascii());
        } else {
            net.write(host.line(), bytes);
            net.write(host.line(), b"\n");
        }
        let refusal = |host: &mut mcpx_tests::host::Host| {
            host.take(|message| message.get("method").is_none() && message.get("error").is_some())
        };
        let error = loop {
            if let Some(error) = refusal(&mut host) {
                break error;
            }
            net.wait(&host.lines());
            host.pump(net);
        };
        assert_eq!(
            error["error"]["code"],
            code,
            "{} {error}",
            &bytes[..bytes.len().min(80)].escape_ascii()
        );
    }
    assert_eq!(host.tool(net, "echo", json!({"message": "still"})).text(), "Echo: still");
}

/// Who reads nothing for a while gets everything when it does, and holds nobody
/// else up.
pub(crate) fn slow_reader(stage: &mut Stage<'_>) {
    const LENGTH: usize = 5 << 20;
    let mut slow = stage.host();
    let mut other = stage.host();
    let net = &mut *stage.net;
    let params = json!({"name": "big", "arguments": {"bytes": LENGTH}});
    let own = slow.request_as(net, json!("big"), "tools/call", params);
    let line = own.unwrap_or_else(|| slow.line());
    net.hold(line, true);
    for n in 0..5 {
        let message = n.to_string();
        let answer = other.tool(net, "echo", json!({"message": message}));
        assert_eq!(answer.text(), format!("Echo: {message}"));
    }
    net.hold(line, false);
    assert_eq!(slow.answer(net, &json!("big")).text().len(), LENGTH);
}

pub(crate) fn dying_server(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let mut other = stage.host();
    let net = &mut *stage.net;
    let silent = json!({"name": "silent", "_meta": {"progressToken": 1}});
    let silent = host.request(net, "tools/call", silent);
    // The two come by connections of their own, and in no particular order.
    host.hear(net, "notifications/progress");
    let quit = host.tool(net, "quit", json!({}));
    let why = quit.error()["message"].as_str().unwrap().to_owned();
    assert!(why.contains("exited with code 3") && why.contains("out of luck"), "{why}");
    // Everybody who waited for it is told, and nobody else.
    host.answer(net, &silent).error();
    assert_eq!(other.tool(net, "echo", json!({"message": "here"})).text(), "here");
    let mut again = stage.host();
    assert_eq!(again.tool(stage.net, "echo", json!({"message": "new"})).text(), "new");
}

/// A session survives its server: what comes next is for another process.
pub(crate) fn reborn_server(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    for n in 0..3 {
        let quit = host.tool(net, "quit", json!({}));
        let why = quit.error()["message"].as_str().unwrap().to_owned();
        assert!(why.contains("exited with code 3") && why.contains("out of luck"), "{why}");
        let message = n.to_string();
        let echo = host.tool(net, "echo", json!({"message": message}));
        assert_eq!(echo.text(), message);
    }
}

/// Whoever calls while servers are killed gets a result or a reason, once, and what
/// was killed leaves nothing behind.
pub(crate) fn killed_servers(stage: &mut Stage<'_>) {
    const CALLS: usize = 1000;
    let mut host = stage.host();
    let net = &mut *stage.net;
    let (mut running, mut well, mut failed) = (VecDeque::new(), 0, 0);
    let mut count = |answer: &Answer| match answer.0.get("error") {
        None => well += 1,
        Some(error) => {
            let why = error["message"].as_str().unwrap();
            assert!(why.contains("killed by signal 9"), "{why}");
            failed += 1;
        }
    };
    for n in 0..CALLS {
        let arguments = json!({"message": n.to_string()});
        let params = json!({"name": "echo", "arguments": arguments});
        running.push_back(host.request(net, "tools/call", params));
        if n % 50 == 49 {
            // One that runs for certain: the server has answered what came after it.
            running.push_back(host.request(net, "tools/call", json!({"name": "silent"})));
            count(&host.tool(net, "echo", json!({"message": "m"})));
            net.kill_servers();
        }
        while running.len() >= 10 {
            let id = running.pop_front().unwrap();
            count(&host.answer(net, &id));
        }
    }
    for id in running {
        count(&host.answer(net, &id));
    }
    assert_eq!(well + failed, CALLS + 2 * 20);
    assert!(well >= CALLS - 20 * 10 && failed > 0, "{well} {failed}");
    assert!(host.rest().is_empty());
    // That the last one was killed may be news to the gateway.
    let mut end = || host.tool(net, "echo", json!({"message": "end"}));
    let answer = Some(end()).filter(|answer| answer.0.get("error").is_none());
    assert_eq!(answer.unwrap_or_else(end).text(), "end");
    // The one that lives is all that is left.
    assert_eq!(net.kill_servers(), 1);
}

pub(crate) fn noisy_server(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    assert_eq!(host.tool(net, "noise", json!({})).text(), "heard");
    assert_eq!(host.tool(net, "twice", json!({})).text(), "once");
    assert_eq!(host.tool(net, "stranger", json!({})).text(), "yours");
    assert_eq!(host.tool(net, "echo", json!({"message": "m"})).text(), "m");
    assert!(host.rest().is_empty(), "{:?}", host.rest());
}

/// A request that is never answered can be cancelled, and everything else goes
/// on.
pub(crate) fn silent_server(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    let id = host.request(net, "tools/call", json!({"name": "silent"}));
    assert_eq!(host.tool(net, "echo", json!({"message": "m"})).text(), "m");
    host.cancel(net, &id, None);
    assert_eq!(host.tool(net, "echo", json!({"message": "n"})).text(), "n");
    assert!(host.take_answer(&id).is_none());
}

/// A modern host before a legacy server notices nothing.
pub(crate) fn other_era(stage: &mut Stage<'_>) {
    let mut host = stage.stranger();
    let net = &mut *stage.net;
    assert!(host.begin(net).0.get("error").is_none());
    assert_eq!(host.tool(net, "echo", json!({"message": "m"})).text(), "m");
}

pub(crate) fn absent_server(stage: &mut Stage<'_>) {
    let mut host = stage.stranger();
    let net = &mut *stage.net;
    let answer = host.begin(net);
    let why = answer.error()["message"].as_str().unwrap_or_default().to_owned();
    let expected = match stage.upstream {
        Upstream::Missing => "not found",
        Upstream::Refused => "nobody listens",
        _ => "address",
    };
    assert!(why.contains(expected), "{why}");
    if stage.door == Door::Stdio && host.lines().is_empty() {
        return;
    }
    // It may be there the next time.
    if stage.door.is_http() {
        assert!(host.begin(net).0.get("error").is_some());
    }
}

/// A host that goes away in the middle of everything leaves nothing behind that
/// others would notice.
pub(crate) fn vanishing_host(stage: &mut Stage<'_>) {
    for _ in 0..3 {
        let mut host = stage.host();
        let net = &mut *stage.net;
        let count = |n: u64| -> Value {
            json!({
                "name": "count",
                "arguments": {"to": 1000, "delay_ms": 5},
                "_meta": {"progressToken": n},
            })
        };
        for n in 0..3 {
            host.request(net, "tools/call", count(n));
        }
        host.hear(net, "notifications/progress");
        host.vanish(net);
    }
    let mut host = stage.host();
    assert_eq!(host.tool(stage.net, "echo", json!({"message": "m"})).text(), "Echo: m");
}
