//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::{Arg, Parser};
use mcpx_core::client::probe::Protocol;
use mcpx_core::gateway::Expose;

use crate::access;
use crate::config;
use crate::error::Error;
use crate::help::Topic;
use crate::record::{self, Replay};

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help(Topic),
    Version,
    Daemon {
        listen: Vec<String>,
        access: access::Options,
        record: Option<record::Options>,
        common: Common,
    },
    Serve {
        record: Option<record::Options>,
        common: Common,
    },
    Replay(Replay),
    Call {
        tool: String,
        arguments: Option<String>,
        print: Print,
        common: Common,
    },
    List {
        print: Print,
        common: Common,
    },
}

/// What all commands that need a server share.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Common {
    pub(crate) source: Source,
    pub(crate) runtime: Runtime,
    /// What the server is taken to speak, whatever its configuration says.
    pub(crate) protocol: Option<Protocol>,
    /// What hosts see of tools, whatever the configuration says.
    pub(crate) expose: Option<Expose>,
    /// Whether the server's standard error is dropped.
    pub(crate) quiet: bool,
}

/// How results are printed, and how long they are waited for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Print {
    /// As raw JSON.
    pub(crate) json: bool,
    pub(crate) timeout: Option<Duration>,
}

/// Where the server is said to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Demo,
    Url(String),
    Config(PathBuf),
    Command { program: String, args: Vec<String> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    #[cfg(unix)]
    Mio,
    Blocking,
}

impl Default for Runtime {
    #[cfg(unix)]
    fn default() -> Self {
        Self::Mio
    }

    #[cfg(not(unix))]
    fn default() -> Self {
        Self::Blocking
    }
}

/// Everything that can be said, before it is known whether it makes sense.
#[derive(Default)]
struct Given {
    listen: Vec<String>,
    access: access::Options,
    record: Recording,
    until: Option<Duration>,
    diff: Option<PathBuf>,
    runtime: Runtime,
    protocol: Option<Protocol>,
    expose: Option<Expose>,
    quiet: bool,
    json: bool,
    timeout: Option<Duration>,
    sources: Vec<Source>,
    words: Vec<String>,
    help: bool,
}

/// What is said of a recording.
#[derive(Default)]
struct Recording {
    path: Option<PathBuf>,
    limit: Option<u64>,
    secrets: bool,
}

/// Reads the arguments after the program's name.
pub(crate) fn parse(mut parser: Parser) -> Result<Command, Error> {
    let name = match parser.next().map_err(Error::usage)? {
        None => return Err(Error::usage("no command given; `mcpx --help` shows what there is")),
        Some(Arg::Short('h') | Arg::Long("help")) => return Ok(Command::Help(Topic::Mcpx)),
        Some(Arg::Short('V') | Arg::Long("version")) => return Ok(Command::Version),
        Some(Arg::Value(name)) => text(name)?,
        Some(arg) => return Err(Error::usage(arg.unexpected())),
    };
    if name == "help" {
        return help(&mut parser);
    }
    let Some(topic) = Topic::find(&name).filter(|topic| *topic != Topic::Mcpx) else {
        let why = format!("there is no command `{name}`; `mcpx --help` shows what there is");
        return Err(Error::usage(why));
    };
    let given = read(&mut parser, topic)?;
    if given.help { Ok(Command::Help(topic)) } else { judge(topic, given) }
}

fn help(parser: &mut Parser) -> Result<Command, Error> {
    match parser.next().map_err(Error::usage)? {
        None | Some(Arg::Short('h') | Arg::Long("help")) => Ok(Command::Help(Topic::Mcpx)),
        Some(Arg::Value(name)) => {
            let name = text(name)?;
            Topic::find(&name).map(Command::Help).ok_or_else(|| {
                Error::usage(format!(
                    "there is no help about `{name}`; `mcpx --help` shows what there is"
                ))
            })
        }
        Some(arg) => Err(Error::usage(arg.unexpected())),
    }
}

