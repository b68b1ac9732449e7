//! The cases of `corpora/origin-host`, every one of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mcpx_core::protocol::origin::OriginRules;
use serde::Deserialize;

/// The folder of the cases, or nothing where only the project is there.
fn corpus() -> Option<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("shared/corpora"))
        .find(|folder| folder.is_dir())
        .map(|folder| folder.join("origin-host"))
}

#[derive(Deserialize)]
struct Profile {
    bind: String,
    allowed_hosts: Option<Vec<String>>,
    allowed_origins: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    profile: String,
    host: Vec<String>,
    origin: Vec<String>,
    target: Option<String>,
    verdict: String,
    prefer: Option<String>,
    status: Option<Vec<u16>>,
}

#[test]
fn requests_are_let_in_or_refused() {
    let Some(folder) = corpus() else {
        eprintln!("skipped: there is no shared/corpora");
        return;
    };
    let profiles = fs::read_to_string(folder.join("profiles.json")).expect("the profiles");
    let profiles: BTreeMap<String, Profile> = serde_json::from_str(&profiles).unwrap();
    let rules: BTreeMap<_, _> = profiles
        .into_iter()
        .map(|(name, p)| {
            let rules =
                OriginRules::new(&p.bind, p.allowed_hosts.as_deref(), p.allowed_origins.as_deref());
            (name, rules.unwrap())
        })
        .collect();

    let text = fs::read_to_string(folder.join("cases.jsonl")).expect("the cases");
    let mut count = 0;
    for line in text.lines() {
        let case: Case = serde_json::from_str(line).expect(line);
        judge(&case, &rules[&case.profile]);
        count += 1;
    }
    assert!(count > 0, "there are no cases");
}

fn judge(case: &Case, rules: &OriginRules) {
    let id = &case.id;
    let target = case.target.as_deref().map(|target| {
        let (_, rest) = target.split_once("://").expect("an absolute form");
        rest.split_once('/').map_or(rest, |(authority, _)| authority)
    });
    let got = rules.check(
        case.host.iter().map(String::as_bytes),
        case.origin.iter().map(String::as_bytes),
        target,
    );
    // The project has made the careful choices its own.
    let verdict = match case.verdict.as_str() {
        "either" => case.prefer.as_deref().expect("a preference"),
        verdict => verdict,
    };
    match verdict {
        "allow" => assert_eq!(got, Ok(()), "{id}"),
        "deny" => {
            let status = got.expect_err(id).status();
            let allowed = case.status.as_deref().expect("the statuses of a denial");
            assert!(allowed.contains(&status), "{id}: {status}");
        }
        other => panic!("{id}: unknown verdict {other}"),
    }
}
