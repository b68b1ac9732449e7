//! Errors of servers in the words of their hosts (requirements section 6).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::at::At;
use super::rewrite::{quoted, with};
use crate::client::UpstreamId;
use crate::jsonrpc::{code, elements, error_object, get, string};
use crate::protocol::method;

/// What a host needs that is to visit URLs.
const VISITS: &str = r#"{"requiredCapabilities":{"elicitation":{"url":{}}}}"#;

/// An error of a legacy server for a modern host. One that wants URLs to be visited is a
/// question, if the host can be asked that.
pub(super) fn error_for_modern(error: &str) -> String {
    let own = match code_of(error) {
        None => return no_error(error),
        Some(own) => own,
    };
    match own {
        code::RESOURCE_NOT_FOUND => coded(error, code::INVALID_PARAMS),
        code::PARSE_ERROR
        | code::INVALID_REQUEST
        | code::HEADER_MISMATCH
        | code::MISSING_CAPABILITY
        | code::UNSUPPORTED_VERSION => coded(error, code::INTERNAL_ERROR),
        code::URL_ELICITATION_REQUIRED => {
            let message = "Missing required client capability";
            error_object(code::MISSING_CAPABILITY, message, Some(VISITS))
        }
        // Numbers that the modern revision keeps for itself.
        -32099..=-32023 => {
            let data = get(error, "data").filter(|data| data.starts_with('{'));
            let data = with(data.unwrap_or("{}"), "upstreamCode", &own.to_string());
            with(&coded(error, code::INTERNAL_ERROR), "data", &data)
        }
        _ => error.to_string(),
    }
}

/// An error of a modern server for a legacy host.
pub(super) fn error_for_legacy(method: &str, error: &str) -> String {
    let names_uri = get(error, "data").is_some_and(|data| get(data, "uri").is_some());
    match code_of(error) {
        None => no_error(error),
        Some(code::INVALID_PARAMS) if method == method::RESOURCES_READ && names_uri => {
            coded(error, code::RESOURCE_NOT_FOUND)
        }
        Some(
            code::PARSE_ERROR
            | code::INVALID_REQUEST
            | code::HEADER_MISMATCH
            | code::MISSING_CAPABILITY
            | code::UNSUPPORTED_VERSION
            // A modern server does not mean by it what its host would.
            | code::URL_ELICITATION_REQUIRED,
        ) => coded(error, code::INTERNAL_ERROR),
        Some(_) => error.to_string(),
    }
}

impl At<'_> {
    /// An error of a legacy server for a legacy host, if it is not as it came: that URLs
    /// are to be visited first is said in words to those that cannot be asked to.
    pub(super) fn visits_in_words(&self, id: UpstreamId, error: &str) -> Option<String> {
        if code_of(error) != Some(code::URL_ELICITATION_REQUIRED) {
            return None;
        }
        let peer = self.server.links.get(&id).and_then(|link| link.peer);
        let ask = Some(r#"{"mode":"url"}"#);
        if peer.is_some_and(|peer| self.hub.endpoint.may_ask(peer, method::ELICIT, ask).is_ok()) {
            return None;
        }
        let wanted = get(error, "data").and_then(|data| get(data, "elicitations")).unwrap_or("[]");
        let urls = elements(wanted).filter_map(|one| get(one, "url").and_then(string));
        let mut hosts: Vec<String> = urls.filter_map(|url| host(&url).map(String::from)).collect();
        hosts.dedup();
        let why = alloc::format!(
            "{}: something has to be done at {} first, and this host cannot lead its user there",
            self.server.config.name,
            hosts.join(", ")
        );
        Some(with(&coded(error, code::INTERNAL_ERROR), "message", &quoted(&why)))
    }
}

/// The host of a URL, with its port.
fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    rest.split(['/', '?', '#']).next()?.rsplit('@').next()
}

fn code_of(error: &str) -> Option<i32> {
    get(error, "message")?;
    get(error, "code")?.parse().ok()
}

fn coded(error: &str, code: i32) -> String {
    with(error, "code", &code.to_string())
}

fn no_error(error: &str) -> String {
    error_object(
        code::INTERNAL_ERROR,
        "The server answered with an error that is none",
        Some(error),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_said_with_the_codes_of_the_host() {
        let error = |code: i32| error_object(code, "m", Some(r#"{"uri":"u"}"#));
        let code = |error: String| get(&error, "code").map(String::from);
        for (from, to) in [(-32002, "-32602"), (-32601, "-32601"), (-32600, "-32603"), (7, "7")] {
            assert_eq!(code(error_for_modern(&error(from))).as_deref(), Some(to));
        }
        let legacy = |method, from| code(error_for_legacy(method, &error(from)));
        assert_eq!(legacy(method::RESOURCES_READ, -32602).as_deref(), Some("-32002"));
        assert_eq!(legacy(method::TOOLS_CALL, -32602).as_deref(), Some("-32602"));
        assert_eq!(legacy(method::TOOLS_CALL, -32021).as_deref(), Some("-32603"));
        assert_eq!(code(error_for_modern("[]")).as_deref(), Some("-32603"));
    }
}
