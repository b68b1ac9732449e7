//! The cases of `corpora/mcp-headers`, every one of them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpx_core::protocol::header_value;
use mcpx_core::protocol::meta;
use mcpx_core::protocol::required_headers::{self, HeaderFault};
use mcpx_core::protocol::x_mcp_header::{self, Declaration};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

/// The folder of the cases, or nothing where only the project is there.
fn corpus() -> Option<PathBuf> {
    let found = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("shared/corpora"))
        .find(|folder| folder.is_dir());
    if found.is_none() {
        eprintln!("skipped: there is no shared/corpora");
    }
    found.map(|folder| folder.join("mcp-headers"))
}

fn cases<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let Some(folder) = corpus() else { return Vec::new() };
    let text = fs::read_to_string(folder.join(file)).expect("the file of the cases");
    let cases: Vec<T> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(!cases.is_empty(), "{file} has no cases");
    cases
}

#[derive(Deserialize)]
struct Encode {
    id: String,
    value: Box<RawValue>,
    header: Option<String>,
    header_any_of: Option<Vec<Option<String>>>,
}

#[test]
fn values_become_headers() {
    for case in cases::<Encode>("encode.jsonl") {
        let got = header_value::encode_json(case.value.get()).map(Cow::into_owned);
        let allowed = case.header_any_of.unwrap_or_else(|| vec![case.header]);
        assert!(allowed.contains(&got), "{}: {got:?}", case.id);
        if let Ok(text) = serde_json::from_str::<String>(case.value.get()) {
            assert_eq!(Some(header_value::encode(&text).into_owned()), got, "{}", case.id);
        }
        // What we send, we take.
        if let Some(field) = got {
            let text = header_value::decode(field.as_bytes()).unwrap();
            assert!(header_value::matches(&text, case.value.get()), "{}", case.id);
        }
    }
}

#[derive(Deserialize)]
struct Decode {
    id: String,
    header_b64: String,
    result: String,
    value: Option<String>,
    #[serde(default)]
    either: bool,
}

#[test]
fn headers_become_values() {
    for case in cases::<Decode>("decode.jsonl") {
        let field = STANDARD.decode(&case.header_b64).unwrap();
        let got = header_value::decode(&field);
        let right = match case.result.as_str() {
            "value" => got.as_deref().ok() == case.value.as_deref(),
            "reject" => got.is_err(),
            other => panic!("{}: unknown result {other}", case.id),
        };
        assert!(right || case.either, "{}: {got:?}", case.id);
    }
}

#[derive(Deserialize)]
struct Schema {
    id: String,
    input_schema: Box<RawValue>,
    valid: Value,
    declarations: Option<Vec<(Vec<String>, String)>>,
}

#[test]
fn schemas_declare_headers() {
    for case in cases::<Schema>("schema.jsonl") {
        let got = x_mcp_header::declarations(case.input_schema.get());
        match &case.valid {
            Value::Bool(true) => {
                let got = got.unwrap_or_else(|reason| panic!("{}: {reason}", case.id));
                let mut got: Vec<_> = got.into_iter().map(|d| (d.path, d.name)).collect();
                let mut expected = case.declarations.expect("declarations");
                got.sort();
                expected.sort();
                assert_eq!(got, expected, "{}", case.id);
            }
            Value::Bool(false) => assert!(got.is_err(), "{}: {got:?}", case.id),
            Value::String(either) if either == "either" => {}
            other => panic!("{}: unknown validity {other}", case.id),
        }
    }
}

#[derive(Deserialize)]
struct Client {
    id: String,
    method: String,
    params: Box<RawValue>,
    input_schema: Option<Box<RawValue>>,
    headers: Vec<(String, String)>,
    absent: Vec<String>,
}

