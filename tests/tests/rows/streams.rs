//! What comes on which stream, and when.

use crate::At::{ModernPipe, Pipe, Session};
use crate::talk::MODERN;
use crate::{At, rows};

const R3: At = Session("2025-06-18");
const R4: At = Session("2025-11-25");
const COUNT: &str = "tools/call {\"name\":\"count\",\"arguments\":{\"to\":2,\"delay_ms\":100},\"_meta\":{\"progressToken\":\"p\"}}";
const LISTEN: &str = "subscriptions/listen {\"notifications\":{\"toolsListChanged\":true,\"resourceSubscriptions\":[\"demo://counter\"]}}";
const TOUCH: &str = "tools/call {\"name\":\"touch\"}";

rows! {
    http_12_and_15 {
        R4, COUNT => [];
        R4, "~ 1000" => ["text/event-stream", "notifications/progress", "\"result\":{", "\r\n0\r\n\r\n"];
    }
    http_16 {
        R3, COUNT => [];
        R3, "~ 150" => ["notifications/progress", "!\r\n0\r\n\r\n", "!(closed)"];
        R3, "~ 1000" => ["\"result\":{", "\r\n0\r\n\r\n"];
    }
    http_18_and_20 {
        R4, "GET" => ["text/event-stream"];
        R4, "tools/list" => ["HTTP/1.1 200 ", "application/json"];
        R4, "resources/subscribe {\"uri\":\"demo://counter\"}" => ["HTTP/1.1 200 "];
        R4, TOUCH => ["notifications/resources/updated"];
        R4, "~ 100" => [];
    }
    http_21_and_sub_04 {
        MODERN, LISTEN => ["notifications/subscriptions/acknowledged"];
        MODERN, COUNT => [];
        MODERN, "~ 1000" => ["notifications/progress", "!\"method\":\"notifications/progress\",\"params\":{\"_meta\""];
        MODERN, "tools/call {\"name\":\"test_trigger_prompt_change\"}" => ["!notifications/prompts/list_changed"];
    }
    sse_01_and_02 {
        R4, COUNT => [];
        R4, "~ 150" => ["id: ", "notifications/progress"];
        R4, "GET" => ["id: "];
    }
    sse_06_and_07 {
        R4, "tools/call {\"name\":\"test_reconnection\"}" => ["id: ", "retry: ", "\r\n0\r\n\r\n", "!\"result\""];
        R4, "~ 500" => [];
        R4, "GET Last-Event-ID: {event}|" => ["HTTP/1.1 200 ", "\"result\":{"];
        // No host of another revision is sent away.
        Session("2025-06-18"), "ping" => ["\"result\":{}"];
    }
    sse_10 {
        MODERN, LISTEN => ["acknowledged"];
        MODERN, "~ 60000" => ["\n:", "!data: "];
    }
    can_05 {
        R4, COUNT => [];
        R4, "~ 150" => ["id: ", "notifications/progress"];
        R4, "hang up" => [];
        R4, "~ 1000" => [];
        R4, "GET Last-Event-ID: {event}|" => ["\"result\":{"];
    }
    can_06 {
        MODERN, COUNT => [];
        MODERN, "~ 150" => ["notifications/progress"];
        MODERN, "hang up" => ["(closed)", "!{"];
        MODERN, "~ 1000" => [];
    }
    can_07 {
        ModernPipe, COUNT => [];
        ModernPipe, "~ 150" => ["notifications/progress"];
        ModernPipe, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"# => [];
        ModernPipe, "~ 1000" => [];
    }
    can_08_and_sub_08 {
        MODERN, LISTEN => ["acknowledged"];
        MODERN, "stop" => [r#""io.modelcontextprotocol/subscriptionId":1"#, "\"id\":1,\"result\":{", "\"resultType\":\"complete\"", "!notifications/cancelled"];
    }
    prg_05 {
        MODERN, COUNT => [];
        ModernPipe, "tools/list" => ["\"tools\":["];
        MODERN, "~ 150" => ["text/event-stream", "\"progressToken\":\"p\""];
        ModernPipe, r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}"# => [];
    }
    sub_01 {
        Pipe("2025-11-25"), "tools/call {\"name\":\"test_trigger_tool_change\"}" => ["notifications/tools/list_changed"];
        Pipe("2025-11-25"), "tools/call {\"name\":\"test_trigger_prompt_change\"}" => ["notifications/prompts/list_changed"];
    }
    sub_05 {
        MODERN, LISTEN => [
            "text/event-stream", "\"method\":\"notifications/subscriptions/acknowledged\"",
            "\"notifications\":{", "\"toolsListChanged\":true", "demo://counter"
        ];
        MODERN, "subscriptions/listen {\"notifications\":{\"rootsListChanged\":true}}" => ["acknowledged", "!rootsListChanged"];
    }
    sub_06 {
        MODERN, LISTEN => [r#""io.modelcontextprotocol/subscriptionId":1"#];
        MODERN, TOUCH => ["notifications/resources/updated", r#""io.modelcontextprotocol/subscriptionId":1"#];
        MODERN, "tools/call {\"name\":\"test_trigger_tool_change\"}"
            => ["notifications/tools/list_changed", r#""io.modelcontextprotocol/subscriptionId":1"#];
    }
    sub_11 {
        MODERN, "subscriptions/listen {\"notifications\":{\"taskIds\":[\"1\"]}}" => ["!\"taskIds\""];
    }
    log_03 {
        MODERN, "tools/call {\"name\":\"test_tool_with_logging\"}" => [];
        MODERN, "~ 1000" => ["!notifications/message", "\"result\":{"];
    }
    log_04 {
        MODERN, LISTEN => ["acknowledged"];
        MODERN, "tools/call {\"name\":\"test_tool_with_logging\",\"_meta\":{\"io.modelcontextprotocol/logLevel\":\"info\"}}" => ["!acknowledged"];
        MODERN, "~ 1000" => ["notifications/message", "\"result\":{", "!subscriptionId\":1},\"level\""];
    }
    log_05 {
        MODERN, "tools/call {\"name\":\"test_tool_with_logging\",\"_meta\":{\"io.modelcontextprotocol/logLevel\":\"loud\"}}" => ["-32602"];
    }
}