fn read(parser: &mut Parser, topic: Topic) -> Result<Given, Error> {
    let asks = matches!(topic, Topic::Call | Topic::Ls);
    let listens = topic == Topic::Daemon;
    let serves = matches!(topic, Topic::Daemon | Topic::Serve);
    let replays = topic == Topic::Replay;
    let mut given = Given::default();
    loop {
        if let Some(command) = command(parser)? {
            given.sources.push(command);
            return Ok(given);
        }
        let Some(arg) = parser.next().map_err(Error::usage)? else { return Ok(given) };
        match arg {
            Arg::Short('h') | Arg::Long("help") => given.help = true,
            Arg::Long("json") if replays => given.json = true,
            Arg::Long("until") if replays => given.until = Some(moment(&value(parser)?)?),
            Arg::Long("diff") if replays => given.diff = Some(path(parser)?),
            Arg::Value(word) if replays => given.words.push(text(word)?),
            arg if replays => return Err(unexpected(arg, topic)),
            Arg::Short('q') | Arg::Long("quiet") => given.quiet = true,
            Arg::Long("runtime") => given.runtime = runtime(&value(parser)?)?,
            Arg::Long("protocol") => given.protocol = Some(protocol(&value(parser)?)?),
            Arg::Long("expose") => given.expose = Some(expose(&value(parser)?)?),
            Arg::Long("demo") => given.sources.push(Source::Demo),
            Arg::Long("url") => given.sources.push(Source::Url(value(parser)?)),
            Arg::Short('c') | Arg::Long("config") => {
                given.sources.push(Source::Config(path(parser)?));
            }
            Arg::Short('l') | Arg::Long("listen") if listens => given.listen.push(value(parser)?),
            Arg::Long("legacy-sse") if listens => given.access.legacy_sse = true,
            Arg::Long("insecure") if listens => given.access.insecure = true,
            Arg::Long("allow-origin") if listens => given.access.origins.push(value(parser)?),
            Arg::Long("allow-host") if listens => given.access.hosts.push(value(parser)?),
            Arg::Long("token-file") if listens => given.access.token_file = Some(path(parser)?),
            Arg::Long("record") if serves => given.record.path = Some(path(parser)?),
            Arg::Long("record-limit") if serves => {
                given.record.limit = Some(megabytes(&value(parser)?)?);
            }
            Arg::Long("record-secrets") if serves => given.record.secrets = true,
            Arg::Long("json") if asks => given.json = true,
            Arg::Long("timeout") if asks => given.timeout = Some(seconds(&value(parser)?)?),
            Arg::Value(word) => given.words.push(text(word)?),
            arg => return Err(unexpected(arg, topic)),
        }
    }
}

/// All that follows `--`: the server's command.
fn command(parser: &mut Parser) -> Result<Option<Source>, Error> {
    let Some(mut rest) = parser.try_raw_args() else { return Ok(None) };
    if rest.peek().is_none_or(|arg| arg != "--") {
        return Ok(None);
    }
    rest.next();
    let mut words = rest.map(text);
    let Some(program) = words.next().transpose()? else {
        return Err(Error::usage("there is no command after `--`: put the server's command there"));
    };
    let args = words.collect::<Result<_, _>>()?;
    Ok(Some(Source::Command { program, args }))
}

