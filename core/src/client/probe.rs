//! The question that tells the eras apart, `server/discover`, and what its answer
//! says (2026-07-28 `basic/versioning`).

use alloc::string::String;

use super::failure::Failure;
use crate::jsonrpc::{Message, code, elements, get, string};
use crate::protocol::meta;
use crate::protocol::revision::{Era, Revision};

/// What a server is taken to speak, whatever it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protocol {
    /// It is asked.
    #[default]
    Auto,
    /// The modern revision: nobody asks first.
    Modern,
    /// Revisions that begin with `initialize`.
    Legacy,
    /// This legacy revision is what it is offered.
    Exactly(Revision),
}

impl Protocol {
    /// Reads `auto`, `modern`, `legacy`, or a revision.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "modern" => Some(Self::Modern),
            "legacy" => Some(Self::Legacy),
            date => Revision::parse(date).map(|revision| match revision.era() {
                Era::Modern => Self::Modern,
                Era::Legacy => Self::Exactly(revision),
            }),
        }
    }

    /// The era, if it is not asked for.
    pub fn era(self) -> Option<Era> {
        match self {
            Self::Auto => None,
            Self::Modern => Some(Era::Modern),
            Self::Legacy | Self::Exactly(_) => Some(Era::Legacy),
        }
    }

    /// What `initialize` offers.
    pub fn offer(self) -> Revision {
        match self {
            Self::Exactly(revision) => revision,
            Self::Auto | Self::Modern | Self::Legacy => Revision::NEWEST_LEGACY,
        }
    }
}

/// What a server speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// A modern revision that we share.
    Modern,
    /// It refused the question, and names a revision that we share: it is to be
    /// asked with that, once.
    Again,
    /// Revisions that begin with `initialize`.
    Legacy,
    /// Only revisions that came after ours. No reason to fall back.
    Later,
    /// A modern one, and it does not like our request. No reason to fall back.
    Refused,
}

/// What every modern request of ours has in its `_meta`.
pub fn metadata() -> String {
    alloc::format!(
        r#"{{"{}":"{}","{}":{},"{}":{{}}}}"#,
        meta::PROTOCOL_VERSION,
        Revision::NEWEST_MODERN,
        meta::CLIENT_INFO,
        meta::IDENTITY,
        meta::CLIENT_CAPABILITIES
    )
}

/// The parameters of the question.
pub fn params() -> String {
    alloc::format!(r#"{{"_meta":{}}}"#, metadata())
}

/// Reads the answer. Any that no modern server would give comes from a legacy one.
pub fn judge(message: &Message<'_>) -> Verdict {
    if let Some(result) = message.result() {
        return get(result, "supportedVersions").map_or(Verdict::Legacy, among);
    }
    let error = message.error().unwrap_or("{}");
    let code = get(error, "code").and_then(|raw| raw.parse().ok()).unwrap_or(0);
    match code {
        code::UNSUPPORTED_VERSION => {
            let supported = get(error, "data").and_then(|data| get(data, "supported"));
            match supported.map_or(Verdict::Legacy, among) {
                Verdict::Modern => Verdict::Again,
                other => other,
            }
        }
        code::HEADER_MISMATCH | code::MISSING_CAPABILITY => Verdict::Refused,
        _ => Verdict::Legacy,
    }
}

/// What it says that no answer came, if anything.
pub fn judge_failure(failure: &Failure, pipe: bool) -> Option<Verdict> {
    match failure {
        // Some servers quit on any request before `initialize`.
        failure if pipe && failure.is_end() => Some(Verdict::Legacy),
        Failure::Status(400 | 404 | 405) => Some(Verdict::Legacy),
        // A locked door or a broken server says nothing about revisions.
        _ => None,
    }
}

/// What a server speaks that supports these versions, a JSON array.
fn among(versions: &str) -> Verdict {
    let (mut any, mut legacy) = (false, false);
    for version in elements(versions).filter_map(string) {
        any = true;
        if version == Revision::NEWEST_MODERN.as_str() {
            return Verdict::Modern;
        }
        legacy |= Revision::parse_legacy(&version).is_some();
    }
    if legacy || !any { Verdict::Legacy } else { Verdict::Later }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::Cow;
    use alloc::format;

    use super::*;
    use crate::driver::ExitStatus;
    use crate::jsonrpc::{Incoming, Limits};

    fn judged(member: &str) -> Verdict {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,{member}}}"#);
        match Message::parse(Cow::Owned(text.into_bytes()), &Limits::DEFAULT) {
            Ok(Incoming::Message(message)) => judge(&message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn answers() {
        let refused = |code: i32, data: &str| {
            judged(&format!(r#""error":{{"code":{code},"message":"m","data":{data}}}"#))
        };
        let results = [
            (r#"{"supportedVersions":["2027-01-01","2026-07-28"]}"#, Verdict::Modern),
            (r#"{"supportedVersions":["2027-01-01"]}"#, Verdict::Later),
            (r#"{"supportedVersions":["2025-11-25"]}"#, Verdict::Legacy),
            (r#"{"supportedVersions":[]}"#, Verdict::Legacy),
            ("{}", Verdict::Legacy),
        ];
        for (result, verdict) in results {
            assert_eq!(judged(&format!(r#""result":{result}"#)), verdict, "{result}");
        }
        assert_eq!(refused(-32022, r#"{"supported":["2026-07-28"]}"#), Verdict::Again);
        assert_eq!(refused(-32022, r#"{"supported":["2027-01-01"]}"#), Verdict::Later);
        assert_eq!(refused(-32022, r#"{"supported":["2025-11-25"]}"#), Verdict::Legacy);
        assert_eq!(refused(-32022, "{}"), Verdict::Legacy);
        assert_eq!(refused(-32020, "{}"), Verdict::Refused);
        assert_eq!(refused(-32021, "{}"), Verdict::Refused);
        for code in [-32601, -32602, -32600, 0] {
            assert_eq!(refused(code, "{}"), Verdict::Legacy);
        }
    }

    #[test]
    fn failures() {
        let exited = Failure::Exited(ExitStatus::Code(1), String::new());
        assert_eq!(judge_failure(&exited, true), Some(Verdict::Legacy));
        for status in [400, 404, 405] {
            assert_eq!(judge_failure(&Failure::Status(status), false), Some(Verdict::Legacy));
        }
        for failure in [Failure::Status(401), Failure::Status(403), Failure::Status(503)] {
            assert_eq!(judge_failure(&failure, false), None);
        }
        assert_eq!(judge_failure(&Failure::Broken, false), None);
    }
}
