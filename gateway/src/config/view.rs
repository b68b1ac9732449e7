//! What hosts see of servers: names, aliases, and what is hidden.

use mcpx_core::gateway::{Expose, Filter, Naming, Prefix, View};
use serde_json::{Map, Value};

use super::server::{Reader, object};

/// What a server's `tools`, `prompts` and `resources` say.
pub(super) fn view(
    reader: &mut Reader<'_>,
    server: &Map<String, Value>,
    at: &str,
) -> Result<View, String> {
    let mut of = |name: &str, known: &[&str]| {
        filter(reader, server.get(name), &format!("{at}.{name}"), known)
    };
    const NAMED: &[&str] = &["allow", "deny", "alias", "describe"];
    Ok(View {
        tools: of("tools", NAMED)?,
        prompts: of("prompts", NAMED)?,
        resources: of("resources", &["allow", "deny"])?,
    })
}

fn filter(
    reader: &mut Reader<'_>,
    value: Option<&Value>,
    at: &str,
    known: &[&str],
) -> Result<Filter, String> {
    let Some(value) = value else { return Ok(Filter::default()) };
    let list;
    let filter = match value {
        // As some hosts have it: what is allowed.
        Value::Array(_) => {
            list = Map::from_iter([("allow".to_string(), value.clone())]);
            &list
        }
        _ => object(value, at)?,
    };
    reader.ignore(filter, at, known);
    let globs = |name: &str| reader.texts(filter.get(name), &format!("{at}.{name}"));
    let pairs = |name: &str| {
        let pairs = reader.pairs(filter.get(name), &format!("{at}.{name}"))?;
        Ok::<_, String>(pairs.into_iter().collect())
    };
    let alias: std::collections::BTreeMap<String, String> = pairs("alias")?;
    for name in alias.values() {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if name.is_empty() || name.len() > 64 || !name.bytes().all(fits) {
            return Err(format!(
                "{at}.alias has \"{name}\", which hosts do not accept: use at most 64 letters, \
                 digits, _, - and ."
            ));
        }
    }
    Ok(Filter { allow: globs("allow")?, deny: globs("deny")?, alias, describe: pairs("describe")? })
}

/// What `names` says.
pub(super) fn naming(reader: &mut Reader<'_>, value: Option<&Value>) -> Result<Naming, String> {
    let mut naming = Naming::default();
    let Some(value) = value else { return Ok(naming) };
    let names = object(value, "names")?;
    reader.ignore(names, "names", &["prefix", "separator"]);
    if let Some(rule) = names.get("prefix") {
        naming.prefix = match reader.text(rule, "names.prefix")?.as_str() {
            "always" => Prefix::Always,
            "on-conflict" => Prefix::OnConflict,
            "never" => Prefix::Never,
            _ => return Err("names.prefix must be always, on-conflict or never".into()),
        };
    }
    if let Some(separator) = names.get("separator") {
        let separator = reader.text(separator, "names.separator")?;
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        if !(1..=8).contains(&separator.len()) || !separator.bytes().all(fits) {
            return Err("names.separator must be one to eight of letters, digits, _ and -".into());
        }
        naming.separator = separator;
    }
    Ok(naming)
}

/// What `expose` says.
pub(super) fn expose(reader: &Reader<'_>, value: Option<&Value>) -> Result<Expose, String> {
    let Some(value) = value else { return Ok(Expose::default()) };
    parse_expose(&reader.text(value, "expose")?)
        .ok_or_else(|| "expose must be all or search".into())
}

/// Reads `all` or `search`.
pub(crate) fn parse_expose(text: &str) -> Option<Expose> {
    match text {
        "all" => Some(Expose::All),
        "search" => Some(Expose::Search),
        _ => None,
    }
}
