//! What servers ask in the middle of a call.

use crate::At::{ModernPipe, Pipe, Session};
use crate::talk::MODERN;
use crate::{At, rows};

const R4: At = Session("2025-11-25");
const ASK: &str = "tools/call {\"name\":\"ask\"}";
const STATE: &str = "test_input_required_result_request_state";

rows! {
    http_13 {
        // On the stream of the call, and on no other.
        R4, "GET" => ["text/event-stream"];
        R4, ASK => ["elicitation/create", "HTTP/1.1 200 "];
    }
    http_14_and_mrt_01 {
        MODERN, ASK => ["application/json", "\"inputRequests\":{", "!\"method\":\"elicitation/create\",\"id\"", "!text/event-stream"];
        ModernPipe, ASK => ["\"inputRequests\":{"];
    }
    lif_05 {
        // Before the host is initialized, only pings and log messages go to it.
        Pipe("2025-11-25"), "ping" => ["\"result\":{}", "!\"method\""];
    }
    mrt_02 {
        MODERN, "prompts/get {\"name\":\"test_input_required_result_prompt\"}" => ["\"resultType\":\"input_required\""];
        MODERN, "tools/list {\"inputResponses\":{}}" => ["\"resultType\":\"complete\""];
    }
    mrt_03_and_04 {
        MODERN, ASK => ["\"inputRequests\":{\"answer\":{\"method\":\"elicitation/create\""];
        MODERN, "tools/call {\"name\":\"test_input_required_result_multiple_inputs\"}"
            => ["elicitation/create", "sampling/createMessage", "roots/list"];
    }
    mrt_08 {
        MODERN, &format!("tools/call {{\"name\":\"{STATE}\"}}") => ["\"requestState\":\""];
        MODERN, &format!("tools/call {{\"name\":\"{STATE}\",\"inputResponses\":{{\"confirm\":{{\"action\":\"accept\",\"content\":{{\"ok\":true}}}}}},\"requestState\":\"x{{state}}\"}}")
            => ["\"error\":{", "-32602"];
    }
    mrt_09 {
        // A state is of the call that it was given for.
        MODERN, &format!("tools/call {{\"name\":\"{STATE}\"}}") => ["\"requestState\":\""];
        MODERN, "tools/call {\"name\":\"test_input_required_result_tampered_state\",\"inputResponses\":{},\"requestState\":\"{state}\"}"
            => ["-32602"];
    }
    mrt_10 {
        // Hosts that never come back leave nothing that would have to end.
        MODERN, ASK => ["inputRequests"];
        MODERN, "~ 3600000" => ["!elicitation"];
        MODERN, "stop" => ["(exit)"];
    }
    mrt_11 {
        MODERN, "tools/call {\"name\":\"ask\",\"inputResponses\":{\"other\":{}}}" => ["\"resultType\":\"input_required\""];
        MODERN, "tools/call {\"name\":\"ask\",\"inputResponses\":{\"answer\":{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}},\"other\":1},\"requestState\":\"{state}\"}"
            => ["Hello, Ada!"];
        MODERN, "tools/call {\"name\":\"ask\",\"inputResponses\":{\"answer\":{\"action\":\"nonsense\"}},\"requestState\":\"{state}\"}" => ["-32602"];
    }
    mrt_12 {
        MODERN, ASK => ["!\"id\":\"", "!\"elicitationId\"", "!\"task\""];
        R4, ASK => ["\"id\":", "\"jsonrpc\":\"2.0\",", "elicitation/create"];
    }
    mrt_15 {
        MODERN, ASK => ["inputRequests"];
        MODERN, "~ 3000" => [];
    }
    ses_10 {
        // An answer counts in the session that was asked, and in no other.
        R4, ASK => ["elicitation/create"];
        At::Raw, r#"{"jsonrpc":"2.0","id":"1","result":{"action":"accept","content":{"name":"Eve"}}}"#
            => ["HTTP/1.1 400 ", "!Eve"];
    }
}
