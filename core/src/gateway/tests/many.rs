//! Several servers as one.

use super::*;
use crate::driver::Target;
use crate::gateway::{Catalogue, Expose, Filter, Naming, Prefix, View};
use crate::jsonrpc::elements;

/// What a server of these tests is: it answers what a host does not see by itself, and
/// leaves the rest to the test.
struct Kind {
    modern: bool,
    tools: Vec<&'static str>,
    /// Whether it takes two pages for them.
    paged: bool,
    resources: Vec<&'static str>,
}

fn kind(modern: bool, tools: &[&'static str], resources: &[&'static str]) -> Kind {
    Kind { modern, tools: tools.to_vec(), paged: false, resources: resources.to_vec() }
}

const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{},"logging":{},"completions":{}}"#;

/// A gateway before servers.
struct Many {
    world: World,
    kinds: BTreeMap<String, Kind>,
    sent: u32,
    /// What they were asked that they answered by themselves.
    heard: Vec<String>,
}

impl Many {
    fn new(kinds: Vec<(&str, Kind)>) -> Self {
        Self::with(kinds, Catalogue::default(), |_, server| server)
    }

    fn with(
        kinds: Vec<(&str, Kind)>,
        catalogue: Catalogue,
        change: impl Fn(&str, Server) -> Server,
    ) -> Self {
        let servers = kinds.iter().map(|(name, _)| change(name, server(name))).collect();
        let endpoint = server::Config {
            listeners: Vec::from([server::Listener::Ndjson]),
            ..server::Config::default()
        };
        let config = Config { catalogue, ..Config::of(servers, endpoint) };
        let kinds = kinds.into_iter().map(|(name, kind)| (name.to_string(), kind)).collect();
        Self { world: World::with(config), kinds, sent: 0, heard: Vec::new() }
    }

    /// Has the servers answer what they answer by themselves.
    fn settle(&mut self) {
        while let Some((conn, line, answer)) = self.next_answer() {
            let lines = self.world.lines.get_mut(&conn).unwrap();
            lines.remove(lines.iter().position(|it| *it == line).unwrap());
            self.heard.push(line);
            if let Some(answer) = answer {
                self.world.say(conn, &answer);
            }
        }
    }

    fn next_answer(&self) -> Option<(ConnId, String, Option<String>)> {
        for (conn, program) in &self.world.programs {
            let Some(kind) = self.kinds.get(program) else { continue };
            for line in self.world.lines.get(conn).into_iter().flatten() {
                if let Some(answer) = kind.answer(line) {
                    return Some((*conn, line.clone(), answer));
                }
            }
        }
        None
    }

    /// The newest connection to a server that got something the test has to answer.
    fn server(&self, name: &str) -> ConnId {
        let all = self.world.programs.iter().rev();
        let mut asked = all.filter(|(conn, program)| {
            *program == name && self.world.lines.get(conn).is_some_and(|lines| !lines.is_empty())
        });
        *asked.next().unwrap_or_else(|| panic!("{name} was asked nothing")).0
    }

    /// A legacy host whose session has begun.
    fn guest(&mut self) -> ConnId {
        let host = self.world.host();
        self.world.say(host, r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"h","version":"1"}}}"#);
        self.settle();
        let answer = self.world.hear(host);
        assert!(answer.contains("\"capabilities\""), "{answer}");
        self.world.say(host, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        host
    }

    /// What a host gets for a request.
    fn ask(&mut self, host: ConnId, method: &str, params: &str) -> String {
        self.send(host, method, params);
        self.settle();
        self.world.hear(host)
    }

    fn send(&mut self, host: ConnId, method: &str, params: &str) {
        self.sent += 1;
        let id = self.sent;
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.world.say(host, &line);
    }

    /// Answers what a server was asked last.
    fn reply(&mut self, name: &str, result: &str) -> String {
        let conn = self.server(name);
        self.world.reply(conn, result)
    }

    fn pass(&mut self, time: Duration) {
        let until = self.world.now + time;
        while let Some(at) = self.world.gateway.deadline().filter(|at| *at <= until) {
            self.world.now = self.world.now.max(at);
            self.world.handle(Input::Tick);
            self.settle();
        }
        self.world.now = until;
    }
}

