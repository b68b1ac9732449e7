//! `${…}` in configuration.

use std::fmt;

/// Why a text cannot be expanded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unexpanded {
    /// This variable is not set, and there is no default.
    Unset(String),
    /// This variable is set to something that is not Unicode.
    NotUnicode(String),
    /// A reference to something else than the environment, such as `input`.
    UnknownKind(String),
}

impl fmt::Display for Unexpanded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset(name) => write!(
                f,
                "the environment variable {name} is not set: set it, or give a default \
                 with ${{{name}:-default}}"
            ),
            Self::NotUnicode(name) => {
                write!(f, "the environment variable {name} is not Unicode text")
            }
            Self::UnknownKind(kind) => write!(
                f,
                "${{{kind}:...}} is not known here: use ${{NAME}} for an environment variable"
            ),
        }
    }
}

/// Looks up an environment variable.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Result<String, std::env::VarError>;

/// Replaces `${NAME}`, `${NAME:-default}` and the same with `env:` before the
/// name. As in a shell, the default also stands in for an empty value. Whatever
/// else has dollars and braces stays as it is; what was put in is not expanded
/// again.
pub(crate) fn expand(text: &str, lookup: Lookup<'_>) -> Result<String, Unexpanded> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once("${") {
        out.push_str(before);
        match from.split_once('}').and_then(|(inside, after)| Some((reference(inside)?, after))) {
            Some((reference, after)) => {
                out.push_str(&reference.value(lookup)?);
                rest = after;
            }
            None => {
                out.push_str("${");
                rest = from;
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

struct Reference<'t> {
    /// What stands before the name, if not `env`.
    kind: Option<&'t str>,
    name: &'t str,
    default: Option<&'t str>,
}

/// Reads what stands between the braces.
fn reference(inside: &str) -> Option<Reference<'_>> {
    let (full, default) = match inside.split_once(":-") {
        Some((full, default)) => (full, Some(default)),
        None => (inside, None),
    };
    match full.split_once(':') {
        Some(("env", name)) if is_name(name) => Some(Reference { kind: None, name, default }),
        Some((kind, name)) if is_name(kind) => Some(Reference { kind: Some(kind), name, default }),
        None if is_name(full) => Some(Reference { kind: None, name: full, default }),
        _ => None,
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl Reference<'_> {
    fn value(&self, lookup: Lookup<'_>) -> Result<String, Unexpanded> {
        if let Some(kind) = self.kind {
            return Err(Unexpanded::UnknownKind(kind.to_string()));
        }
        match (lookup(self.name), self.default) {
            (Ok(value), Some(default)) if value.is_empty() => Ok(default.to_string()),
            (Ok(value), _) => Ok(value),
            (Err(std::env::VarError::NotPresent), Some(default)) => Ok(default.to_string()),
            (Err(std::env::VarError::NotPresent), None) => {
                Err(Unexpanded::Unset(self.name.to_string()))
            }
            (Err(std::env::VarError::NotUnicode(_)), _) => {
                Err(Unexpanded::NotUnicode(self.name.to_string()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::env::VarError;

    use super::*;

    fn lookup(name: &str) -> Result<String, VarError> {
        match name {
            "A" => Ok("1".into()),
            "EMPTY" => Ok(String::new()),
            "NESTED" => Ok("${A}".into()),
            "ODD" => Err(VarError::NotUnicode("x".into())),
            _ => Err(VarError::NotPresent),
        }
    }

    #[test]
    fn variables_and_defaults_are_put_in() {
        for (text, expected) in [
            ("", ""),
            ("plain $A {A}", "plain $A {A}"),
            ("<${A}${env:A}>", "<11>"),
            ("${A:-x}", "1"),
            ("${EMPTY}|${EMPTY:-x}", "|x"),
            ("${NONE:-}${NONE:-http://h:1/}${env:NONE:-d}", "http://h:1/d"),
            ("${NESTED}", "${A}"),
            ("$${A}", "$1"),
            ("${#A} ${} ${1} ${A ${A", "${#A} ${} ${1} ${A ${A"),
            ("${ ${A}", "${ 1"),
        ] {
            assert_eq!(expand(text, &lookup).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(expand("x${NONE}", &lookup), Err(Unexpanded::Unset("NONE".into())));
        assert_eq!(expand("${env:NONE}", &lookup), Err(Unexpanded::Unset("NONE".into())));
        assert_eq!(expand("${ODD:-x}", &lookup), Err(Unexpanded::NotUnicode("ODD".into())));
        assert_eq!(expand("${input:k-1}", &lookup), Err(Unexpanded::UnknownKind("input".into())));
    }
}
