//! Messages: against serde_json, and every change against reading it back.
#![no_main]

use std::borrow::Cow;

use libfuzzer_sys::fuzz_target;
use mcpx_core::jsonrpc::{
    Envelope, Incoming, Kind, Limits, Message, RejectReason, Rejected, Skimmer, compact, elements,
    get, get_path, members, quote, same_id, string, with_member,
};
use mcpx_fuzz::input::{Cuts, Source};
use serde_json::Value;
use serde_json::value::RawValue;

const LIMITS: Limits = Limits { depth: 64, members: 16 };

fn parse(bytes: &[u8]) -> Result<Incoming<'_>, Rejected> {
    Message::parse(Cow::Borrowed(bytes), &LIMITS)
}

/// Whether it is JSON is not ours to invent.
fn agree_on_grammar(bytes: &[u8], parsed: &Result<Incoming<'_>, Rejected>) {
    let theirs = serde_json::from_slice::<&RawValue>(bytes).is_ok();
    match parsed.as_ref().err().map(|rejected| rejected.reason) {
        Some(RejectReason::NotUtf8) => assert!(std::str::from_utf8(bytes).is_err()),
        Some(RejectReason::NotJson) => assert!(!theirs, "they read it"),
        // The rest of it is not read.
        Some(RejectReason::TooDeep) => {}
        _ => assert!(theirs, "they refuse it"),
    }
}

fn check_object(object: &str, name: &str) {
    // Text with halves of surrogate pairs is JSON, but no value of theirs.
    let Ok(Value::Object(mut theirs)) = serde_json::from_str::<Value>(object) else { return };
    let mut out = String::new();
    for value in [Some("[1, {}]"), None] {
        out.clear();
        with_member(object, name, value, &mut out);
        let ours: Value = serde_json::from_str(&out).expect("it stays JSON");
        match value {
            Some(value) => {
                theirs.insert(name.into(), serde_json::from_str(value).expect("it is JSON"))
            }
            None => theirs.remove(name),
        };
        assert_eq!(ours, Value::Object(theirs.clone()));
        assert_eq!(get(&out, name), value);
    }
    for (key, value) in members(object) {
        let decoded = key.decoded().expect("they read it");
        assert!(key == *decoded);
        assert!(get(object, &decoded).is_some());
        let theirs: Value = serde_json::from_str(value).expect("a value");
        if value.starts_with('"') {
            assert_eq!(Some(theirs.as_str()), string(value).as_deref().map(Some));
        }
    }
}

fn check_message(message: &Message<'_>, cuts: &mut Cuts) {
    let (id, method, params) = (message.id(), message.method(), message.params());
    let error = message.error();
    let envelope = match (message.kind(), id, message.result(), error) {
        (Kind::Request, Some(id), None, None) => Envelope::Request { id, method, params },
        (Kind::Notification, None, None, None) => Envelope::Notification { method, params },
        (Kind::Response, Some(id), Some(result), None) => Envelope::Result { id, result },
        (Kind::Error, id, None, Some(error)) => Envelope::Error { id, error },
        other => panic!("{other:?}"),
    };
    if let Some(id) = id {
        assert!(string(id).is_none() && id.starts_with('"') || same_id(id, id));
    }
    let mut whole = Vec::new();
    envelope.write(&mut whole);
    assert_eq!(whole.len(), envelope.len());
    let mut line = Vec::new();
    envelope.write_line(&mut line);
    assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
    assert!(!line.contains(&b'\r'));
    for written in [&whole, &line] {
        let Ok(Incoming::Message(again)) = parse(written) else { panic!("it stays a message") };
        assert_eq!((again.kind(), again.id(), again.method()), (message.kind(), id, method));
        if written == &whole {
            assert_eq!((again.params(), again.result()), (params, message.result()));
            assert_eq!(again.error(), message.error());
        }
    }
    for raw in [params, message.result(), error].into_iter().flatten() {
        let mut compacted = Vec::new();
        compact(raw, &mut compacted);
        let theirs = serde_json::from_str::<Value>(raw);
        if let Ok(theirs) = theirs {
            assert_eq!(serde_json::from_slice::<Value>(&compacted).expect("JSON"), theirs);
        }
        check_object(raw, "method");
        check_object(raw, "");
        check_object(raw, "é\"\n");
    }

    // What is found without keeping the message.
    let skim = |pieces: Vec<&[u8]>| {
        let mut skimmer = Skimmer::default();
        pieces.into_iter().for_each(|piece| skimmer.feed(piece));
        skimmer.finish()
    };
    let text = message.as_str().as_bytes();
    let skimmed = skim(Cuts::none().pieces(text));
    assert_eq!(skim(cuts.pieces(text)), skimmed);
    let found = id.filter(|id| id.len() <= 256);
    assert_eq!(skimmed.id.as_deref(), found, "{text:?}");
    assert_eq!(skimmed.method, matches!(message.kind(), Kind::Request | Kind::Notification));
    assert_eq!(skimmed.answer, !skimmed.method);
}

/// Text that nobody checked gives nonsense, but ends.
fn unchecked(text: &str) {
    members(text).for_each(drop);
    elements(text).for_each(drop);
    let _ = (get(text, "a"), get_path(text, &["params", "_meta"]), string(text));
    let mut out = String::new();
    with_member(text, "id", Some("1"), &mut out);
    out.clear();
    quote(text, &mut out);
    assert_eq!(string(&out).as_deref(), Some(text));
    assert_eq!(serde_json::from_str::<String>(&out).expect("a string"), text);
    compact(text, &mut Vec::new());
}

fuzz_target!(|data: &[u8]| {
    let mut source = Source::new(data);
    let mut cuts = source.cuts();
    let bytes = source.rest();
    let parsed = parse(bytes);
    agree_on_grammar(bytes, &parsed);
    assert_eq!(Message::parse(Cow::Owned(bytes.to_vec()), &LIMITS), parsed);
    unchecked(&String::from_utf8_lossy(bytes));
    match &parsed {
        Ok(Incoming::Message(message)) => check_message(message, &mut cuts),
        Ok(Incoming::Batch(batch)) => {
            let text = std::str::from_utf8(bytes).expect("it was read");
            let theirs: Vec<&RawValue> = serde_json::from_str(text).expect("it was read");
            assert!(batch.elements().eq(theirs.iter().map(|element| element.get())));
            assert_eq!(batch.is_empty(), theirs.is_empty());
        }
        Err(rejected) => {
            assert!(!rejected.to_string().is_empty());
            if let Some(id) = &rejected.id {
                serde_json::from_str::<&RawValue>(id).expect("an id is JSON");
            }
        }
    }
});
