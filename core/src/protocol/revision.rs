//! The five revisions and the two eras.

use core::fmt;

/// A revision of the Model Context Protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Revision {
    /// 2024-11-05: the first, with HTTP+SSE.
    R2024_11_05,
    /// 2025-03-26: Streamable HTTP, batches.
    R2025_03_26,
    /// 2025-06-18: elicitation, structured output, no batches.
    R2025_06_18,
    /// 2025-11-25: tasks, URL elicitation, polling streams.
    R2025_11_25,
    /// 2026-07-28: no handshake, no sessions; metadata on every request.
    R2026_07_28,
}

/// How a peer speaks: with a handshake, or with metadata on every request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Era {
    /// 2024-11-05 to 2025-11-25: `initialize`, sessions, requests both ways.
    Legacy,
    /// 2026-07-28: every request stands alone.
    Modern,
}

impl Revision {
    /// All of them, oldest first.
    pub const ALL: [Self; 5] = [
        Self::R2024_11_05,
        Self::R2025_03_26,
        Self::R2025_06_18,
        Self::R2025_11_25,
        Self::R2026_07_28,
    ];
    /// The newest that begins with `initialize`.
    pub const NEWEST_LEGACY: Self = Self::R2025_11_25;
    /// The newest that does not.
    pub const NEWEST_MODERN: Self = Self::R2026_07_28;
    /// What a legacy request over HTTP is written in that says nothing about it
    /// (2025-06-18 and 2025-11-25 `basic/transports`).
    pub const UNNAMED: Self = Self::R2025_03_26;
    /// What `-32022` and `server/discover` list: the versions that work with
    /// metadata on every request, as a JSON array.
    pub const MODERN_LIST: &str = r#"["2026-07-28"]"#;

    /// The date that names it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::R2024_11_05 => "2024-11-05",
            Self::R2025_03_26 => "2025-03-26",
            Self::R2025_06_18 => "2025-06-18",
            Self::R2025_11_25 => "2025-11-25",
            Self::R2026_07_28 => "2026-07-28",
        }
    }

    /// The revision that `date` names.
    pub fn parse(date: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == date)
    }

    /// Its era.
    pub const fn era(self) -> Era {
        match self {
            Self::R2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// The legacy revision that `date` names.
    pub fn parse_legacy(date: &str) -> Option<Self> {
        Self::parse(date).filter(|revision| revision.era() == Era::Legacy)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        assert_eq!(Revision::parse("1999-01-01"), None);
        assert_eq!(Revision::parse_legacy("2026-07-28"), None);
    }
}
