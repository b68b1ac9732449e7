//! Results in print.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write as _};

use mcpx_core::client::oneshot::{Kind, Listing};
use mcpx_core::jsonrpc::{elements, get, string};

use crate::error::{Error, Exit};
use crate::report::escape;

/// Prints to standard output. A reader that has seen enough is no error.
pub(crate) fn print(text: &str) -> Result<Exit, Error> {
    let mut out = io::stdout();
    let shown = if out.is_terminal() { tame(text) } else { Cow::Borrowed(text) };
    match out.write_all(shown.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Exit::Done),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        Err(error) => Err(Error::failed(format!("standard output cannot be written: {error}"))),
    }
}

/// What a server says must not control the terminal.
fn tame(text: &str) -> Cow<'_, str> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(end) = rest.find(['\n', '\t']) {
        let (before, from) = rest.split_at(end);
        let (kept, after) = from.split_at(1);
        escape(before, &mut out);
        out.push_str(kept);
        rest = after;
    }
    escape(rest, &mut out);
    Cow::Owned(out)
}

/// Whether a tool says that it failed.
pub(crate) fn is_error(result: &str) -> bool {
    get(result, "isError") == Some("true")
}

/// The result of a call: text as it is, other content as one line each.
pub(crate) fn result(result: &str) -> String {
    let content = get(result, "content").unwrap_or("[]");
    let mut out = String::new();
    for block in elements(content) {
        match text_of(block, "type").as_deref() {
            Some("text") => out.push_str(&text_of(block, "text").unwrap_or_default()),
            kind => line(kind.unwrap_or("content"), block, &mut out),
        }
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    if out.is_empty()
        && let Some(structured) = get(result, "structuredContent")
    {
        out.push_str(structured);
        out.push('\n');
    }
    out
}

/// One line about content that is no text: `[image: image/png, 120 bytes]`.
fn line(kind: &str, block: &str, out: &mut String) {
    let about = match get(block, "resource") {
        Some(resource) => resource,
        None => block,
    };
    let mut parts: Vec<String> = ["name", "uri", "mimeType"]
        .into_iter()
        .filter_map(|member| text_of(about, member))
        .map(Cow::into_owned)
        .collect();
    let base64 = get(about, "data").or_else(|| get(about, "blob")).and_then(string);
    if let Some(base64) = base64 {
        let digits = base64.trim_end_matches('=').len();
        parts.push(format!("{} bytes", digits * 3 / 4));
    }
    if let Some(text) = text_of(about, "text") {
        parts.push(format!("{} bytes", text.len()));
    }
    out.push('[');
    escape(kind, out);
    if !parts.is_empty() {
        out.push_str(": ");
        escape(&parts.join(", "), out);
    }
    out.push(']');
}

fn text_of<'a>(object: &'a str, member: &str) -> Option<Cow<'a, str>> {
    get(object, member).and_then(string)
}

/// Names longer than this many characters do not move the other lines.
const WIDEST: usize = 40;

/// What a server offers: one line each, in columns.
pub(crate) fn listing(listing: &Listing) -> String {
    let mut rows: Vec<[String; 3]> = Vec::new();
    for kind in Kind::ALL {
        let (word, member) = match kind {
            Kind::Tools => ("tool", "name"),
            Kind::Resources => ("resource", "uri"),
            Kind::Templates => ("template", "uriTemplate"),
            Kind::Prompts => ("prompt", "name"),
        };
        for item in listing.of(kind) {
            let mut name = String::new();
            escape(&text_of(item, member).unwrap_or("(no name)".into()), &mut name);
            rows.push([word.to_string(), name, description(item)]);
        }
    }
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.filter(|width| *width <= WIDEST).max().unwrap_or(0)
    };
    let (kinds, names) = (width(0), width(1));
    let mut out = String::new();
    for [kind, name, about] in &rows {
        out.push_str(format!("{kind:kinds$}  {name:names$}  {about}").trim_end());
        out.push('\n');
    }
    out
}

/// The first line of what an item says about itself.
fn description(item: &str) -> String {
    let text =
        ["description", "title", "name"].into_iter().find_map(|member| text_of(item, member));
    let text = text.unwrap_or_default();
    let mut out = String::new();
    escape(text.trim().lines().next().unwrap_or_default(), &mut out);
    out
}

/// What a server offers, as one JSON object.
pub(crate) fn listing_json(listing: &Listing) -> String {
    let members = Kind::ALL.map(|kind| {
        let items = listing.of(kind).join(",");
        format!("\"{}\":[{items}]", kind.member())
    });
    format!("{{{}}}\n", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_printed_as_it_is() {
        let two =
            r#"{"content":[{"type":"text","text":"a\u001b\nb"},{"type":"text","text":"c\n"}]}"#;
        assert_eq!(result(two), "a\u{1b}\nb\nc\n");
        assert_eq!(tame("a\u{1b}\n\tb\u{85}"), "a\\u{1b}\n\tb\\u{85}");
        assert_eq!(result(r#"{"structuredContent":{"a":1}}"#), "{\"a\":1}\n");
        assert_eq!(result(r#"{"content":"x"}"#), "");
    }

    #[test]
    fn other_content_is_one_line() {
        for (block, expected) in [
            (
                r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#,
                "[image: image/png, 3 bytes]",
            ),
            (
                r#"{"type":"audio","data":"AAA=","mimeType":"audio/wav"}"#,
                "[audio: audio/wav, 2 bytes]",
            ),
            (
                r#"{"type":"resource_link","uri":"file:///a","name":"a\n"}"#,
                r"[resource_link: a\n, file:///a]",
            ),
            (
                r#"{"type":"resource","resource":{"uri":"u:1","text":"abc"}}"#,
                "[resource: u:1, 3 bytes]",
            ),
            (r#"{"type":"new"}"#, "[new]"),
            ("7", "[content]"),
        ] {
            assert_eq!(result(&format!(r#"{{"content":[{block}]}}"#)), format!("{expected}\n"));
        }
    }

    #[test]
    fn lists_are_in_columns() {
        let items = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect();
        let all = Listing {
            tools: items(&[
                r#"{"name":"add","description":"Adds.\nReally."}"#,
                r#"{"name":"longer","title":"T"}"#,
            ]),
            resources: items(&[r#"{"uri":"a:b","name":"B"}"#]),
            templates: items(&[r#"{"uriTemplate":"a:{x}","description":"\u001b"}"#]),
            prompts: items(&[r#"{}"#]),
        };
        let expected = "\
            tool      add        Adds.\n\
            tool      longer     T\n\
            resource  a:b        B\n\
            template  a:{x}      \\u{1b}\n\
            prompt    (no name)\n";
        assert_eq!(listing(&all), expected);
        let all = Listing { tools: items(&["{}", "{}"]), ..Listing::default() };
        assert_eq!(
            listing_json(&all),
            "{\"tools\":[{},{}],\"resources\":[],\"resourceTemplates\":[],\"prompts\":[]}\n"
        );
    }
}
