//! `x-mcp-header`: arguments of a tool that its calls repeat in
//! `Mcp-Param-…` headers (2026-07-28 `basic/transports/streamable-http`,
//! "Custom Headers from Tool Parameters"; `server/tools`).

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::jsonrpc::{elements, get, members, string};
use crate::protocol::header_value::encode_json;
use crate::protocol::required_headers::{Field, Header, HeaderFault, compare, only};

/// The schema keyword.
pub const KEYWORD: &str = "x-mcp-header";

/// What the names of the headers begin with.
pub const PREFIX: &str = "Mcp-Param-";

/// The most annotations in one schema: a request head must hold all of them.
pub const MAX_DECLARATIONS: usize = 64;

/// How deep the schemas of an annotated tool may nest.
pub const MAX_DEPTH: usize = 64;

/// An argument that calls repeat in a header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// Where the argument is: member names, from the arguments object inwards.
    /// Never empty.
    pub path: Vec<String>,
    /// The name of the header without `Mcp-Param-`: a token (RFC 9110 5.6.2).
    pub name: String,
}

impl Declaration {
    /// The whole name of the header.
    pub fn header(&self) -> String {
        let mut name = String::with_capacity(PREFIX.len() + self.name.len());
        name.push_str(PREFIX);
        name.push_str(&self.name);
        name
    }

    /// The argument's raw value, if `params` of a call have one.
    fn value<'p>(&self, params: &'p str) -> Option<&'p str> {
        let arguments = get(params, "arguments")?;
        let value = self.path.iter().try_fold(arguments, |object, member| get(object, member))?;
        (value != "null").then_some(value)
    }
}

/// Why a tool's annotations, and with them the tool, are invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Invalid {
    /// A name is empty, not a string, or not a token.
    Name,
    /// Two names differ at most in case.
    Duplicate,
    /// An annotated property is not declared as string, integer or boolean (or
    /// as one of them and null).
    Type,
    /// An annotation stands at the root, or cannot be reached from there
    /// through `properties` alone.
    Place,
    /// More than [`MAX_DECLARATIONS`] annotations.
    TooMany,
    /// Schemas nest deeper than [`MAX_DEPTH`].
    TooDeep,
    /// A property's name is not Unicode text.
    Text,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "an x-mcp-header is not a header name",
            Self::Duplicate => "two properties have the same x-mcp-header",
            Self::Type => "a property with x-mcp-header is not a string, integer or boolean",
            Self::Place => "an x-mcp-header is not on a property reached through properties alone",
            Self::TooMany => "there are too many x-mcp-header annotations",
            Self::TooDeep => "the schema nests too deep",
            Self::Text => "a property has a name that is not Unicode",
        })
    }
}

/// The annotations of a tool's `inputSchema`, which must be valid JSON text.
pub fn declarations(input_schema: &str) -> Result<Vec<Declaration>, Invalid> {
    let mut walk = Walk::default();
    if may_be_annotated(input_schema) {
        walk.schema(input_schema, Place::Root, 0)?;
    }
    Ok(walk.found)
}

/// Most schemas have no annotation, and need not be read to know it: the
/// keyword stands in the text as it is, or with an escape in it.
fn may_be_annotated(input_schema: &str) -> bool {
    let has = |needle: &str| memchr::memmem::find(input_schema.as_bytes(), needle.as_bytes());
    has(KEYWORD).or_else(|| has("\\u")).is_some()
}

/// Where in the root schema another one stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// At the end of a chain of `properties`.
    Property,
    Elsewhere,
}

/// A reading of one schema.
#[derive(Default)]
struct Walk {
    found: Vec<Declaration>,
    /// The names found, in lower case.
    names: BTreeSet<String>,
    /// The property that is being read.
    path: Vec<String>,
}

