//! Our own client, without a gateway in between, before the demo server.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use mcpx_core::client::oneshot::Kind;
use mcpx_core::client::probe::Protocol;
use mcpx_core::client::session::{Config, Options, Trouble};
use mcpx_core::client::{Client, Drive, Error, Failure, Place};
use mcpx_core::driver::Command;
use mcpx_tests::real::program;
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const LONG: Option<Duration> = Some(Duration::from_secs(30));

fn demo(protocol: &str) -> Config {
    let program = program("mcpx").to_str().unwrap().to_owned();
    let args = vec!["serve".into(), "--demo".into()];
    let place = Place::Process(Command { program, args, ..Command::default() });
    Config {
        protocol: Protocol::parse(protocol).unwrap(),
        capabilities: r#"{"elicitation":{},"sampling":{}}"#.into(),
        ..Config::new("demo", place)
    }
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn text(result: &str) -> String {
    value(result)["content"][0]["text"].as_str().unwrap().to_owned()
}

fn converses<D: Drive<Error = io::Error> + 'static>() {
    for protocol in ["auto", "2025-11-25", "2024-11-05"] {
        let mut client = Client::<D>::connect(demo(protocol)).unwrap();
        assert_eq!(client.revision().unwrap().as_str() == "2026-07-28", protocol == "auto");
        assert!(client.capabilities().unwrap().contains("\"tools\""));
        let tools = client.list(Kind::Tools).unwrap();
        assert!(tools.iter().any(|tool| value(tool)["name"] == "echo"));
        let readme = value(&client.read("demo://readme").unwrap());
        assert_eq!(readme["contents"][0]["uri"], "demo://readme");
        let mut seen = Vec::new();
        let counted = client.call("count", r#"{"to":3}"#, LONG, |params| {
            seen.push(value(params)["progress"].as_f64().unwrap());
        });
        counted.unwrap();
        assert_eq!(seen, [1.0, 2.0, 3.0]);
        let refused = client.call("nonsense", "{}", LONG, |_| {}).unwrap_err();
        assert!(matches!(&refused, Error::Server(trouble) if trouble.code() == Some(-32602)));
        // It goes on after one that takes too long.
        let slow = json!({"to": 1000, "delay_ms": 1000}).to_string();
        let late = client.call("count", &slow, Some(SECOND / 10), |_| {}).unwrap_err();
        assert!(matches!(late, Error::Server(Trouble::OutOfTime(_))), "{late}");
        assert_eq!(
            text(&client.call("echo", r#"{"message":"m"}"#, LONG, |_| {}).unwrap()),
            "Echo: m"
        );
        client.close().unwrap();
    }
}

fn answers<D: Drive<Error = io::Error> + 'static>() {
    for protocol in ["auto", "2025-11-25"] {
        let mut client = Client::<D>::connect(demo(protocol)).unwrap();
        let asked = Rc::new(RefCell::new(Vec::new()));
        let noted = Rc::clone(&asked);
        client.answer_with(move |method, params| {
            noted.borrow_mut().push(method.to_owned());
            assert!(params.is_some());
            match method {
                "sampling/createMessage" => Ok(json!({
                    "role": "assistant", "model": "m", "content": {"type": "text", "text": "42"},
                })
                .to_string()),
                _ => Ok(r#"{"action":"decline"}"#.into()),
            }
        });
        let thought = client.call("think", r#"{"question":"?"}"#, LONG, |_| {}).unwrap();
        assert!(text(&thought).contains("42"), "{thought}");
        client.call("ask", "{}", LONG, |_| {}).unwrap();
        assert_eq!(*asked.borrow(), ["sampling/createMessage", "elicitation/create"]);
        client.close().unwrap();
    }
}

fn listens<D: Drive<Error = io::Error> + 'static>() {
    for protocol in ["auto", "2025-11-25"] {
        let mut client = Client::<D>::connect(demo(protocol)).unwrap();
        client.subscribe(&["demo://counter"]).unwrap();
        assert_eq!(client.next(Some(SECOND / 20)).unwrap(), None);
        client.call("touch", "{}", LONG, |_| {}).unwrap();
        let told = client.next(LONG).unwrap().unwrap();
        assert_eq!(told.method, "notifications/resources/updated");
        assert_eq!(value(&told.params.unwrap())["uri"], "demo://counter");
        client.close().unwrap();
    }
}

fn fails<D: Drive<Error = io::Error> + 'static>() {
    let place = |program: &str, args: &[&str]| {
        let args = args.iter().map(ToString::to_string).collect();
        Place::Process(Command { program: program.into(), args, ..Command::default() })
    };
    let trouble = |config| match Client::<D>::connect(config).err() {
        Some(Error::Server(trouble)) => trouble,
        other => panic!("{other:?}"),
    };
    let missing = trouble(Config::new("none", place("/no/such/program", &[])));
    assert!(matches!(missing, Trouble::Failure(Failure::NotStarted(_))), "{missing}");
    let quitter = trouble(Config::new("quits", place("sh", &["-c", "echo no luck >&2; exit 4"])));
    assert!(quitter.to_string().contains("code 4") && quitter.to_string().contains("no luck"));
    // One that dies in the middle.
    let scripted = program("scripted").to_str().unwrap().to_owned();
    let config = Config::new("scripted", place(&scripted, &[]));
    let mut client = Client::<D>::connect(config).unwrap();
    let dead = client.call("quit", "{}", LONG, |_| {}).unwrap_err();
    assert!(dead.to_string().contains("exited with code 3"), "{dead}");
    let options = Options::default();
    let gone = client.request("tools/list", None, options, |_| {}).unwrap_err();
    assert!(matches!(gone, Error::Server(Trouble::Failure(_))), "{gone}");
}

macro_rules! on_both {
    ($($name:ident),*) => {$(
        mod $name {
            #[test]
            fn on_mio() {
                super::$name::<mcpx_mio::Driver>();
            }

            #[test]
            fn on_blocking() {
                super::$name::<mcpx_blocking::Driver>();
            }
        }
    )*};
}

on_both!(converses, answers, listens, fails);