impl Kind {
    /// What it answers: nothing by itself, or nothing at all.
    fn answer(&self, line: &str) -> Option<Option<String>> {
        let method = get(line, "method")?.trim_matches('"').to_string();
        let id = get(line, "id");
        let asked_modern = line.contains("io.modelcontextprotocol/protocolVersion");
        let result = match method.as_str() {
            "server/discover" if self.modern => format!(
                r#"{{"supportedVersions":["2026-07-28"],"capabilities":{CAPABILITIES},"instructions":"modern ones"}}"#
            ),
            "initialize" if !self.modern => format!(
                r#"{{"protocolVersion":"2025-11-25","capabilities":{CAPABILITIES},"serverInfo":{{}},"instructions":"legacy ones"}}"#
            ),
            "server/discover" | "initialize" => {
                let error = r#"{"code":-32601,"message":"no"}"#;
                return Some(Some(format!(
                    r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#,
                    id.unwrap()
                )));
            }
            "tools/list" => {
                let tool = |name: &&str| {
                    format!(r#"{{"name":"{name}","description":"{name}s","inputSchema":{{}}}}"#)
                };
                let tools: Vec<String> = self.tools.iter().map(tool).collect();
                match (self.paged, get_path(line, &["params", "cursor"])) {
                    (true, None) => format!(r#"{{"tools":[{}],"nextCursor":""}}"#, tools[0]),
                    (true, Some(_)) => format!(r#"{{"tools":[{}]}}"#, tools[1..].join(",")),
                    _ => format!(r#"{{"tools":[{}],"ttlMs":60000}}"#, tools.join(",")),
                }
            }
            "resources/list" => {
                let resource = |uri: &&str| format!(r#"{{"uri":"{uri}","name":"n"}}"#);
                let all: Vec<String> =
                    self.resources.iter().filter(|it| !it.contains('{')).map(resource).collect();
                format!(r#"{{"resources":[{}]}}"#, all.join(","))
            }
            "resources/templates/list" => {
                let template = |uri: &&str| format!(r#"{{"uriTemplate":"{uri}","name":"n"}}"#);
                let all: Vec<String> =
                    self.resources.iter().filter(|it| it.contains('{')).map(template).collect();
                format!(r#"{{"resourceTemplates":[{}]}}"#, all.join(","))
            }
            "prompts/list" => r#"{"prompts":[{"name":"greet"}]}"#.into(),
            "logging/setLevel" => "{}".into(),
            "notifications/initialized" => return Some(None),
            // Our own; those of hosts are about resources.
            "subscriptions/listen" if line.contains("ListChanged") => return Some(None),
            _ => return None,
        };
        assert_eq!(asked_modern, self.modern, "{line}");
        Some(Some(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.unwrap())))
    }
}

fn server(name: &str) -> Server {
    Server::new(name, Place::Process(Command { program: name.into(), ..Command::default() }))
}

fn two() -> Many {
    Many::new(Vec::from([
        ("old", kind(false, &["read", "old.only"], &["file:///a", "memo:{id}"])),
        ("new", kind(true, &["read", "write"], &["file:///b", "urn:x"])),
    ]))
}

/// The members of this name of what is in a list.
fn each(answer: &str, list: &str, member: &str) -> Vec<String> {
    let all = get_path(answer, &["result", list]).unwrap_or_else(|| panic!("{answer}"));
    elements(all).map(|it| get(it, member).unwrap().trim_matches('"').to_string()).collect()
}

fn modern(params: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    format!("{{{params}{comma}{META}}}")
}

#[test]
fn hosts_see_one_catalogue() {
    let mut many = two();
    let host = many.world.host();
    let answer = many.ask(host, "server/discover", &modern(""));
    let found = get(&answer, "result").unwrap();
    assert_eq!(get(found, "supportedVersions"), Some(r#"["2026-07-28"]"#));
    assert_eq!(
        get(found, "instructions"),
        Some(r##""# old\n\nlegacy ones\n\n# new\n\nmodern ones""##)
    );
    assert_eq!(
        get(found, "capabilities"),
        Some(
            r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{},"completions":{}}"#
        )
    );
    let answer = many.ask(host, "tools/list", &modern(""));
    let names = each(&answer, "tools", "name");
    assert_eq!(names[0], "old__read");
    assert!(names[1].starts_with("old__old_only_") && names[1].len() == 22, "{names:?}");
    assert_eq!(names[2..], ["new__read", "new__write"]);
    // The list of a legacy server may change at any time.
    assert_eq!(get_path(&answer, &["result", "ttlMs"]), Some("0"));
    assert_eq!(get_path(&answer, &["result", "cacheScope"]), Some(r#""private""#));
    let guest = many.guest();
    let answer = many.ask(guest, "tools/list", "{}");
    assert_eq!(each(&answer, "tools", "name"), names);
    assert_eq!(get_path(&answer, &["result", "ttlMs"]), None);
    let answer = many.ask(guest, "prompts/list", "{}");
    assert_eq!(each(&answer, "prompts", "name"), ["old__greet", "new__greet"]);
    let answer = many.ask(guest, "resources/list", "{}");
    assert_eq!(each(&answer, "resources", "uri"), ["file:///a", "file:///b", "urn:x"]);
    // Nobody was asked twice.
    assert_eq!(many.world.spawned.len(), 3);
}

#[test]
fn requests_go_to_the_server_whose_name_they_have() {
    let mut many = two();
    let host = many.guest();
    let answer = many.ask(host, "tools/list", "{}");
    let odd = each(&answer, "tools", "name")[1].clone();
    for (method, params, name, own) in [
        ("tools/call", r#"{"name":"new__write"}"#.to_string(), "new", r#""name":"write""#),
        ("tools/call", r#"{"name":"old__read"}"#.to_string(), "old", r#""name":"read""#),
        ("tools/call", format!(r#"{{"name":"{odd}"}}"#), "old", r#""name":"old.only""#),
        // Nobody lists it, but that is what it would be called.
        ("tools/call", r#"{"name":"new__secret"}"#.to_string(), "new", r#""name":"secret""#),
        ("prompts/get", r#"{"name":"new__greet"}"#.to_string(), "new", r#""name":"greet""#),
        ("resources/read", r#"{"uri":"file:///b"}"#.to_string(), "new", "file:///b"),
        ("resources/read", r#"{"uri":"memo:7"}"#.to_string(), "old", "memo:7"),
        ("resources/read", r#"{"uri":"urn:y"}"#.to_string(), "new", "urn:y"),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"old__greet"}}"#.to_string(),
            "old",
            r#""name":"greet""#,
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/resource","uri":"memo:{id}"}}"#.to_string(),
            "old",
            "memo:{id}",
        ),
    ] {
        many.send(host, method, &params);
        many.settle();
        let asked = many.reply(name, r#"{"x":1}"#);
        assert!(asked.contains(own) && asked.contains(method), "{params}: {asked}");
        let answer = many.world.hear(host);
        assert_eq!(get_path(&answer, &["result", "x"]), Some("1"), "{answer}");
    }
    for (method, params, code) in [
        ("tools/call", r#"{"name":"read"}"#, "-32602"),
        ("tools/call", "{}", "-32602"),
        ("resources/read", r#"{"uri":"file:///c"}"#, "-32002"),
        ("resources/read", r#"{"uri":"http://x/"}"#, "-32002"),
        ("tasks/list", "{}", "-32601"),
    ] {
        let answer = many.ask(host, method, params);
        assert_eq!(get_path(&answer, &["error", "code"]), Some(code), "{params}: {answer}");
    }
}

#[test]
fn pages_are_read_to_their_end_and_given_with_cursors_of_our_own() {
    let mut first = kind(false, &["a", "b", "c"], &[]);
    first.paged = true;
    let catalogue = Catalogue { page: 2, ..Catalogue::default() };
    let kinds = Vec::from([("p", first), ("q", kind(true, &["d"], &[]))]);
    let mut many = Many::with(kinds, catalogue, |_, server| server);
    let host = many.guest();
    let answer = many.ask(host, "tools/list", "{}");
    assert_eq!(each(&answer, "tools", "name"), ["p__a", "p__b"]);
    let cursor = get_path(&answer, &["result", "nextCursor"]).unwrap().to_string();
    let next = format!(r#"{{"cursor":{cursor}}}"#);
    let answer = many.ask(host, "tools/list", &next);
    assert_eq!(each(&answer, "tools", "name"), ["p__c", "q__d"]);
    assert_eq!(get_path(&answer, &["result", "nextCursor"]), None);
    // Not of this list, of nobody's, of what is not there any more.
    for (method, params) in [
        ("prompts/list", next.as_str()),
        ("tools/list", r#"{"cursor":"x"}"#),
        ("tools/list", r#"{"cursor":1}"#),
    ] {
        let answer = many.ask(host, method, params);
        assert_eq!(get_path(&answer, &["error", "code"]), Some("-32602"), "{answer}");
    }
    many.kinds.get_mut("q").unwrap().tools.push("e");
    let notice = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let link = many.world.programs.iter().find(|(_, program)| *program == "p").unwrap();
    let link = *link.0;
    many.kinds.get_mut("p").unwrap().tools[1] = "B";
    many.world.say(link, notice);
    many.settle();
    let answer = many.ask(host, "tools/list", &next);
    assert_eq!(get_path(&answer, &["error", "code"]), Some("-32602"), "{answer}");
}

#[test]
fn a_server_that_does_not_come_up_blocks_nobody() {
    let mut many = two();
    let new = many.kinds.remove("new").unwrap();
    let host = many.world.host();
    many.send(host, "tools/list", &modern(""));
    many.settle();
    assert!(many.world.silent(host), "there is still hope");
    many.pass(Duration::from_secs(6));
    let answer = many.world.hear(host);
    assert_eq!(each(&answer, "tools", "name").len(), 2);
    assert_eq!(each(&many.ask(host, "tools/list", &modern("")), "tools", "name").len(), 2);
    // When it is there, hosts are told.
    let listen = r#""notifications":{"toolsListChanged":true}"#;
    let told = many.ask(host, "subscriptions/listen", &modern(listen));
    assert!(told.contains("acknowledged"), "{told}");
    many.kinds.insert("new".into(), new);
    many.settle();
    many.pass(Duration::from_secs(1));
    let told = many.world.hear(host);
    assert!(told.contains("tools/list_changed") && told.contains("subscriptionId"), "{told}");
    assert_eq!(each(&many.ask(host, "tools/list", &modern("")), "tools", "name").len(), 4);
}

#[test]
fn a_server_that_dies_keeps_its_place_and_is_started_again() {
    let mut many = two();
    let host = many.guest();
    assert_eq!(each(&many.ask(host, "tools/list", "{}"), "tools", "name").len(), 4);
    let conns: Vec<ConnId> = many.world.programs.keys().copied().collect();
    many.pass(Duration::from_secs(5));
    for conn in conns {
        many.world.lines.remove(&conn);
        many.world.handle(Input::Exited { conn, status: ExitStatus::Code(1) });
    }
    many.kinds.get_mut("old").unwrap().tools = Vec::from(["other"]);
    assert_eq!(each(&many.ask(host, "tools/list", "{}"), "tools", "name").len(), 4);
    many.pass(Duration::from_secs(3));
    let told = many.world.hear(host);
    assert!(told.contains("tools/list_changed"), "{told}");
    assert!(many.world.silent(host));
    let answer = many.ask(host, "tools/list", "{}");
    assert_eq!(each(&answer, "tools", "name"), ["old__other", "new__read", "new__write"]);
    many.send(host, "tools/call", r#"{"name":"old__other"}"#);
    many.settle();
    many.reply("old", "{}");
    assert!(many.world.hear(host).contains("result"));
}

#[test]
fn a_session_takes_what_it_has_set_to_each_server() {
    let mut many = two();
    let host = many.guest();
    let answer = many.ask(host, "logging/setLevel", r#"{"level":"error"}"#);
    assert!(answer.contains("result"), "{answer}");
    let wrong = many.ask(host, "logging/setLevel", r#"{"level":"loud"}"#);
    assert_eq!(get_path(&wrong, &["error", "code"]), Some("-32602"));
    many.ask(host, "tools/list", "{}");
    many.kinds.get_mut("old").unwrap().tools.clear();
    // A modern server hears it with each request.
    many.send(host, "tools/call", r#"{"name":"new__write"}"#);
    many.settle();
    many.send(host, "tools/call", r#"{"name":"old__read"}"#);
    let link = *many.world.programs.keys().next_back().unwrap();
    let begun = many.world.lines.get(&link).unwrap().join("\n");
    assert!(begun.contains("\"initialize\"") && begun.contains("\"elicitation\""), "{begun}");
    let id = id_of(&many.world.hear(link));
    many.world.say(link, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}"#));
    assert!(many.world.hear(link).contains("notifications/initialized"));
    assert!(many.world.hear(link).contains(r#"{"level":"error"}"#));
    many.reply("old", "{}");
    assert!(many.world.hear(host).contains("result"));
    let conn = many.server("new");
    let lines = many.world.lines.get(&conn).unwrap();
    let call = lines.iter().find(|line| line.contains("tools/call")).unwrap();
    assert!(call.contains(r#""io.modelcontextprotocol/logLevel":"error""#), "{call}");
}

#[test]
fn a_question_goes_to_the_host_whose_call_it_is_about_and_says_who_asks() {
    let mut many = two();
    let (a, b) = (many.guest(), many.guest());
    for host in [a, b] {
        many.send(host, "tools/call", r#"{"name":"old__read"}"#);
        many.settle();
    }
    let conn = many.server("old");
    assert!(many.world.hear(conn).contains("tools/call"));
    many.world.say(conn, r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"name?","requestedSchema":{}}}"#);
    assert!(many.world.silent(a));
    let question = many.world.hear(b);
    assert_eq!(get_path(&question, &["params", "message"]), Some(r#""[old] name?""#));
    let id = id_of(&question);
    many.world.say(b, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"cancel"}}}}"#));
    assert!(many.world.hear(conn).contains("cancel"));
}

#[test]
fn what_is_listened_to_has_a_part_at_each_server() {
    let mut many = two();
    let host = many.world.host();
    many.ask(host, "resources/list", &modern(""));
    let wanted = r#""notifications":{"promptsListChanged":true,"resourceSubscriptions":["file:///a","file:///b","http://nobody/"]}"#;
    many.send(host, "subscriptions/listen", &modern(wanted));
    many.settle();
    let old = many.server("old");
    let asked = many.reply("old", "{}");
    assert!(asked.contains("resources/subscribe") && asked.contains("file:///a"), "{asked}");
    assert!(many.world.silent(host));
    let conn = many.server("new");
    let part = many.world.hear(conn);
    assert_eq!(
        get_path(&part, &["params", "notifications"]),
        Some(r#"{"resourceSubscriptions":["file:///b"]}"#)
    );
    let tag = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}"#, id_of(&part));
    // What comes before the acknowledgement is kept back.
    let updated = |uri: &str, more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"{more}}}}}"#
        )
    };
    many.world.say(old, &updated("file:///a", ""));
    assert!(many.world.silent(host));
    many.world.say(conn, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{"resourceSubscriptions":["file:///b"]}},{tag}}}}}"#));
    let told = many.world.hear(host);
    assert_eq!(
        get_path(&told, &["params", "notifications"]),
        Some(r#"{"promptsListChanged":true,"resourceSubscriptions":["file:///a","file:///b"]}"#)
    );
    let path = ["params", "_meta", "io.modelcontextprotocol/subscriptionId"];
    assert_eq!(get_path(&told, &path), Some("2"));
    assert!(many.world.hear(host).contains("file:///a"));
    many.world.say(conn, &updated("file:///b", &format!(",{tag}")));
    let told = many.world.hear(host);
    assert!(told.contains("file:///b"), "{told}");
    assert_eq!(get_path(&told, &path), Some("2"));
    // The end of one part is not the end of all.
    many.world.say(conn, &format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, id_of(&part)));
    assert!(many.world.silent(host));
    many.world.say(old, &updated("file:///a", ""));
    assert!(many.world.hear(host).contains("file:///a"));
    many.world.handle(Input::Stop);
    assert!(many.world.hear(host).contains(r#""resultType":"complete""#));
    assert!(many.world.silent(host));
}

#[test]
fn a_server_that_ends_our_subscription_is_listened_to_again() {
    let mut many = two();
    let host = many.guest();
    many.ask(host, "tools/list", "{}");
    let conn = *many.world.programs.iter().find(|(_, it)| *it == "new").unwrap().0;
    let listens = |many: &Many| many.heard.iter().filter(|it| it.contains("/listen")).count();
    assert_eq!(listens(&many), 1);
    let listen = many.heard.iter().find(|line| line.contains("/listen")).unwrap();
    let id = id_of(listen);
    many.world.say(conn, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#));
    many.kinds.get_mut("new").unwrap().tools.push("third");
    many.pass(Duration::from_secs(2));
    assert_eq!(listens(&many), 2);
    assert!(many.world.hear(host).contains("tools/list_changed"));
    assert_eq!(each(&many.ask(host, "tools/list", "{}"), "tools", "name").len(), 5);
}

#[test]
fn views_hide_rename_and_describe() {
    let view = View {
        tools: Filter {
            deny: Vec::from(["w*".into()]),
            alias: [("read".into(), "open".into())].into(),
            describe: [("read".into(), "Opens \"it\".".into())].into(),
            ..Filter::default()
        },
        resources: Filter { allow: Vec::from(["urn:*".into()]), ..Filter::default() },
        ..View::default()
    };
    let naming = Naming { prefix: Prefix::OnConflict, separator: "-".into() };
    let catalogue = Catalogue { naming, ..Catalogue::default() };
    let kinds = Vec::from([
        ("old", kind(false, &["read"], &[])),
        ("new", kind(true, &["read", "write"], &["file:///b", "urn:x"])),
    ]);
    let mut many = Many::with(kinds, catalogue, |name, server| match name {
        "new" => Server { view: view.clone(), ..server },
        _ => server,
    });
    let host = many.guest();
    let answer = many.ask(host, "tools/list", "{}");
    assert_eq!(each(&answer, "tools", "name"), ["read", "open"]);
    assert_eq!(each(&answer, "tools", "description"), ["reads", r#"Opens \"it\"."#]);
    let answer = many.ask(host, "resources/list", "{}");
    assert_eq!(each(&answer, "resources", "uri"), ["urn:x"]);
    for (method, params) in [
        ("tools/call", r#"{"name":"write"}"#),
        ("tools/call", r#"{"name":"new-write"}"#),
        ("resources/read", r#"{"uri":"file:///b"}"#),
        ("resources/subscribe", r#"{"uri":"file:///b"}"#),
    ] {
        let answer = many.ask(host, method, params);
        assert!(answer.contains("Unknown"), "{params}: {answer}");
    }
}

#[test]
fn a_search_finds_what_its_twin_calls() {
    let catalogue = Catalogue { expose: Expose::Search, ..Catalogue::default() };
    let kinds = Vec::from([("only", kind(true, &["read_file", "write_file"], &[]))]);
    let mut many = Many::with(kinds, catalogue, |_, server| server);
    let host = many.world.host();
    let call = |name: &str, arguments: &str| {
        modern(&format!(r#""name":"{name}","arguments":{arguments}"#))
    };
    let answer = many.ask(host, "tools/call", &call("mcpx_search", r#"{"query":"file WRITE"}"#));
    let found = get_path(&answer, &["result", "content"]).unwrap();
    assert!(found.find("write_file").unwrap() < found.find("read_file").unwrap(), "{found}");
    let answer = many.ask(host, "tools/list", &modern(""));
    assert_eq!(each(&answer, "tools", "name"), ["mcpx_search", "mcpx_call"]);
    many.send(
        host,
        "tools/call",
        &call("mcpx_call", r#"{"name":"read_file","arguments":{"p":1}}"#),
    );
    let asked = many.reply("only", "{}");
    assert_eq!(get_path(&asked, &["params", "name"]), Some(r#""read_file""#));
    assert_eq!(get_path(&asked, &["params", "arguments"]), Some(r#"{"p":1}"#));
    assert!(many.world.hear(host).contains("complete"));
    let answer = many.ask(host, "tools/call", &call("mcpx_call", "{}"));
    assert!(answer.contains("arguments.name is missing"), "{answer}");
}

#[test]
fn servers_come_and_go_while_hosts_stay() {
    let mut many = Many::new(Vec::from([("a", kind(false, &["x"], &[]))]));
    let host = many.guest();
    let before = many.world.spawned.len();
    assert_eq!(each(&many.ask(host, "tools/list", "{}"), "tools", "name"), ["x"]);
    let configure = |many: &mut Many, names: &[&str]| {
        let servers = names.iter().map(|name| server(name)).collect();
        many.world.gateway.configure(many.world.now, servers, Catalogue::default());
        many.world.handle(Input::Tick);
        many.settle();
        many.pass(Duration::from_millis(200));
    };
    many.kinds.insert("b".into(), kind(true, &["x"], &["r:1"]));
    configure(&mut many, &["a", "b"]);
    let answer = many.ask(host, "tools/list", "{}");
    assert_eq!(each(&answer, "tools", "name"), ["a__x", "b__x"]);
    // Its session with the first one is the same as before.
    many.send(host, "tools/call", r#"{"name":"a__x"}"#);
    many.settle();
    let session = many.world.spawned[before - 1];
    assert_eq!(many.server("a"), session);
    many.send(host, "tools/call", r#"{"name":"b__x"}"#);
    many.settle();
    configure(&mut many, &["b"]);
    let failed = many.world.hear(host);
    assert!(failed.contains("a: it is not configured any more"), "{failed}");
    assert!(many.world.finished.contains(&session));
    let told = many.world.hear(host);
    assert!(told.contains("tools/list_changed"), "{told}");
    let conn = many.server("b");
    let lines = many.world.lines.remove(&conn).unwrap();
    let call = lines.iter().find(|line| line.contains("tools/call")).unwrap();
    many.world.say(conn, &format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, id_of(call)));
    assert!(many.world.hear(host).contains("result"));
    let answer = many.ask(host, "tools/list", "{}");
    assert_eq!(each(&answer, "tools", "name"), ["x"]);
    configure(&mut many, &[]);
    let told = many.world.hear(host);
    assert!(told.contains("list_changed"), "{told}");
    for conn in many.world.spawned.clone() {
        many.world.handle(Input::Exited { conn, status: ExitStatus::Code(0) });
    }
    many.world.handle(Input::Tick);
    assert!(many.world.gateway.servers.is_empty());
}

#[test]
fn servers_behind_sockets_are_introduced_too() {
    let place = Place::Socket(Target::Unix { path: "p".into() });
    let servers = Vec::from([Server::new("s", place), server("gone")]);
    let endpoint = server::Config {
        listeners: Vec::from([server::Listener::Ndjson]),
        ..server::Config::default()
    };
    let mut world = World::with(Config::of(servers, endpoint));
    let host = world.host();
    world.say(
        host,
        &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#),
    );
    assert_eq!(world.spawned.len(), 2);
    assert!(world.hear(world.spawned[0]).contains("server/discover"));
}