impl Walk {
    fn schema(&mut self, schema: &str, place: Place, depth: usize) -> Result<(), Invalid> {
        if depth > MAX_DEPTH {
            return Err(Invalid::TooDeep);
        }
        if let Some(annotation) = get(schema, KEYWORD) {
            if place != Place::Property {
                return Err(Invalid::Place);
            }
            self.annotation(annotation, get(schema, "type"))?;
        }
        // `true` and `false` are schemas, too, without members.
        for (keyword, value) in members(schema) {
            let keyword = keyword.decoded().unwrap_or_default();
            match (Contents::of(&keyword), place) {
                (Contents::Data, _) => {}
                (Contents::Properties, Place::Root | Place::Property) => {
                    for (name, schema) in members(value) {
                        self.path.push(name.decoded().ok_or(Invalid::Text)?.into_owned());
                        self.schema(schema, Place::Property, depth + 1)?;
                        self.path.pop();
                    }
                }
                (Contents::Schemas, _) if value.starts_with('[') => {
                    for schema in elements(value) {
                        self.schema(schema, Place::Elsewhere, depth + 1)?;
                    }
                }
                (Contents::Schemas, _) => {
                    self.schema(value, Place::Elsewhere, depth + 1)?;
                }
                (Contents::NamedSchemas | Contents::Properties, _) => {
                    for (_, schema) in members(value) {
                        self.schema(schema, Place::Elsewhere, depth + 1)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn annotation(&mut self, name: &str, declared: Option<&str>) -> Result<(), Invalid> {
        let name = string(name).filter(|name| is_token(name)).ok_or(Invalid::Name)?;
        if !declared.is_some_and(is_primitive) {
            return Err(Invalid::Type);
        }
        if !self.names.insert(name.to_ascii_lowercase()) {
            return Err(Invalid::Duplicate);
        }
        if self.found.len() == MAX_DECLARATIONS {
            return Err(Invalid::TooMany);
        }
        self.found.push(Declaration { path: self.path.clone(), name: name.into_owned() });
        Ok(())
    }
}

/// What the value of a schema keyword holds.
enum Contents {
    /// No schema.
    Data,
    /// A schema, or an array of them.
    Schemas,
    /// An object whose values are schemas.
    NamedSchemas,
    /// The same, for the members of an object.
    Properties,
}

impl Contents {
    /// The keywords of JSON Schema 2020-12 and their elders.
    fn of(keyword: &str) -> Self {
        match keyword {
            "properties" => Self::Properties,
            "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties" => {
                Self::NamedSchemas
            }
            "additionalItems"
            | "additionalProperties"
            | "allOf"
            | "anyOf"
            | "contains"
            | "contentSchema"
            | "else"
            | "if"
            | "items"
            | "not"
            | "oneOf"
            | "prefixItems"
            | "propertyNames"
            | "then"
            | "unevaluatedItems"
            | "unevaluatedProperties" => Self::Schemas,
            _ => Self::Data,
        }
    }
}

/// Whether `type`, as raw JSON, allows nothing but one of the three types that
/// a header can carry, and perhaps null, for which there is no header.
fn is_primitive(declared: &str) -> bool {
    let is = |raw: &str, names: &[&str]| string(raw).is_some_and(|name| names.contains(&&*name));
    let primitives = ["string", "integer", "boolean"];
    let mut types = elements(declared).filter(|raw| !is(raw, &["null"]));
    match (types.next(), types.next()) {
        (Some(only), None) => is(only, &primitives),
        _ => is(declared, &primitives),
    }
}

/// RFC 9110 5.6.2: `1*tchar`.
fn is_token(name: &str) -> bool {
    let is_tchar = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(is_tchar)
}

/// The `Mcp-Param-…` headers of a call with these `params`.
pub(crate) fn mirrored_params(
    params: &str,
    declarations: &[Declaration],
) -> impl Iterator<Item = (Cow<'static, str>, String)> {
    declarations.iter().filter_map(move |declaration| {
        let value = encode_json(declaration.value(params)?)?;
        Some((Cow::Owned(declaration.header()), value.into_owned()))
    })
}

/// Compares the `Mcp-Param-…` headers that a tool declares with the `params`
/// of a call. Others are ignored.
pub fn check_params<'a, I: Iterator<Item = Field<'a>>>(
    fields: impl Fn() -> I,
    params: Option<&str>,
    declarations: &[Declaration],
) -> Result<(), HeaderFault> {
    for declaration in declarations {
        let wanted = declaration.header();
        let header = || Header::Param(wanted.clone());
        let value = params.and_then(|params| declaration.value(params));
        compare(only(&fields, &wanted, header)?, value, header)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(schema: &str) -> Result<Vec<(String, String)>, Invalid> {
        let declarations = declarations(schema)?;
        Ok(declarations.into_iter().map(|d| (d.path.join("/"), d.name)).collect())
    }

    #[test]
    fn properties_lead_to_declarations() {
        let schema = r#"{"type":"object","properties":{
            "a":{"type":"string","x-mcp-header":"A"},
            "o":{"type":"object","properties":{"n.m":{"type":"integer","x-mcp-\u0068eader":"N"}}},
            "p":{"type":["boolean","null"],"x-mcp-header":"P"}}}"#;
        let expected = [("a", "A"), ("o/n.m", "N"), ("p", "P")];
        assert_eq!(found(schema), Ok(expected.map(|(p, n)| (p.into(), n.into())).to_vec()));
    }

    #[test]
    fn data_and_names_are_no_annotations() {
        for schema in [
            r#"{"properties":{"a":{"default":{"x-mcp-header":"A"}}}}"#,
            r#"{"properties":{"a":{"examples":[{"x-mcp-header":"A"}]}}}"#,
            r#"{"properties":{"x-mcp-header":{"type":"string"}}}"#,
            r#"{"$defs":{"x-mcp-header":{"type":"string"}}}"#,
            r#"{"properties":true,"x":"x-mcp-header"}"#,
        ] {
            assert_eq!(found(schema), Ok(Vec::new()), "{schema}");
        }
    }

    #[test]
    fn hdr_11_each_rule_has_its_reason() {
        let cases = [
            (r#"{"x-mcp-header":"A"}"#, Invalid::Place),
            (r#"{"items":{"x-mcp-header":"A"}}"#, Invalid::Place),
            (r#"{"$defs":{"T":{"type":"string","x-mcp-header":"A"}}}"#, Invalid::Place),
            (r#"{"anyOf":[{"properties":{"a":{"x-mcp-header":"A"}}}]}"#, Invalid::Place),
            (r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#, Invalid::Name),
            (r#"{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}"#, Invalid::Name),
            (r#"{"properties":{"a":{"type":"string","x-mcp-header":7}}}"#, Invalid::Name),
            (r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#, Invalid::Type),
            (r#"{"properties":{"a":{"x-mcp-header":"A"}}}"#, Invalid::Type),
            (r#"{"properties":{"a":{"type":["null"],"x-mcp-header":"A"}}}"#, Invalid::Type),
            (
                r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},
                    "b":{"type":"string","x-mcp-header":"a"}}}"#,
                Invalid::Duplicate,
            ),
            (r#"{"properties":{"\ud800":{"type":"string","x-mcp-header":"A"}}}"#, Invalid::Text),
        ];
        for (schema, reason) in cases {
            assert_eq!(found(schema), Err(reason), "{schema}");
        }
    }

    #[test]
    fn number_and_depth_are_bounded() {
        let wide = |n: usize| {
            let properties: Vec<_> = (0..n)
                .map(|i| alloc::format!(r#""p{i}":{{"type":"string","x-mcp-header":"P{i}"}}"#))
                .collect();
            alloc::format!(r#"{{"properties":{{{}}}}}"#, properties.join(","))
        };
        assert_eq!(found(&wide(MAX_DECLARATIONS)).map(|d| d.len()), Ok(MAX_DECLARATIONS));
        assert_eq!(found(&wide(MAX_DECLARATIONS + 1)), Err(Invalid::TooMany));

        let deep = |n: usize| {
            let leaf = r#"{"type":"string","x-mcp-header":"A"}"#;
            let open = r#"{"properties":{"p":"#.repeat(n);
            open + leaf + &"}}".repeat(n)
        };
        assert_eq!(found(&deep(MAX_DEPTH)).map(|d| d.len()), Ok(1));
        assert_eq!(found(&deep(MAX_DEPTH + 1)), Err(Invalid::TooDeep));
    }

    #[test]
    fn hdr_09_and_14_declared_headers_must_repeat_the_arguments() {
        let schema = r#"{"properties":{"n":{"type":"integer","x-mcp-header":"N"}}}"#;
        let declarations = declarations(schema).unwrap();
        let check = |values: &[&str], params: &str| {
            let fields = || values.iter().map(|value| ("mcp-param-n", value.as_bytes()));
            check_params(fields, Some(params), &declarations)
        };
        let header = Header::Param("Mcp-Param-N".into());
        assert_eq!(check(&["42.0"], r#"{"arguments":{"n":42}}"#), Ok(()));
        assert_eq!(check(&[], r#"{"arguments":{"n":null}}"#), Ok(()));
        assert_eq!(check(&[], r#"{"arguments":"n"}"#), Ok(()));
        assert_eq!(
            check(&[], r#"{"arguments":{"n":42}}"#),
            Err(HeaderFault::Missing(header.clone()))
        );
        assert_eq!(
            check(&["42"], r#"{"arguments":{}}"#),
            Err(HeaderFault::Mismatch(header.clone()))
        );
        assert_eq!(
            check(&["=?base64?!?="], r#"{"arguments":{"n":42}}"#),
            Err(HeaderFault::Malformed(header.clone()))
        );
        assert_eq!(
            check(&["42", "42"], r#"{"arguments":{"n":42}}"#),
            Err(HeaderFault::Duplicate(header))
        );
    }
}
