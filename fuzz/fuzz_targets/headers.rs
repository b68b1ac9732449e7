//! Header values, required headers, annotations, origins and URLs: text from
//! peers and from operators.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpx_core::jsonrpc::{Incoming, Limits, Message, quote};
use mcpx_core::protocol::header_value::{decode, encode, encode_json, matches, trim};
use mcpx_core::protocol::origin::OriginRules;
use mcpx_core::protocol::required_headers::{METHOD, NAME, check, method, mirrored, name};
use mcpx_core::protocol::x_mcp_header::{
    Declaration, MAX_DECLARATIONS, check_params, declarations,
};
use mcpx_core::wire::http1::write::{self, BodyLen};
use mcpx_core::wire::http1::{Fields, Part, RequestReader, Url};
use mcpx_fuzz::input::Source;

/// Any text survives the way through a header.
fn value(text: &str) {
    let field = encode(text);
    assert!(field.bytes().all(|byte| matches!(byte, b' '..=b'~')));
    assert_eq!(trim(field.as_bytes()), field.as_bytes());
    assert_eq!(decode(field.as_bytes()).as_deref(), Ok(text));
    let mut raw = String::new();
    quote(text, &mut raw);
    assert_eq!(encode_json(&raw).as_deref(), Some(&*field));
    assert!(matches(text, &raw));
}

/// What a field says is one thing, however it was written.
fn field(bytes: &[u8]) {
    let decoded = decode(bytes);
    assert_eq!(decode(trim(bytes)), decoded);
    if let Ok(text) = decoded {
        assert_eq!(decode(encode(&text).as_bytes()).as_deref(), Ok(&*text));
    }
}

/// What we mirror passes our own comparison, and travels in a head.
fn request(bytes: &[u8], declared: &[Declaration]) {
    let Ok(Incoming::Message(message)) = Message::parse(bytes.into(), &Limits::DEFAULT) else {
        return;
    };
    let params = message.params();
    for verb in ["tools/call", "resources/read", "tasks/get", "ping"] {
        let headers = mirrored(verb, params, declared);
        let borrowed: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (&**n, &**v)).collect();
        let fields = || borrowed.iter().map(|(n, v)| (*n, v.as_bytes()));
        assert_eq!(method(fields, verb), Ok(()));
        assert_eq!(name(fields, verb, params), Ok(()));
        let _ = check(fields, verb, params);
        if verb == "tools/call" {
            assert_eq!(check_params(fields, params, declared), Ok(()));
        }
        let mut head = Vec::new();
        write::request_head(&mut head, "POST", "/mcp", "h", &borrowed, BodyLen::None)
            .expect("they may be written");
        let mut input = head.as_slice();
        let read = RequestReader::new(Default::default()).next(&mut input);
        // More annotations may be declared than a reader takes as fields.
        let Ok(Some(Part::Head(read))) = read else {
            assert!(borrowed.len() > 60 || head.len() > 60_000);
            continue;
        };
        same(&read.fields, &borrowed);
    }
    let _ = check(|| [(METHOD, bytes), (NAME, bytes)].into_iter(), message.method(), params);
}

fn same(read: &Fields, written: &[(&str, &str)]) {
    for (name, value) in written {
        assert_eq!(read.get(name), Some(value.as_bytes()));
    }
}

fn schema(text: &str) -> Vec<Declaration> {
    let Ok(found) = declarations(text) else { return Vec::new() };
    assert!(found.len() <= MAX_DECLARATIONS);
    assert!(found.iter().all(|declared| !declared.path.is_empty() && !declared.name.is_empty()));
    found
}

fn origins(source: &mut Source<'_>) {
    let bind = String::from_utf8_lossy(source.bytes()).into_owned();
    let mut list = || -> Option<Vec<String>> {
        let count = source.below(4).checked_sub(1)?;
        Some((0..count).map(|_| String::from_utf8_lossy(source.bytes()).into_owned()).collect())
    };
    let (hosts, origins) = (list(), list());
    let Ok(rules) = OriginRules::new(&bind, hosts.as_deref(), origins.as_deref()) else { return };
    let (host, origin, target) = (source.bytes(), source.bytes(), source.bytes());
    let target = std::str::from_utf8(target).ok().filter(|target| !target.is_empty());
    let origin = Some(origin).filter(|origin| !origin.is_empty());
    let verdict = rules.check([host].into_iter(), origin.into_iter(), target);
    assert!(rules.check([host, host].into_iter(), origin.into_iter(), target).is_err());
    assert!(rules.check(std::iter::empty(), origin.into_iter(), target).is_err());
    if origin.is_some() && verdict.is_ok() {
        // Whoever is let in with an origin is let in without.
        assert_eq!(rules.check([host].into_iter(), std::iter::empty(), target), Ok(()));
    }
    assert!(
        rules.check([host].into_iter(), [&b"http://evil.example"[..]].into_iter(), target).is_err()
            || origins.is_some()
    );
}

fn url(text: &str) {
    let Ok(url) = Url::parse(text) else { return };
    assert_eq!(Url::parse(&url.to_string()).as_ref(), Ok(&url));
    assert!(!url.host().is_empty() && url.port() != 0);
    let mut head = Vec::new();
    write::request_head(&mut head, "POST", url.target(), url.authority(), &[], BodyLen::None)
        .expect("a URL fits a head");
}

fuzz_target!(|data: &[u8]| {
    let mut source = Source::new(data);
    let kind = source.below(5);
    match kind {
        0 => origins(&mut source),
        1 => url(&String::from_utf8_lossy(source.rest())),
        2 => {
            let mut declared = schema(&String::from_utf8_lossy(source.bytes()));
            declared.truncate(8);
            request(source.rest(), &declared);
        }
        3 => {
            schema(&String::from_utf8_lossy(source.rest()));
        }
        _ => {
            field(source.rest());
            value(&String::from_utf8_lossy(source.rest()));
        }
    }
});
