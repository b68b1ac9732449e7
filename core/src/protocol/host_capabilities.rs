//! What a legacy host has declared that it can do, and so may be asked for
//! (2025-11-25 `basic/lifecycle`, "Capability Negotiation"; LIF-08).

use crate::jsonrpc::{code, get, string};
use crate::protocol::fault::Fault;
use crate::protocol::method;
use crate::protocol::revision::Revision;

/// The capabilities of a legacy host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostCapabilities {
    roots: bool,
    sampling: bool,
    /// Whether its model may be given tools.
    tools: bool,
    /// Whether it shows forms to its user.
    forms: bool,
    /// Whether it leads its user to URLs.
    urls: bool,
}

impl HostCapabilities {
    /// What `declared`, the raw `capabilities` of `initialize`, means in a
    /// revision. What that does not know counts for nothing.
    pub fn of(revision: Revision, declared: &str) -> Self {
        let object = |of, name| get(of, name).filter(|value| value.starts_with('{'));
        let sampling = object(declared, "sampling");
        let newest = revision >= Revision::R2025_11_25;
        let elicitation =
            object(declared, "elicitation").filter(|_| revision >= Revision::R2025_06_18);
        let urls = newest && elicitation.is_some_and(|modes| object(modes, "url").is_some());
        Self {
            roots: object(declared, "roots").is_some(),
            sampling: sampling.is_some(),
            tools: newest && sampling.is_some_and(|with| object(with, "tools").is_some()),
            // An empty object means forms (2025-11-25 `client/elicitation`).
            forms: elicitation.is_some_and(|modes| !urls || object(modes, "form").is_some()),
            urls,
        }
    }

    /// Whether the host may be asked this. Otherwise the answer that such a host
    /// would give. Methods that need no capability may always be asked.
    pub fn allow(self, method: &str, params: Option<&str>) -> Result<(), Fault> {
        let given = |name| params.and_then(|params| get(params, name));
        let undeclared = || {
            let name = method.split('/').next().unwrap_or_default();
            let why = alloc::format!("The host has not declared the capability `{name}`");
            Fault::new(code::METHOD_NOT_FOUND, &why)
        };
        let lacking = |what| {
            let why = alloc::format!("The host has not declared that it supports {what}");
            Fault::new(code::INVALID_PARAMS, &why)
        };
        match method {
            method::LIST_ROOTS if !self.roots => Err(undeclared()),
            method::SAMPLE if !self.sampling => Err(undeclared()),
            method::SAMPLE if !self.tools && given("tools").or(given("toolChoice")).is_some() => {
                Err(lacking("tools in sampling"))
            }
            method::ELICIT if !self.forms && !self.urls => Err(undeclared()),
            method::ELICIT => match given("mode").and_then(string).as_deref() {
                Some("url") if !self.urls => Err(lacking("elicitation with URLs")),
                Some("url") => Ok(()),
                _ if !self.forms => Err(lacking("elicitation with forms")),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: (&str, &str) = (method::ELICIT, "{}");
    const URL: (&str, &str) = (method::ELICIT, r#"{"mode":"url"}"#);
    const SAMPLE: (&str, &str) = (method::SAMPLE, "{}");
    const TOOLS: (&str, &str) = (method::SAMPLE, r#"{"tools":[]}"#);
    const ROOTS: (&str, &str) = (method::LIST_ROOTS, "{}");

    fn code(revision: Revision, declared: &str, ask: (&str, &str)) -> i32 {
        let allowed = HostCapabilities::of(revision, declared).allow(ask.0, Some(ask.1));
        allowed.err().map_or(0, |fault| fault.code)
    }

    #[test]
    fn lif_08_only_what_was_declared_is_asked() {
        let newest = Revision::R2025_11_25;
        for ask in [FORM, URL, SAMPLE, TOOLS, ROOTS] {
            assert_eq!(code(newest, "{}", ask), -32601);
            assert_eq!(
                code(newest, r#"{"roots":null,"sampling":1,"elicitation":true}"#, ask),
                -32601
            );
        }
        assert_eq!(code(newest, "{}", (method::PING, "{}")), 0);
        assert_eq!(code(newest, r#"{"roots":{}}"#, ROOTS), 0);
        assert_eq!(code(newest, r#"{"sampling":{}}"#, SAMPLE), 0);
        assert_eq!(code(newest, r#"{"sampling":{}}"#, TOOLS), -32602);
        assert_eq!(code(newest, r#"{"sampling":{"tools":{}}}"#, TOOLS), 0);
    }

    #[test]
    fn elicitation_has_two_modes_and_forms_are_the_default() {
        let newest = Revision::R2025_11_25;
        for (declared, form, url) in [
            (r#"{"elicitation":{}}"#, 0, -32602),
            (r#"{"elicitation":{"form":{}}}"#, 0, -32602),
            (r#"{"elicitation":{"url":{}}}"#, -32602, 0),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, 0, 0),
        ] {
            assert_eq!((code(newest, declared, FORM), code(newest, declared, URL)), (form, url));
        }
        let both = r#"{"elicitation":{"url":{}},"sampling":{"tools":{}}}"#;
        assert_eq!(code(Revision::R2025_06_18, both, FORM), 0);
        assert_eq!(code(Revision::R2025_06_18, both, URL), -32602);
        assert_eq!(code(Revision::R2025_06_18, both, TOOLS), -32602);
        assert_eq!(code(Revision::R2025_03_26, both, FORM), -32601);
    }
}
