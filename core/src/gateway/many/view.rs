//! How much of a server hosts are shown.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// What hosts see of a server's tools, prompts and resources.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct View {
    /// Of its tools.
    pub tools: Filter,
    /// Of its prompts.
    pub prompts: Filter,
    /// Of its resources and templates, by their URIs: these have no aliases.
    pub resources: Filter,
}

/// What hosts see of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Only what one of these globs (`*`, `?`) matches; everything if there are none.
    pub allow: Vec<String>,
    /// But for what one of these does.
    pub deny: Vec<String>,
    /// Other names, by the server's own.
    pub alias: BTreeMap<String, String>,
    /// Other descriptions, by the server's own names.
    pub describe: BTreeMap<String, String>,
}

impl View {
    /// Whether all is shown as it is.
    pub(in crate::gateway) fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

impl Filter {
    /// Whether hosts may see, and use, what the server calls `name`.
    pub(super) fn allows(&self, name: &str) -> bool {
        let any = |globs: &[String]| globs.iter().any(|glob| matches(glob, name));
        (self.allow.is_empty() || any(&self.allow)) && !any(&self.deny)
    }
}

/// Whether `glob` matches the whole of `text`: `*` any number of characters, `?` one.
fn matches(glob: &str, text: &str) -> bool {
    let (mut glob, mut text) = (glob.chars(), text.chars());
    // Where to go on if what follows the last `*` does not fit here.
    let mut retry = None;
    loop {
        match (glob.next(), text.clone().next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                retry = Some((glob.clone(), text.clone()));
                continue;
            }
            (Some(wanted), Some(char)) if wanted == '?' || wanted == char => {
                text.next();
                continue;
            }
            _ => {}
        }
        let Some((after, mut from)) = retry.take() else { return false };
        if from.next().is_none() {
            return false;
        }
        (glob, text) = (after.clone(), from.clone());
        retry = Some((after, from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names() {
        for (glob, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("a*c", "abcbc", true),
            ("a*c", "abcb", false),
            ("?", "é", true),
            ("?", "", false),
            ("*b?d*", "aabxbcde", true),
            ("file:///*", "file:///x/y", true),
            ("**a", "ba", true),
        ] {
            assert_eq!(matches(glob, text), expected, "{glob} {text}");
        }
    }
}
