//! Tasks: between peers of one kind, and driven for hosts that do not know them.

use super::*;
use crate::client::probe::Protocol;

const KNOWS: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"h","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

fn before(protocol: Protocol) -> World {
    let place = Place::Process(Command { program: "server".into(), ..Command::default() });
    let endpoint = server::Config {
        listeners: Vec::from([server::Listener::Ndjson]),
        ..server::Config::default()
    };
    let server = Server { protocol, ..Server::new("server", place) };
    World::with(Config::new(server, endpoint))
}

fn pass(world: &mut World, time: Duration) {
    world.now = world.now + time;
    world.handle(Input::Tick);
}

#[test]
fn tsk_05_tsk_08_a_task_has_an_id_of_ours_which_is_good_for_its_host_alone() {
    let mut world = World::new();
    let (host, server) =
        world.modern_with(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#);
    let other = world.host();
    let request = |id: u32, method: &str, params: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params},{KNOWS}}}}}"#
        )
    };
    world.say(host, &request(1, "tools/call", r#""name":"n""#));
    let call = world
        .reply(server, r#"{"resultType":"task","taskId":"t","status":"working","ttlMs":null}"#);
    assert!(call.contains(r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#), "{call}");
    let created = world.hear(host);
    let id = get_path(&created, &["result", "taskId"]).unwrap().to_string();
    assert!(id.len() > 40, "{created}");
    assert_eq!(get_path(&created, &["result", "resultType"]), Some(r#""task""#));
    let about = format!(r#""taskId":{id}"#);
    for (n, method) in [(2, "tasks/get"), (3, "tasks/cancel")] {
        world.say(host, &request(n, method, &about));
        let asked = world.reply(server, r#"{"taskId":"t","status":"working"}"#);
        assert_eq!(get_path(&asked, &["params", "taskId"]), Some(r#""t""#));
        // The same task has the same id.
        assert_eq!(get_path(&world.hear(host), &["result", "taskId"]), Some(&*id));
    }
    for (who, params) in [(other, about.as_str()), (host, r#""taskId":"t""#)] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            world.say(who, &request(9, method, params));
            let refused = world.hear(who);
            assert_eq!(get_path(&refused, &["error", "code"]), Some("-32602"), "{refused}");
        }
    }
    assert!(world.silent(server));
    let undeclared = request(10, "tasks/get", &about).replace(KNOWS, META);
    world.say(host, &undeclared);
    assert_eq!(get_path(&world.hear(host), &["error", "code"]), Some("-32021"));
    // Subscriptions name them in the same way.
    let wanted = format!(r#""notifications":{{"taskIds":[{id},"t"]}}"#);
    world.say(host, &request(4, "subscriptions/listen", &wanted));
    let listen = world.hear(server);
    assert_eq!(get_path(&listen, &["params", "notifications", "taskIds"]), Some(r#"["t"]"#));
    let tag = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}"#, id_of(&listen));
    world.say(server, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{"taskIds":["t"]}},{tag}}}}}"#));
    let told = world.hear(host);
    assert_eq!(get_path(&told, &["params", "notifications", "taskIds"]), Some(&*format!("[{id}]")));
    world.say(server, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/tasks","params":{{"taskId":"t","status":"completed",{tag}}}}}"#));
    assert_eq!(get_path(&world.hear(host), &["params", "taskId"]), Some(&*id));
}

/// A legacy host before a modern server that makes tasks, and its call.
fn errand() -> (World, ConnId, ConnId) {
    let mut world = before(Protocol::Modern);
    let host = world.host();
    world.say(host, r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{}}}"#);
    let server = *world.spawned.last().unwrap();
    world.reply(server,
        r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#,
    );
    let welcome = world.hear(host);
    assert!(!welcome.contains("tasks"), "{welcome}");
    world.say(
        host,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"n","task":{}}}"#,
    );
    let call = world.reply(
        server,
        r#"{"resultType":"task","taskId":"t","status":"working","pollIntervalMs":500}"#,
    );
    assert!(call.contains(r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#), "{call}");
    assert!(world.silent(host));
    (world, host, server)
}

#[test]
fn lm_tasks_of_a_modern_server_are_waited_for_and_answered_once() {
    let (mut world, host, server) = errand();
    assert!(world.silent(server));
    pass(&mut world, Duration::from_millis(500));
    let asked = world.reply(server, r#"{"taskId":"t","status":"working"}"#);
    assert_eq!(
        (get(&asked, "method"), get_path(&asked, &["params", "taskId"])),
        (Some(r#""tasks/get""#), Some(r#""t""#))
    );
    // As it says nothing else, a second from now.
    pass(&mut world, Duration::from_millis(500));
    assert!(world.silent(server));
    pass(&mut world, Duration::from_millis(501));
    let wanted = r#"{"taskId":"t","status":"input_required","pollIntervalMs":200,"inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{}}}}}"#;
    world.reply(server, wanted);
    let question = world.hear(host);
    let id = id_of(&question);
    world.say(
        host,
        &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept","content":{{}}}}}}"#),
    );
    let update = world.reply(server, "{}");
    assert_eq!(get(&update, "method"), Some(r#""tasks/update""#));
    assert_eq!(
        get_path(&update, &["params", "inputResponses", "k", "action"]),
        Some(r#""accept""#)
    );
    // What was asked is not asked again.
    pass(&mut world, Duration::from_millis(201));
    world.reply(server, wanted);
    assert!(world.silent(host));
    pass(&mut world, Duration::from_millis(201));
    let done = r#"{"taskId":"t","status":"completed","result":{"content":[],"resultType":"complete","isError":false}}"#;
    world.reply(server, done);
    let answer = world.hear(host);
    assert_eq!(get(&answer, "result"), Some(r#"{"content":[],"isError":false}"#));
    assert_eq!(
        world.gateway.remembered().into_iter().collect::<Vec<_>>(),
        ["sessions before a modern server"]
    );
}

#[test]
fn tsk_07_lm_a_task_that_fails_is_an_error_and_one_that_is_cancelled_a_failed_call() {
    for (outcome, expected) in [
        (r#"{"status":"failed","error":{"code":-32603,"message":"no luck"}}"#, r#""code":-32603"#),
        (r#"{"status":"cancelled"}"#, r#""isError":true"#),
        (r#"{"status":"completed","result":{"isError":true,"content":[]}}"#, r#""isError":true"#),
    ] {
        let (mut world, host, server) = errand();
        pass(&mut world, Duration::from_millis(500));
        world.reply(server, outcome);
        let answer = world.hear(host);
        assert!(answer.contains(expected), "{answer}");
        pass(&mut world, Duration::from_secs(60));
        assert!(world.silent(server));
    }
}

#[test]
fn can_09_lm_a_call_that_is_cancelled_cancels_its_task() {
    let (mut world, host, server) = errand();
    world.say(
        host,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    let asked = world.hear(server);
    assert_eq!(
        (get(&asked, "method"), get_path(&asked, &["params", "taskId"])),
        (Some(r#""tasks/cancel""#), Some(r#""t""#))
    );
    pass(&mut world, Duration::from_secs(60));
    assert!(world.silent(server) && world.silent(host));
}

const LEGACY: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{}}"#;

/// A host before a legacy server that wants a call to be a task: the call, as a task.
fn driven(params: &str, session: bool) -> (World, ConnId, ConnId, String) {
    let mut world = before(Protocol::Legacy);
    let host = world.host();
    if session {
        world.say(host, r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{}}}"#);
        let server = *world.spawned.last().unwrap();
        world.reply(server, LEGACY);
        let welcome = world.hear(host);
        assert!(!welcome.contains("tasks"), "{welcome}");
    }
    world.say(
        host,
        &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#),
    );
    let server = *world.spawned.last().unwrap();
    if !session {
        world.reply(server, LEGACY);
        assert!(world.hear(server).contains("notifications/initialized"));
    }
    let asked = world.hear(server);
    assert_eq!(get_path(&asked, &["params", "task"]), None);
    world.say(
        server,
        &format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32601,"message":"as a task"}}}}"#,
            id_of(&asked)
        ),
    );
    let again = world.hear(server);
    assert_eq!(get_path(&again, &["params", "task"]), Some("{}"));
    assert_eq!(get_path(&again, &["params", "name"]), Some(r#""n""#));
    world.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"task":{{"taskId":"t","status":"working"}}}}}}"#, id_of(&again)));
    (world, host, server, again)
}

#[test]
fn tsk_01_ml_ll_tools_that_must_be_tasks_are_and_answer_once() {
    let modern = format!(
        r#"{{"name":"n",{}"#,
        META.replace("\"_meta\":{", "\"_meta\":{\"progressToken\":\"p\",")
    ) + "}";
    let legacy = r#"{"name":"n","_meta":{"progressToken":"p"}}"#;
    for (params, session) in [(modern.as_str(), false), (legacy, true)] {
        let (mut world, host, server, again) = driven(params, session);
        let token = get_path(&again, &["params", "_meta", "progressToken"]).unwrap();
        assert_eq!(token, id_of(&again));
        // The token lives as long as the task (PRG-06).
        world.say(server, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#));
        assert_eq!(get_path(&world.hear(host), &["params", "progressToken"]), Some(r#""p""#));
        let asked = world.reply(server, r#"{"content":[],"isError":false}"#);
        assert_eq!(
            (get(&asked, "method"), get_path(&asked, &["params", "taskId"])),
            (Some(r#""tasks/result""#), Some(r#""t""#))
        );
        let answer = world.hear(host);
        assert_eq!(get(&answer, "id"), Some("1"));
        assert_eq!(get_path(&answer, &["result", "isError"]), Some("false"));
        assert!(world.silent(host) && world.only().routes.is_empty());
    }
}

#[test]
fn can_09_ml_a_call_that_is_cancelled_cancels_its_task() {
    let params = format!(r#"{{"name":"n",{META}}}"#);
    let (mut world, host, server, _) = driven(&params, false);
    assert!(world.hear(server).contains("tasks/result"));
    world.say(
        host,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    let told: Vec<String> = core::mem::take(world.lines.get_mut(&server).unwrap());
    assert!(told[0].contains("notifications/cancelled"), "{told:?}");
    assert_eq!(get(&told[1], "method"), Some(r#""tasks/cancel""#));
    assert_eq!(get_path(&told[1], &["params", "taskId"]), Some(r#""t""#));
    assert!(world.silent(host));
}

#[test]
fn tsk_02_ll_hosts_of_2025_11_25_have_the_tasks_of_their_server() {
    let mut world = before(Protocol::Legacy);
    let host = world.host();
    world.say(host, INITIALIZE);
    let server = *world.spawned.last().unwrap();
    world.reply(server, LEGACY);
    assert!(world.hear(host).contains(r#""tasks":{"requests""#));
    for (id, method, params, result) in [
        (1, "tools/call", r#"{"name":"n","task":{"ttl":5}}"#, r#"{"task":{"taskId":"t"}}"#),
        (2, "tasks/get", r#"{"taskId":"t"}"#, r#"{"taskId":"t","status":"working"}"#),
        (3, "tasks/result", r#"{"taskId":"t"}"#, r#"{"content":[]}"#),
        (4, "tasks/cancel", r#"{"taskId":"t"}"#, r#"{"taskId":"t"}"#),
    ] {
        world.say(
            host,
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#),
        );
        assert_eq!(get(&world.reply(server, result), "params"), Some(params));
        assert_eq!(get(&world.hear(host), "result"), Some(result));
    }
    // It says itself which tools must be.
    world.say(host, r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"n"}}"#);
    let id = id_of(&world.hear(server));
    world.say(
        server,
        &format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"as a task"}}}}"#
        ),
    );
    assert_eq!(get_path(&world.hear(host), &["error", "code"]), Some("-32601"));
}
