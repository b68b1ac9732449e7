//! What a runtime owes a machine. Every runtime includes these tests, with
//! `crate::runtime` naming itself.

mod children;
mod puppet;
mod roles;
mod sockets;
mod stdio;
mod time;