#[test]
fn clients_repeat_what_they_must() {
    for case in cases::<Client>("client.jsonl") {
        let declarations = declarations(case.input_schema.as_deref());
        let sent = required_headers::mirrored(&case.method, Some(case.params.get()), &declarations);
        let value = |wanted: &str| {
            let mut of_name = sent.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
            let value = of_name.next().map(|(_, value)| value.as_str());
            assert_eq!(of_name.next(), None, "{}: {wanted} is sent twice", case.id);
            value
        };
        for (name, expected) in &case.headers {
            assert_eq!(value(name), Some(expected.as_str()), "{}: {name}", case.id);
        }
        for name in &case.absent {
            assert_eq!(value(name), None, "{}: {name}", case.id);
        }
    }
}

fn declarations(input_schema: Option<&RawValue>) -> Vec<Declaration> {
    input_schema.map_or_else(Vec::new, |schema| {
        x_mcp_header::declarations(schema.get()).expect("a valid schema")
    })
}

#[derive(Deserialize)]
struct Validate {
    id: String,
    headers: Vec<(String, String)>,
    body: Box<RawValue>,
    body_raw: Option<String>,
    input_schema: Option<Box<RawValue>>,
    verdict: String,
    #[serde(default)]
    either: bool,
    code: Option<Value>,
}

#[derive(Deserialize)]
struct Request<'a> {
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// The rules, beyond the comparison of headers, that some of the cases of
/// `validate.jsonl` are about. They belong to the endpoint, which asks for the
/// headers only where they do not decide before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum EndpointRule {
    /// A response is posted: there is no method to compare.
    NotARequest,
    /// `_meta` has no protocol version: the request is legacy, or refused.
    NoClaim,
    /// The headers are right, and the request is refused for something else:
    /// its capabilities, its method, its params.
    AfterHeaders,
}

#[test]
fn servers_compare_headers_with_the_body() {
    let cases = cases::<Validate>("validate.jsonl");
    let skipped = cases.is_empty();
    let mut left_to_the_endpoint = BTreeMap::<EndpointRule, usize>::new();
    for case in cases {
        if let Some(rule) = judge(&case) {
            *left_to_the_endpoint.entry(rule).or_default() += 1;
        }
    }
    if !skipped {
        let rules: Vec<_> = left_to_the_endpoint.iter().map(|(rule, n)| (*rule, *n > 0)).collect();
        assert_eq!(
            rules,
            [
                (EndpointRule::NotARequest, true),
                (EndpointRule::NoClaim, true),
                (EndpointRule::AfterHeaders, true),
            ]
        );
    }
}

/// Checks a case, and tells which rule of the endpoint it needs besides.
fn judge(case: &Validate) -> Option<EndpointRule> {
    let id = &case.id;
    let body = case.body_raw.as_deref().unwrap_or(case.body.get());
    let request: Request<'_> = serde_json::from_str(body).expect(id);
    let Some(method) = request.method else {
        return Some(EndpointRule::NotARequest);
    };
    let params = request.params.map(RawValue::get);
    if meta::claim(params).is_none() {
        return Some(EndpointRule::NoClaim);
    }

    let fields = || case.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let declarations = declarations(case.input_schema.as_deref());
    let got = required_headers::check(fields, method, params)
        .and_then(|()| x_mcp_header::check_params(fields, params, &declarations));
    match case.verdict.as_str() {
        "accept" => assert!(got.is_ok() || case.either, "{id}: {got:?}"),
        "either" => {}
        "reject" if may_be_header_mismatch(case) => {
            assert!(is_refusal(&got), "{id}: the headers pass");
        }
        "reject" => {
            assert_eq!(got, Ok(()), "{id}: the headers are right");
            return Some(EndpointRule::AfterHeaders);
        }
        other => panic!("{id}: unknown verdict {other}"),
    }
    None
}

fn may_be_header_mismatch(case: &Validate) -> bool {
    let mismatch = Value::from(-32020);
    match case.code.as_ref().expect("a code") {
        Value::Array(codes) => codes.contains(&mismatch),
        code => *code == mismatch,
    }
}

fn is_refusal(got: &Result<(), HeaderFault>) -> bool {
    got.as_ref().is_err_and(|fault| !fault.to_string().is_empty())
}
