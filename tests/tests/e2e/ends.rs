//! How conversations, and the gateway, come to an end.

use serde_json::json;

use crate::stage::Stage;

pub(crate) fn deleted_sessions(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    host.listen(net);
    let line = host.http(net, "DELETE", "", b"");
    let status = host.status(net, line);
    assert!(matches!(status, 200 | 202 | 204), "{status}");
    for method in ["POST", "GET", "DELETE"] {
        let body = br#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
        let line = host.http(net, method, "", if method == "POST" { body } else { b"" });
        assert_eq!(host.status(net, line), 404, "{method}");
    }
    // The stream of the session has ended with it.
    while !host.lines().is_empty() {
        net.wait(&host.lines());
        host.pump(net);
    }
    host.session = None;
    assert!(host.begin(net).result()["capabilities"].is_object());
}

pub(crate) fn end_of_input(stage: &mut Stage<'_>) {
    let host = stage.host();
    stage.net.finish(host.line());
    assert_eq!(stage.net.over(), 0);
}

/// What was asked before the end of the input is still answered.
pub(crate) fn end_of_input_in_flight(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    let params = json!({"name": "count", "arguments": {"to": 3, "delay_ms": 5}});
    let id = host.request(net, "tools/call", params);
    net.finish(host.line());
    assert_eq!(host.answer(net, &id).text(), "Counted to 3");
}

pub(crate) fn stop_in_flight(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    let params = json!({
        "name": "count",
        "arguments": {"to": 4, "delay_ms": 30},
        "_meta": {"progressToken": 1},
    });
    let id = host.request(net, "tools/call", params);
    host.hear(net, "notifications/progress");
    net.stop();
    assert_eq!(host.answer(net, &id).text(), "Counted to 4");
    assert_eq!(net.over(), 0);
}

pub(crate) fn stop_while_listening(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    let filter = json!({"notifications": {"resourceSubscriptions": ["demo://counter"]}});
    let id = host.request(net, "subscriptions/listen", filter);
    host.hear(net, "notifications/subscriptions/acknowledged");
    net.stop();
    let answer = host.answer(net, &id);
    let about = &answer.result()["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!((&answer.result()["resultType"], about), (&json!("complete"), &id));
    assert_eq!(net.over(), 0);
}

/// Who asks twice does not want to wait.
pub(crate) fn second_stop(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    let params = json!({
        "name": "count",
        "arguments": {"to": 1000, "delay_ms": 1000},
        "_meta": {"progressToken": 1},
    });
    host.request(net, "tools/call", params);
    host.call(net, "tools/list", json!({})).result();
    net.stop();
    net.stop();
    net.over();
}
