//! What the modern server's tools mirror into header fields (`x-mcp-header`),
//! remembered from the lists that pass.
//!
//! Needed on both hops: a host's `Mcp-Param-*` are compared with what the tool
//! declares (HDR-14), and towards a URL they are made anew from the body, for
//! hosts on pipes have none (HDR-10). A tool whose declarations are invalid is
//! hidden from hosts of a URL, as a client must (HDR-12).

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::jsonrpc::{elements, get, string, with_member};
use crate::protocol::required_headers::HeaderFault;
use crate::protocol::x_mcp_header::{self, Declaration};

/// Tools with declarations that are remembered, at most.
const TOOLS: usize = 4096;

/// The declarations of the tools that have any, by the tools' names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schemas {
    tools: BTreeMap<String, Vec<Declaration>>,
}

impl Schemas {
    /// Learns from the result of a `tools/list`. If tools had to be dropped, gives
    /// the result without them, and their names.
    pub(crate) fn learn(&mut self, result: &str) -> Option<(String, Vec<String>)> {
        // Nearly no list has any: one search instead of a walk.
        if self.tools.is_empty() {
            memchr::memmem::find(result.as_bytes(), x_mcp_header::KEYWORD.as_bytes())?;
        }
        let tools = get(result, "tools")?;
        let (mut kept, mut dropped) = (Vec::new(), Vec::new());
        for tool in elements(tools) {
            let name = get(tool, "name").and_then(string).unwrap_or_default();
            let schema = get(tool, "inputSchema").unwrap_or("{}");
            match x_mcp_header::declarations(schema) {
                Ok(declarations) => {
                    kept.push(tool);
                    if declarations.is_empty() {
                        self.tools.remove(&*name);
                    } else if self.tools.len() < TOOLS || self.tools.contains_key(&*name) {
                        self.tools.insert(name.into_owned(), declarations);
                    }
                }
                Err(_) => dropped.push(name.into_owned()),
            }
        }
        if dropped.is_empty() {
            return None;
        }
        let mut out = String::with_capacity(result.len());
        with_member(result, "tools", Some(&alloc::format!("[{}]", kept.join(","))), &mut out);
        Some((out, dropped))
    }

    /// What is known of the tool that a `tools/call` names.
    fn of(&self, params: Option<&str>) -> &[Declaration] {
        let name = params.and_then(|params| get(params, "name")).and_then(string);
        name.and_then(|name| self.tools.get(&*name)).map(Vec::as_slice).unwrap_or_default()
    }

    /// Compares a host's `Mcp-Param-*` with the body of its `tools/call`.
    pub(crate) fn check(
        &self,
        params: Option<&str>,
        fields: &[(String, String)],
    ) -> Result<(), HeaderFault> {
        let fields = || fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        x_mcp_header::check_params(fields, params, self.of(params))
    }

    /// The `Mcp-Param-*` towards the server: those that the tool declares, from
    /// the body, and those of the host's that it does not (HDR-16).
    pub(crate) fn fields(
        &self,
        params: Option<&str>,
        theirs: &[(String, String)],
    ) -> Vec<(String, String)> {
        let known = self.of(params);
        let ours = x_mcp_header::mirrored_params(params.unwrap_or("{}"), known)
            .map(|(name, value)| (name.to_string(), value));
        let others = theirs.iter().filter(|(name, _)| {
            !known.iter().any(|declared| declared.header().eq_ignore_ascii_case(name))
        });
        ours.chain(others.cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{"tools":[
        {"name":"a","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}},
        {"name":"b","inputSchema":{"type":"object","properties":{"r":{"type":"number","x-mcp-header":"R"}}}},
        {"name":"c","inputSchema":{"type":"object"}}],"ttlMs":0}"#;

    #[test]
    fn invalid_tools_are_hidden_and_valid_ones_mirrored() {
        let mut schemas = Schemas::default();
        let (list, dropped) = schemas.learn(LIST).unwrap();
        assert_eq!(dropped, ["b"]);
        let names: Vec<_> =
            elements(get(&list, "tools").unwrap()).filter_map(|tool| get(tool, "name")).collect();
        assert_eq!(names, [r#""a""#, r#""c""#]);

        let call = Some(r#"{"name":"a","arguments":{"r":"é"}}"#);
        let field = |name: &str, value: &str| (String::from(name), String::from(value));
        let right = field("mcp-param-region", "=?base64?w6k=?=");
        let other = field("Mcp-Param-Other", "x");
        assert_eq!(schemas.check(call, core::slice::from_ref(&right)), Ok(()));
        assert!(schemas.check(call, &[]).is_err());
        assert!(schemas.check(call, &[field("Mcp-Param-Region", "e")]).is_err());
        assert_eq!(
            schemas.fields(call, &[right, other.clone()]),
            [field("Mcp-Param-Region", "=?base64?w6k=?="), other]
        );
    }

    #[test]
    fn lists_without_declarations_are_left_alone() {
        let mut schemas = Schemas::default();
        assert_eq!(schemas.learn(r#"{"tools":[{"name":"a","inputSchema":{}}]}"#), None);
        assert_eq!(schemas.check(Some(r#"{"name":"a"}"#), &[]), Ok(()));
    }
}
