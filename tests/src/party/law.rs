//! What may be said in which revision: the methods that it knows, and its JSON schema
//! where the specification is at hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use jsonschema::Validator;
use mcpx_core::protocol::revision::{Era, Revision};
use serde_json::{Value, json};

/// The schemas of all revisions, and what was made of them.
struct Schemas {
    texts: BTreeMap<Revision, Value>,
    made: Mutex<BTreeMap<(Revision, String), &'static Validator>>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/spec")
}

fn schemas() -> Option<&'static Schemas> {
    static ALL: OnceLock<Option<Schemas>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let read = |revision: Revision| {
            let path = folder().join(revision.as_str()).join("schema.json");
            let text = std::fs::read_to_string(path).ok()?;
            Some((revision, serde_json::from_str(&text).ok()?))
        };
        let texts = Revision::ALL.into_iter().map(read).collect::<Option<_>>()?;
        Some(Schemas { texts, made: Mutex::default() })
    });
    all.as_ref()
}

/// Whether messages are checked by schemas, too.
pub fn schemas_are_here() -> bool {
    schemas().is_some()
}

impl Schemas {
    /// What checks this definition of a revision.
    fn of(&self, revision: Revision, name: &str) -> Option<&'static Validator> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (revision, name.to_owned());
        if let Some(found) = made.get(&key) {
            return Some(found);
        }
        let mut schema = self.texts.get(&revision)?.clone();
        let place = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
        schema[place].get(name)?;
        schema["$ref"] = json!(format!("#/{place}/{name}"));
        let validator = jsonschema::options().should_validate_formats(false).build(&schema);
        let validator = validator.unwrap_or_else(|error| panic!("{revision} {name}: {error}"));
        let validator: &'static Validator = Box::leak(Box::new(validator));
        made.insert(key, validator);
        Some(validator)
    }
}

/// Whether something is what a definition says.
fn fits(revision: Revision, name: &str, value: &Value) -> Result<(), String> {
    let Some(validator) = schemas().and_then(|all| all.of(revision, name)) else { return Ok(()) };
    let wrong = validator.iter_errors(value).next();
    wrong.map_or(Ok(()), |why| Err(format!("{revision}: no {name}: {why}")))
}

fn check(revision: Revision, names: &[&str], value: &Value, message: &Value) {
    let tried = names.iter().map(|name| fits(revision, name, value));
    let wrong: Vec<String> = tried.filter_map(Result::err).collect();
    assert!(wrong.len() < names.len().max(1), "{wrong:?}: {message}");
}

/// The definitions that the result of a request may be.
fn results(revision: Revision, method: &str) -> &'static [&'static str] {
    let modern = revision.era() == Era::Modern;
    match method {
        "initialize" => &["InitializeResult"],
        "server/discover" => &["DiscoverResult"],
        "tools/call" if modern => &["CallToolResult", "InputRequiredResult"],
        "tools/call" => &["CallToolResult"],
        "tools/list" => &["ListToolsResult"],
        "resources/list" => &["ListResourcesResult"],
        "resources/read" => &["ReadResourceResult"],
        "resources/subscribe" | "resources/unsubscribe" | "ping" => &["EmptyResult"],
        "subscriptions/listen" => &["SubscriptionsListenResult"],
        _ => &[],
    }
}

/// A message for a host of this revision. `asked` is the method of the request that it
/// answers.
pub(super) fn to_host(revision: Revision, message: &Value, asked: Option<&str>) {
    known(revision, message);
    if message.get("method").is_some() {
        let name = match message.get("id") {
            Some(_) => "ServerRequest",
            None => "ServerNotification",
        };
        return check(revision, &[name], message, message);
    }
    if let Some(result) = message.get("result") {
        let names = asked.map_or(&[][..], |method| results(revision, method));
        return check(revision, names, result, message);
    }
    let newer = revision >= Revision::R2025_11_25;
    // Errors about what cannot be read have a null id, which the schemas do not know.
    if !message["id"].is_null() {
        let name = if newer { "JSONRPCErrorResponse" } else { "JSONRPCError" };
        check(revision, &[name], message, message);
    }
}

/// A message for a server that speaks this revision.
pub(super) fn to_server(revision: Option<Revision>, message: &Value) {
    let Some(revision) = revision else { panic!("nothing was agreed on, but: {message}") };
    let Some(method) = message["method"].as_str() else {
        if let Some(result) = message.get("result") {
            check(revision, &["ClientResult"], result, message);
        }
        return;
    };
    let modern = revision.era() == Era::Modern;
    let foreign: &[&str] = match modern {
        true => &["initialize", "notifications/initialized", "ping", "logging/setLevel"],
        false => &["server/discover", "subscriptions/listen"],
    };
    assert!(!foreign.contains(&method), "{revision}: {message}");
    let name = match message.get("id") {
        Some(_) => "ClientRequest",
        None => "ClientNotification",
    };
    check(revision, &[name], message, message);
}

/// Nothing is said to a host that its revision does not know.
fn known(revision: Revision, message: &Value) {
    let modern = revision.era() == Era::Modern;
    let known: &[&str] = match (modern, message.get("id").is_some()) {
        _ if message.get("method").is_none() => {
            let result = &message["result"];
            let typed = result.get("resultType").is_some();
            let lasts = result.get("ttlMs").is_some();
            let good = if modern { result.is_null() || typed } else { !typed && !lasts };
            return assert!(good, "{revision}: {message}");
        }
        (true, true) => &[],
        (false, true) => &["ping", "sampling/createMessage", "roots/list", "elicitation/create"],
        (true, false) => &[
            "notifications/progress",
            "notifications/message",
            "notifications/subscriptions/acknowledged",
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/resources/updated",
        ],
        (false, false) => &[
            "notifications/progress",
            "notifications/message",
            "notifications/cancelled",
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/resources/updated",
        ],
    };
    let method = message["method"].as_str().unwrap_or_default();
    assert!(known.contains(&method), "{revision}: {message}");
    let told = !matches!(method, "notifications/progress" | "notifications/message");
    let tag = message["params"]["_meta"].get("io.modelcontextprotocol/subscriptionId");
    assert_eq!(tag.is_some(), modern && told, "{revision}: {message}");
}