fn judge(topic: Topic, given: Given) -> Result<Command, Error> {
    let Given { listen, access, record, runtime, protocol, expose, quiet, .. } = given;
    let Given { json, timeout, words, until, diff, .. } = given;
    let mut sources = given.sources;
    let mut words = words.into_iter();
    if topic == Topic::Replay {
        return match (words.next(), words.next()) {
            (Some(path), None) => {
                Ok(Command::Replay(Replay { path: path.into(), json, until, diff }))
            }
            _ => Err(Error::usage("which recording? say `mcpx replay FILE`, once")),
        };
    }
    let record = record.options()?;
    let (tool, arguments) = match topic {
        Topic::Call => (words.next(), words.next()),
        _ => (None, None),
    };
    if let Some(extra) = words.next() {
        let why = format!(
            "`{extra}` is one word too many; the server's command goes after `--`, \
             as in `mcpx {topic} -- npx some-server`"
        );
        return Err(Error::usage(why));
    }
    let source = match (sources.pop(), sources.is_empty()) {
        (Some(source), true) => source,
        (None, _) => {
            let why = format!(
                "which server? say --demo, --url URL, --config FILE, or `-- COMMAND ARGS...`; \
                 `mcpx {topic} --help` has examples"
            );
            return Err(Error::usage(why));
        }
        (Some(_), false) => {
            return Err(Error::usage(
                "more than one server: say one of --demo, --url, --config and `-- COMMAND`, once",
            ));
        }
    };
    let common = Common { source, runtime, protocol, expose, quiet };
    let print = Print { json, timeout };
    Ok(match (topic, tool) {
        (Topic::Daemon, _) => Command::Daemon { listen, access, record, common },
        (Topic::Serve | Topic::Mcpx | Topic::Replay, _) => Command::Serve { record, common },
        (Topic::Ls, _) => Command::List { print, common },
        (Topic::Call, Some(tool)) => Command::Call { tool, arguments, print, common },
        (Topic::Call, None) => {
            return Err(Error::usage(
                "which tool? say `mcpx call TOOL '{\"argument\": ...}'`; `mcpx ls` shows the tools",
            ));
        }
    })
}

impl Recording {
    fn options(self) -> Result<Option<record::Options>, Error> {
        let Self { path, limit, secrets } = self;
        match path {
            Some(path) => {
                let limit = limit.unwrap_or(record::Options::LIMIT);
                Ok(Some(record::Options { path, limit, secrets }))
            }
            None if limit.is_none() && !secrets => Ok(None),
            None => Err(Error::usage("where is it to be recorded? say --record FILE")),
        }
    }
}

fn expose(text: &str) -> Result<Expose, Error> {
    config::parse_expose(text).ok_or_else(|| {
        Error::usage(format!(
            "--expose {text}: there are all (tools) and search (two that find them)"
        ))
    })
}

fn runtime(name: &str) -> Result<Runtime, Error> {
    match name {
        #[cfg(unix)]
        "mio" => Ok(Runtime::Mio),
        "blocking" => Ok(Runtime::Blocking),
        #[cfg(not(unix))]
        "mio" => Err(Error::usage("--runtime mio is for Unix; use --runtime blocking here")),
        _ => Err(Error::usage(format!("there is no runtime `{name}`: say mio or blocking"))),
    }
}

fn protocol(text: &str) -> Result<Protocol, Error> {
    Protocol::parse(text).ok_or_else(|| {
        Error::usage(format!("--protocol {text}: say auto, modern, legacy, or a revision of MCP"))
    })
}

fn seconds(text: &str) -> Result<Duration, Error> {
    let seconds = text.parse().ok().filter(|seconds| (1..=86_400).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| {
        Error::usage(format!("--timeout {text}: say whole seconds, from 1 to 86400"))
    })
}

fn moment(text: &str) -> Result<Duration, Error> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| Error::usage(format!("--until {text}: say seconds, as in 2.5")))
}

fn megabytes(text: &str) -> Result<u64, Error> {
    let bytes = text.parse().ok().filter(|n| (1..=1 << 20).contains(n)).map(|n: u64| n << 20);
    bytes.ok_or_else(|| Error::usage(format!("--record-limit {text}: say whole MiB, from 1")))
}

fn unexpected(arg: Arg<'_>, topic: Topic) -> Error {
    Error::usage(format!("{}; `mcpx {topic} --help` shows what there is", arg.unexpected()))
}

