//! mcpx
fn main() {}
