//! The requirements on servers that take a server to show, row by row, on the
//! demo server: bytes in, bytes out. Each test is named after its row; those that
//! the endpoint alone can show are beside it, in the core.

#![allow(clippy::unwrap_used)]

mod answers;
mod questions;
mod streams;
mod talk;

pub(crate) use talk::{At, Talk};

/// A table: for each row what is said where, in the order in which it is said to
/// one server, and what comes of it, on all connections together. What begins
/// with `!` must not be in it.
///
/// `METHOD {PARAMS}` is a request with the next id, from 1; what begins with `{`
/// is a message as it is; `~ 250` lets so many milliseconds pass; `hang up` is
/// the end of the last connection; `GET` is a stream of the session.
#[macro_export]
macro_rules! rows {
    ($($row:ident { $($at:expr, $said:expr => [$($expected:expr),*];)+ })*) => {
        $(#[test]
        fn $row() {
            let mut talk = $crate::Talk::new();
            $($crate::talk::check($said, &talk.say($at, $said), &[$($expected),*]);)+
        })*
    };
}
