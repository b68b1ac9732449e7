//! The error codes of JSON-RPC 2.0 (section 5.1) and of MCP.

/// Not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// JSON, but not a message.
pub const INVALID_REQUEST: i32 = -32600;
/// The method does not exist, or was not declared.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters do not fit the method.
pub const INVALID_PARAMS: i32 = -32602;
/// Anything else that went wrong while working.
pub const INTERNAL_ERROR: i32 = -32603;
/// A required HTTP header field is missing or contradicts the body (2026-07-28).
pub const HEADER_MISMATCH: i32 = -32020;
/// The client did not declare a capability that the request needs (2026-07-28).
pub const MISSING_CAPABILITY: i32 = -32021;
/// The protocol version is not spoken here (2026-07-28).
pub const UNSUPPORTED_VERSION: i32 = -32022;
/// There is no such resource (before 2026-07-28).
pub const RESOURCE_NOT_FOUND: i32 = -32002;
/// The user has to visit a URL first (2025-11-25).
pub const URL_ELICITATION_REQUIRED: i32 = -32042;
