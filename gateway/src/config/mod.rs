//! The configuration file: `mcpServers`, as hosts have it.
//!
//! Values may be secrets. No message shows one: only names of fields, of
//! servers and of variables.
//!
//! | file | subject |
//! | --- | --- |
//! | `file` | the whole of it |
//! | `server` | one server |
//! | `view` | what hosts see of servers |

mod file;
mod server;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use file::{Read, load, read};
pub(crate) use view::parse_expose;
