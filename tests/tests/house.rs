//! The rules of the house, for every file that it is made of.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the core and their floors. A module uses those of lower
/// floors only; the ground floor is one.
const FLOORS: &[(&str, u8)] = &[
    ("time", 0),
    ("entropy", 0),
    ("seal", 0),
    ("buffer", 0),
    ("driver", 0),
    ("event", 0),
    ("output", 0),
    ("jsonrpc", 1),
    ("wire", 2),
    ("protocol", 3),
    ("server", 4),
    ("client", 5),
    ("gateway", 6),
];

/// Crates that bring a runtime, or a way of doing things, of their own.
const BANNED: &[&str] = &["tokio", "async-std", "hyper", "smol", "async-executor", "openssl-sys"];

/// A source file longer than this has more than one subject.
const LINES: usize = 700;

/// What is made by tools, and not by us.
const GENERATED: &[&str] =
    &[".git", ".cache", "target", "node_modules", "__pycache__", "corpus", "artifacts", "coverage"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name());
        if GENERATED.iter().any(|generated| name == *generated) {
            continue;
        }
        // Links lead to what is listed elsewhere, or not ours.
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files(&path, found);
        } else if kind.is_file() {
            found.push(path);
        }
    }
}

/// All files under `folder` that are text, with their names from the root.
fn texts(folder: &str) -> Vec<(String, String)> {
    let root = root();
    let mut found = Vec::new();
    files(&root.join(folder), &mut found);
    let texts: Vec<_> = found
        .into_iter()
        .filter_map(|path| {
            let text = fs::read_to_string(&path).ok()?;
            Some((path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/"), text))
        })
        .collect();
    assert!(!texts.is_empty(), "{folder} is empty");
    texts
}

fn sources(folder: &str) -> Vec<(String, String)> {
    texts(folder).into_iter().filter(|(name, _)| name.ends_with(".rs")).collect()
}

/// The lines of a source file with their numbers, without comments and without
/// the tests, which stand at its end.
fn code(text: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_test = |n: usize| {
        lines[n].trim() == "#[cfg(test)]"
            && lines.get(n + 1).is_some_and(|next| next.trim_start().starts_with("mod tests {"))
    };
    let end = (0..lines.len()).find(|n| is_test(*n)).unwrap_or(lines.len());
    lines[..end]
        .iter()
        .enumerate()
        .map(|(n, line)| (n + 1, line.split("//").next().unwrap_or_default()))
        .collect()
}

/// The source files of the core that are not tests, by their module.
fn core_sources() -> Vec<(String, String, String)> {
    sources("core/src")
        .into_iter()
        .filter(|(name, _)| !name.ends_with("/tests.rs") && !name.contains("/tests/"))
        .filter_map(|(name, text)| {
            let inside = name.strip_prefix("core/src/")?;
            let module = inside.split('/').next()?.trim_end_matches(".rs").to_string();
            Some((module, name, text))
        })
        .collect()
}

fn fail_with(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

#[test]
fn floors_only_look_down() {
    let floor = |module: &str| FLOORS.iter().find(|(name, _)| *name == module).map(|(_, n)| *n);
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (module, name, text) in core_sources() {
        if module == "lib" {
            continue;
        }
        let own = floor(&module).unwrap_or_else(|| panic!("{module} has no floor"));
        seen.insert(module.clone());
        for (n, line) in code(&text) {
            for used in line.split("crate::").skip(1) {
                let used = used.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
                let fine = used == module
                    || floor(used).is_some_and(|other| other < own || (other, own) == (0, 0));
                if !fine {
                    wrong.push(format!("{name}:{n}: {module} uses {used:?}"));
                }
            }
        }
    }
    assert_eq!(seen.len(), FLOORS.len(), "a floor has no files");
    fail_with("floors that look up, or sideways", &wrong);
}

#[test]
fn the_core_has_no_std() {
    let mut wrong = Vec::new();
    for (_, name, text) in core_sources() {
        let code = code(&text);
        let mut before = "";
        for (n, line) in &code {
            let path = line
                .match_indices("std::")
                .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
            let linked = line.contains("extern crate std") && before.trim() != "#[cfg(test)]";
            if path || linked {
                wrong.push(format!("{name}:{n}: {}", line.trim()));
            }
            before = line;
        }
    }
    fail_with("std in the core", &wrong);
}

#[test]
fn no_banned_crate_is_linked() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    // Each package's name and the names of what it depends on.
    let packages: Vec<(&str, Vec<&str>)> = lock
        .split("[[package]]")
        .skip(1)
        .map(|package| {
            let name = package.lines().find_map(|line| line.strip_prefix("name = ")).unwrap();
            let dependencies = package
                .lines()
                .filter_map(|line| line.strip_prefix(" \"")?.split(['"', ' ']).next())
                .collect();
            (name.trim_matches('"'), dependencies)
        })
        .collect();
    let mut linked = BTreeSet::from(["mcpx"]);
    let mut next = vec!["mcpx"];
    while let Some(name) = next.pop() {
        let found = packages.iter().filter(|(package, _)| *package == name);
        for dependency in found.flat_map(|(_, dependencies)| dependencies) {
            if linked.insert(dependency) {
                next.push(dependency);
            }
        }
    }
    assert!(linked.contains("mcpx-core"), "Cargo.lock is not understood");
    let banned: Vec<String> =
        BANNED.iter().filter(|name| linked.contains(*name)).map(|name| name.to_string()).collect();
    fail_with("crates that must not be linked", &banned);
}

#[test]
fn files_are_short() {
    let long = |(name, text): (String, String)| {
        let lines = text.lines().count();
        (lines >= LINES).then(|| format!("{name}: {lines} lines"))
    };
    let wrong: Vec<String> = sources(".").into_iter().filter_map(long).collect();
    fail_with("files that are too long", &wrong);
}

#[test]
fn mod_files_only_declare() {
    let mut wrong = Vec::new();
    for (name, text) in sources(".").into_iter().filter(|(name, _)| name.ends_with("/mod.rs")) {
        // Tests have no floors to keep apart: theirs may share a helper.
        if name.starts_with("tests/") || name.contains("/tests/") {
            continue;
        }
        for (n, line) in code(&text) {
            let line = line.trim_start();
            let words: Vec<&str> = line.split([' ', '(', '<']).collect();
            if words.contains(&"fn") || words.first() == Some(&"impl") {
                wrong.push(format!("{name}:{n}: {line}"));
            }
        }
    }
    fail_with("mod.rs files that do something", &wrong);
}

#[test]
fn no_file_knows_a_machine() {
    // Written so that this file does not hold them.
    let places = ["work", "root", "tmp/target"].map(|place| format!("/{place}/"));
    let mut wrong = Vec::new();
    for (name, text) in texts(".") {
        for (n, line) in text.lines().enumerate() {
            if places.iter().any(|place| line.contains(place.as_str())) {
                wrong.push(format!("{name}:{}: {}", n + 1, line.trim()));
            }
        }
    }
    fail_with("paths of one machine", &wrong);
}
