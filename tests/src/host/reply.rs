//! HTTP responses as a host reads them, written apart from the codec that is
//! tested with them.

use serde_json::Value;

/// What must have come before something can be read.
const FIELDS: usize = 32;

/// The answer to one HTTP request, as far as it has come.
#[derive(Debug, Default)]
pub struct Reply {
    /// The status; 0 until the head is there.
    pub status: u16,
    fields: Vec<(String, String)>,
    raw: Vec<u8>,
    body: Vec<u8>,
    framing: Framing,
    /// Everything is there.
    pub done: bool,
    /// The ids of the events, as they came.
    pub event_ids: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Framing {
    #[default]
    Head,
    Length(usize),
    Chunks,
    Close,
}

impl Reply {
    /// A field of the head.
    pub fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The messages that `bytes` complete.
    pub fn receive(&mut self, bytes: &[u8]) -> Vec<Value> {
        self.raw.extend_from_slice(bytes);
        while matches!(self.framing, Framing::Head) && !self.done {
            if !self.read_head() {
                return Vec::new();
            }
        }
        self.unframe();
        self.messages()
    }

    /// The messages that the end of the connection completes.
    pub fn end(&mut self) -> Vec<Value> {
        if matches!(self.framing, Framing::Close) {
            self.done = true;
        }
        self.messages()
    }

    fn read_head(&mut self) -> bool {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut head = httparse::Response::new(&mut fields);
        let length = match head.parse(&self.raw) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return false,
            Err(error) => panic!("{error}: {}", self.raw.escape_ascii()),
        };
        self.status = head.code.unwrap_or_default();
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        self.fields =
            head.headers.iter().map(|field| (field.name.to_owned(), text(field.value))).collect();
        self.raw.drain(..length);
        if self.status == 100 {
            return true;
        }
        let chunked = self.field("Transfer-Encoding").is_some();
        let length = self.field("Content-Length").map(|length| length.parse());
        self.framing = match length {
            _ if self.status == 204 => Framing::Length(0),
            _ if chunked => Framing::Chunks,
            Some(Ok(length)) => Framing::Length(length),
            Some(Err(_)) => panic!("an odd length: {:?}", self.fields),
            None => Framing::Close,
        };
        true
    }

    fn unframe(&mut self) {
        match self.framing {
            Framing::Head => {}
            Framing::Close => self.body.append(&mut self.raw),
            Framing::Length(left) => {
                let n = left.min(self.raw.len());
                self.body.extend(self.raw.drain(..n));
                self.framing = Framing::Length(left - n);
                self.done = left == n;
            }
            Framing::Chunks => while !self.done && self.read_chunk() {},
        }
        assert!(!self.done || self.raw.is_empty(), "more than a response: {:?}", self.raw);
    }

    fn read_chunk(&mut self) -> bool {
        let Ok(httparse::Status::Complete((start, size))) = httparse::parse_chunk_size(&self.raw)
        else {
            return false;
        };
        let end = start + usize::try_from(size).unwrap_or(usize::MAX);
        if self.raw.len() < end + 2 {
            return false;
        }
        assert_eq!(&self.raw[end..end + 2], b"\r\n");
        self.body.extend_from_slice(&self.raw[start..end]);
        self.raw.drain(..end + 2);
        self.done = size == 0;
        true
    }

    fn messages(&mut self) -> Vec<Value> {
        if self.field("Content-Type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return self.events();
        }
        if !self.done || self.body.is_empty() {
            return Vec::new();
        }
        let body = std::mem::take(&mut self.body);
        match serde_json::from_slice(&body) {
            Ok(message) => vec![message],
            Err(error) => panic!("{error}: {}", body.escape_ascii()),
        }
    }

    fn events(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(end) = self.body.windows(2).position(|two| two == b"\n\n") {
            let event: Vec<u8> = self.body.drain(..end + 2).collect();
            let Ok(event) = String::from_utf8(event) else { panic!("an event that is no UTF-8") };
            let mut data = String::new();
            for line in event.lines() {
                match line.split_once(": ").or_else(|| line.split_once(':')) {
                    Some(("data", text)) => data.push_str(text),
                    Some(("id", id)) => self.event_ids.push(id.to_owned()),
                    Some(("", _) | ("retry", _)) | None => {}
                    Some(("event", kind)) => assert_eq!(kind, "message"),
                    Some(other) => panic!("an odd field: {other:?}"),
                }
            }
            if data.is_empty() {
                continue;
            }
            match serde_json::from_str(&data) {
                Ok(message) => messages.push(message),
                Err(error) => panic!("{error}: {data}"),
            }
        }
        messages
    }
}
