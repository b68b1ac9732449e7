//! What takes more than a request and an answer.

use mcpx_core::protocol::revision::Revision;
use mcpx_tests::host::{Answer, Host};
use mcpx_tests::net::Net;
use serde_json::{Value, json};

use crate::stage::Stage;

fn count(to: u32, delay_ms: u32, token: Option<&str>) -> Value {
    let mut params = json!({"name": "count", "arguments": {"to": to, "delay_ms": delay_ms}});
    if let Some(token) = token {
        params["_meta"] = json!({"progressToken": token});
    }
    params
}

pub(crate) fn progress(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    let one = host.request(net, "tools/call", count(3, 2, Some("one")));
    let two = host.request(net, "tools/call", count(4, 2, Some("two")));
    assert_eq!(host.answer(net, &one).text(), "Counted to 3");
    assert_eq!(host.answer(net, &two).text(), "Counted to 4");
    for (token, to) in [("one", 3), ("two", 4)] {
        for n in 1..=to {
            let next = host.take(|message| message["params"]["progressToken"] == token).unwrap();
            assert_eq!(next["params"]["progress"], n, "{next}");
        }
    }
    assert!(host.rest().is_empty());
}

pub(crate) fn cancellation(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    let id = json!("long");
    let own = host.request_as(net, id.clone(), "tools/call", count(1000, 20, Some("t")));
    host.hear(net, "notifications/progress");
    host.cancel(net, &id, own);
    // It takes no more from anybody than the time that this takes.
    assert_eq!(host.tool(net, "echo", json!({"message": "on"})).text(), "Echo: on");
    assert!(host.take_answer(&id).is_none());
    let again = host.request(net, "tools/call", count(2, 1, None));
    assert_eq!(host.answer(net, &again).text(), "Counted to 2");
    assert!(host.take_answer(&id).is_none());
}

/// A long call holds nobody up.
pub(crate) fn nobody_waits(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    let long = host.request(net, "tools/call", count(1000, 1000, None));
    let others: Vec<Value> = (0..20)
        .map(|n| {
            let params = json!({"name": "echo", "arguments": {"message": n.to_string()}});
            host.request(net, "tools/call", params)
        })
        .collect();
    for (n, id) in others.iter().enumerate() {
        assert_eq!(host.answer(net, id).text(), format!("Echo: {n}"));
    }
    assert!(host.take_answer(&long).is_none());
}

pub(crate) fn log_messages(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let modern = stage.is_modern();
    let net = &mut *stage.net;
    let mut params = count(2, 0, None);
    if modern {
        params["_meta"] = json!({"io.modelcontextprotocol/logLevel": "info"});
    } else {
        host.call(net, "logging/setLevel", json!({"level": "info"})).result();
    }
    let id = host.request(net, "tools/call", params);
    host.answer(net, &id).result();
    for text in ["1 of 2", "2 of 2"] {
        let message = host.take(|message| message["method"] == "notifications/message").unwrap();
        assert_eq!(message["params"]["data"], text);
    }
    if modern {
        // Those who do not want to hear any do not.
        let id = host.request(net, "tools/call", count(2, 0, None));
        host.answer(net, &id).result();
    }
    assert!(host.rest().is_empty());
}

