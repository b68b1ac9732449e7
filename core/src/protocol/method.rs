//! Method names, and what the revisions say about each.

/// `initialize`: begins a legacy session.
pub const INITIALIZE: &str = "initialize";
/// `notifications/initialized`: ends the legacy handshake.
pub const INITIALIZED: &str = "notifications/initialized";
/// `ping`: legacy, both ways.
pub const PING: &str = "ping";
/// `notifications/cancelled`.
pub const CANCELLED: &str = "notifications/cancelled";
/// `notifications/progress`.
pub const PROGRESS: &str = "notifications/progress";
/// `notifications/message`: a log message.
pub const MESSAGE: &str = "notifications/message";
/// `server/discover`: modern.
pub const DISCOVER: &str = "server/discover";
/// `subscriptions/listen`: modern.
pub const LISTEN: &str = "subscriptions/listen";
/// `notifications/subscriptions/acknowledged`: modern.
pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// `tools/list`.
pub const TOOLS_LIST: &str = "tools/list";
/// `tools/call`.
pub const TOOLS_CALL: &str = "tools/call";
/// `prompts/list`.
pub const PROMPTS_LIST: &str = "prompts/list";
/// `prompts/get`.
pub const PROMPTS_GET: &str = "prompts/get";
/// `resources/list`.
pub const RESOURCES_LIST: &str = "resources/list";
/// `resources/templates/list`.
pub const TEMPLATES_LIST: &str = "resources/templates/list";
/// `resources/read`.
pub const RESOURCES_READ: &str = "resources/read";
/// `resources/subscribe`: legacy.
pub const SUBSCRIBE: &str = "resources/subscribe";
/// `resources/unsubscribe`: legacy.
pub const UNSUBSCRIBE: &str = "resources/unsubscribe";
/// `completion/complete`.
pub const COMPLETE: &str = "completion/complete";
/// `logging/setLevel`: legacy.
pub const SET_LEVEL: &str = "logging/setLevel";
/// `roots/list`: to the host.
pub const LIST_ROOTS: &str = "roots/list";
/// `elicitation/create`: to the host.
pub const ELICIT: &str = "elicitation/create";
/// `notifications/elicitation/complete`: to the host.
pub const ELICITED: &str = "notifications/elicitation/complete";
/// `sampling/createMessage`: to the host.
pub const SAMPLE: &str = "sampling/createMessage";
/// `notifications/tools/list_changed`.
pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// `notifications/prompts/list_changed`.
pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
/// `notifications/resources/list_changed`.
pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
/// `notifications/resources/updated`.
pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";

/// Whether a message may reach a server twice without harm: it only reads, or says
/// how things shall be. Messages without a method are answers.
pub fn is_safe(method: &str) -> bool {
    matches!(
        method,
        "" | INITIALIZE
            | PING
            | DISCOVER
            | LISTEN
            | TOOLS_LIST
            | PROMPTS_LIST
            | PROMPTS_GET
            | RESOURCES_LIST
            | TEMPLATES_LIST
            | RESOURCES_READ
            | SUBSCRIBE
            | UNSUBSCRIBE
            | COMPLETE
            | SET_LEVEL
    ) || method.starts_with("notifications/")
}

/// Whether a modern peer must answer `-32601` to `method`, whatever the
/// server behind could do with it: it belongs to the legacy revisions alone
/// (2026-07-28 changelog).
pub fn is_legacy_only(method: &str) -> bool {
    matches!(method, INITIALIZE | PING | SET_LEVEL | SUBSCRIBE | UNSUBSCRIBE)
}

/// Whether a legacy request means nothing outside a session: its effect is on
/// what that is told later.
pub fn needs_session(method: &str) -> bool {
    matches!(method, SET_LEVEL | SUBSCRIBE | UNSUBSCRIBE)
}

/// Whether a legacy peer must answer `-32601` to `method`: it came with
/// 2026-07-28.
pub fn is_modern_only(method: &str) -> bool {
    matches!(method, DISCOVER | LISTEN)
}
