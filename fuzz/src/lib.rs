//! What the fuzz targets share.
//!
//! Every target checks three things of the same bytes: nothing panics, cuts do
//! not matter, and memory stays within what the limits promise.

pub mod input;
pub mod memory;
pub mod peers;
pub mod script;
pub mod world;