/// Calls a tool that asks the host something, which is answered with `reply`.
fn converse(
    host: &mut Host,
    net: &mut dyn Net,
    method: &str,
    mut params: Value,
    reply: Value,
) -> (Value, Answer) {
    let id = host.request(net, "tools/call", params.clone());
    if !host.is_modern() {
        let asked = host.hear(net, method);
        host.reply(net, &asked, reply);
        return (asked["params"].clone(), host.answer(net, &id));
    }
    let required = host.answer(net, &id);
    assert_eq!(required.result()["resultType"], "input_required");
    let (key, asked) =
        required.result()["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(asked["method"], method);
    params["requestState"] = required.result()["requestState"].clone();
    params["inputResponses"] = json!({key: reply});
    (asked["params"].clone(), host.call(net, "tools/call", params))
}

pub(crate) fn elicitation(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    for (reply, expected) in [
        (json!({"action": "accept", "content": {"name": "Ada"}}), "Hello, Ada!"),
        (json!({"action": "decline"}), "The user does not tell."),
    ] {
        let params = json!({"name": "ask", "arguments": {}});
        let (asked, answer) = converse(&mut host, net, "elicitation/create", params, reply);
        assert!(asked["requestedSchema"].is_object());
        assert_eq!(answer.text(), expected);
    }
}

pub(crate) fn sampling(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    let params = json!({"name": "think", "arguments": {"question": "Why?"}});
    let content = json!({"type": "text", "text": "Because."});
    let reply = json!({"role": "assistant", "model": "m", "content": content});
    let (asked, answer) = converse(&mut host, net, "sampling/createMessage", params, reply);
    assert_eq!(asked["messages"][0]["content"]["text"], "Why?");
    assert_eq!(answer.text(), "Because.");
}

pub(crate) fn updates(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let modern = stage.is_modern();
    let net = &mut *stage.net;
    let uri = "demo://counter";
    let (updated, mut own, id) = ("notifications/resources/updated", None, json!("watch"));
    if modern {
        let filter = json!({"notifications": {"resourceSubscriptions": [uri]}});
        own = host.request_as(net, id.clone(), "subscriptions/listen", filter);
        let acknowledged = host.hear(net, "notifications/subscriptions/acknowledged");
        assert_eq!(acknowledged["params"]["notifications"]["resourceSubscriptions"], json!([uri]));
    } else {
        host.listen(net);
        host.call(net, "resources/subscribe", json!({"uri": uri})).result();
    }
    for n in 1..=3 {
        let touched = host.tool(net, "touch", json!({}));
        assert_eq!(touched.text(), format!("The counter is at {n}"));
        let heard = host.hear(net, updated);
        assert_eq!(heard["params"]["uri"], uri);
        let about = &heard["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(*about, if modern { id.clone() } else { Value::Null });
    }
    if modern {
        host.cancel(net, &id, own);
    } else {
        host.call(net, "resources/unsubscribe", json!({"uri": uri})).result();
    }
    host.tool(net, "touch", json!({}));
    host.tool(net, "echo", json!({"message": "after"}));
    if !modern || own.is_some() {
        assert!(host.take(|message| message["method"] == updated).is_none());
    }
}

pub(crate) fn roots(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    let params = json!({"name": "roots", "arguments": {}});
    let reply = json!({"roots": [{"uri": "file:///a"}, {"uri": "file:///b"}]});
    let (_, answer) = converse(&mut host, net, "roots/list", params, reply);
    assert_eq!(answer.text(), "2 roots");
    host.notify(net, "notifications/roots/list_changed", json!({}));
    assert_eq!(host.tool(net, "echo", json!({"message": "m"})).text(), "m");
}

pub(crate) fn changed_lists(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    host.listen(net);
    assert_eq!(host.tool(net, "change", json!({})).text(), "changed");
    host.hear(net, "notifications/tools/list_changed");
    assert!(host.rest().is_empty());
}

/// Hosts use the same ids and tokens, and never hear of each other.
pub(crate) fn strangers_do_not_meet(stage: &mut Stage<'_>) {
    let mut hosts: Vec<Host> = (0..3).map(|_| stage.host()).collect();
    let asks = stage.revision >= Revision::R2025_06_18;
    let net = &mut *stage.net;
    for (n, host) in hosts.iter_mut().enumerate() {
        let to = u32::try_from(n).unwrap() + 2;
        host.request_as(net, json!("same"), "tools/call", count(to, 3, Some("same")));
    }
    for (n, host) in hosts.iter_mut().enumerate() {
        if asks {
            let params = json!({"name": "ask", "arguments": {}});
            let name = format!("host {n}");
            let reply = json!({"action": "accept", "content": {"name": name}});
            let (_, answer) = converse(host, net, "elicitation/create", params, reply);
            assert_eq!(answer.text(), format!("Hello, {name}!"));
        }
    }
    for (n, host) in hosts.iter_mut().enumerate() {
        assert_eq!(host.answer(net, &json!("same")).text(), format!("Counted to {}", n + 2));
        for step in 1..=n + 2 {
            let heard = host.take(|message| message["params"]["progressToken"] == "same").unwrap();
            assert_eq!(heard["params"]["progress"], step);
            assert_eq!(heard["params"]["total"], n + 2);
        }
        assert!(host.rest().is_empty());
    }
}

/// A call that takes long lets go of its connection, and the host comes back for
/// the answer.
pub(crate) fn polling(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    let id = host.request(net, "tools/call", json!({"name": "test_reconnection"}));
    host.settle(net);
    assert!(host.take_answer(&id).is_none());
    let event = host.last_event.take().unwrap();
    host.http(net, "GET", &format!("Last-Event-ID: {event}\r\n"), b"");
    assert_eq!(host.answer(net, &id).text(), "The wait is over");
}
