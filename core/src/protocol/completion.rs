//! What completes an argument: at most 100 values (2025-03-26 `server/utilities/completion`;
//! FEA-03). Hosts refuse a result that has more.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::jsonrpc::{elements, get, get_path, with_member};

/// Values of one result, at most.
const MOST: usize = 100;

/// A result of `completion/complete` with no more values than there may be. It says then
/// how many there are.
pub(crate) fn at_most(result: &str) -> Cow<'_, str> {
    let values = get_path(result, &["completion", "values"]).unwrap_or("[]");
    let count = elements(values).count();
    let Some(completion) = get(result, "completion").filter(|_| count > MOST) else {
        return Cow::Borrowed(result);
    };
    let first: Vec<&str> = elements(values).take(MOST).collect();
    let total = get(completion, "total").map_or_else(|| count.to_string(), ToString::to_string);
    let first = alloc::format!("[{}]", first.join(","));
    let mut all = completion.to_string();
    for (name, value) in [("values", first.as_str()), ("total", &total), ("hasMore", "true")] {
        let mut changed = String::with_capacity(all.len());
        with_member(&all, name, Some(value), &mut changed);
        all = changed;
    }
    let mut out = String::with_capacity(result.len());
    with_member(result, "completion", Some(&all), &mut out);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(count: usize, rest: &str) -> String {
        let values: Vec<String> = (0..count).map(|n| alloc::format!("\"{n}\"")).collect();
        alloc::format!(r#"{{"completion":{{"values":[{}]{rest}}},"_meta":{{}}}}"#, values.join(","))
    }

    #[test]
    fn fea_03_there_are_no_more_than_100() {
        for few in [String::from("{}"), result(0, ""), result(100, r#","hasMore":false"#)] {
            assert_eq!(at_most(&few), few);
        }
        let cut = at_most(&result(101, r#","hasMore":false"#)).into_owned();
        assert_eq!(cut, result(100, r#","hasMore":true,"total":101"#));
        let cut = at_most(&result(300, r#","total":5000"#)).into_owned();
        assert_eq!(cut, result(100, r#","total":5000,"hasMore":true"#));
    }
}