fn path(parser: &mut Parser) -> Result<PathBuf, Error> {
    Ok(parser.value().map_err(Error::usage)?.into())
}

fn value(parser: &mut Parser) -> Result<String, Error> {
    text(parser.value().map_err(Error::usage)?)
}

fn text(word: OsString) -> Result<String, Error> {
    word.into_string().map_err(|word| {
        Error::usage(format!("the argument `{}` is not Unicode text", word.to_string_lossy()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, String> {
        let parser = Parser::from_args(line.split_whitespace());
        super::parse(parser).map_err(|error| error.text().to_string())
    }

    fn common(source: Source) -> Common {
        Common { source, runtime: Runtime::default(), protocol: None, expose: None, quiet: false }
    }

    #[test]
    fn what_follows_two_dashes_is_the_server() {
        let source = Source::Command {
            program: "npx".into(),
            args: ["-y", "--json", "--", "x"].map(String::from).into(),
        };
        let print = Print { json: true, timeout: Some(Duration::from_secs(9)) };
        let expected = Command::Call {
            tool: "add".into(),
            arguments: Some("{}".into()),
            print,
            common: common(source),
        };
        let line = "call --json --timeout=9 add {} -- npx -y --json -- x";
        assert_eq!(parse(line), Ok(expected));
    }

    #[test]
    fn listeners_add_up() {
        let expected = Command::Daemon {
            listen: vec!["a:1".into(), "unix:b".into()],
            access: access::Options {
                legacy_sse: true,
                insecure: true,
                origins: vec!["https://a".into(), "https://b".into()],
                hosts: vec!["h".into()],
                token_file: Some("t".into()),
            },
            record: Some(record::Options {
                path: "r".into(),
                limit: record::Options::LIMIT,
                secrets: false,
            }),
            common: Common {
                source: Source::Config("f".into()),
                runtime: Runtime::Blocking,
                protocol: Some(Protocol::Modern),
                expose: None,
                quiet: true,
            },
        };
        let line = "daemon --listen a:1 -l unix:b --insecure --allow-origin https://a --allow-host h \
                    --allow-origin=https://b --token-file t --record r --legacy-sse -q --protocol modern --runtime blocking -c f";
        assert_eq!(parse(line), Ok(expected));
    }

    #[test]
    fn help_is_everywhere() {
        for (line, topic) in [
            ("--help", Topic::Mcpx),
            ("-h", Topic::Mcpx),
            ("help", Topic::Mcpx),
            ("help ls", Topic::Ls),
            ("call --help", Topic::Call),
            ("daemon --demo -h", Topic::Daemon),
        ] {
            assert_eq!(parse(line), Ok(Command::Help(topic)), "{line}");
        }
        assert_eq!(parse("--version"), Ok(Command::Version));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, part) in [
            ("", "no command"),
            ("--frob", "--frob"),
            ("frob", "`frob`"),
            ("help frob", "`frob`"),
            ("serve", "which server?"),
            ("serve --demo --url http://a", "more than one server"),
            ("serve --demo x", "`x`"),
            ("serve --", "after `--`"),
            ("serve --demo --listen a:1", "--listen"),
            ("serve --demo --runtime tokio", "`tokio`"),
            ("call --demo", "which tool?"),
            ("call --demo a {} b", "`b`"),
            ("ls --demo --protocol 2025", "--protocol 2025"),
            ("ls --demo --timeout 0", "--timeout 0"),
            ("ls --url", "--url"),
            ("ls --demo --record x", "--record"),
            ("serve --demo --record-limit 5", "--record FILE"),
            ("serve --demo --record x --record-limit 0", "--record-limit 0"),
            ("replay", "which recording?"),
            ("replay a b", "once"),
            ("replay a --until x", "--until x"),
            ("replay a --demo", "--demo"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(part) && !error.contains('\n'), "{line}: {error}");
        }
    }
}
