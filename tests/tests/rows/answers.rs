//! What results and errors look like.

use crate::At::{ModernPipe, Pipe, Plain, Raw, Session};
use crate::talk::MODERN;
use crate::{At, rows};

const R4: At = Session("2025-11-25");
const R1: At = Pipe("2024-11-05");

rows! {
    http_02 {
        MODERN, "tools/list" => ["HTTP/1.1 200 ", "\"tools\":["];
        MODERN, "tools/call {\"name\":\"echo\",\"arguments\":{\"message\":\"x\"}}" => ["HTTP/1.1 200 "];
    }
    std_06 {
        ModernPipe, "tools/call {\"name\":\"ask\"}" => ["\"result\":{", "!\"method\":\"elicitation/create\",\"id\""];
    }
    std_10 {
        ModernPipe, "tools/list" => ["\"tools\":["];
        ModernPipe, "hang up" => ["(closed)", "!{"];
    }
    ses_13 {
        // What one request declares is not known of the next on its connection.
        MODERN, "tools/call {\"name\":\"test_missing_capability\"}" => ["HTTP/1.1 200 "];
        Plain, "tools/call {\"name\":\"test_missing_capability\"}" => ["-32021"];
        ModernPipe, r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"# => ["-32600"];
    }
    ver_02 {
        Raw, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#
            => [r#""protocolVersion":"2025-03-26""#];
        Raw, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2031-01-01","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#
            => [r#""protocolVersion":"2025-11-25""#];
        // A modern revision cannot be agreed on in this way.
        Raw, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#
            => [r#""protocolVersion":"2025-11-25""#];
    }
    ver_20 {
        Raw, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#
            => ["-32602", "protocolVersion"];
    }
    lif_02 {
        Raw, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#
            => ["\"capabilities\":{", "\"serverInfo\":{\"name\":\"", "\"version\":\""];
    }
    lif_07_and_err_04 {
        Plain, "tools/call {\"name\":\"think\",\"arguments\":{\"question\":\"?\"}}"
            => ["HTTP/1.1 400 ", "-32021", r#""requiredCapabilities":{"sampling":{}}"#];
        Plain, "tools/call {\"name\":\"test_input_required_result_capabilities\"}"
            => ["!sampling/createMessage", "!elicitation/create"];
    }
    dsc_02 {
        MODERN, "server/discover" => [
            "\"supportedVersions\":[\"2026-07-28\"]", "\"capabilities\":{", "\"ttlMs\":", "\"cacheScope\":",
            "\"resultType\":\"complete\"", "\"io.modelcontextprotocol/serverInfo\":{"
        ];
    }
    hdr_10_and_14_and_err_06 {
        MODERN, "tools/list" => ["\"x-mcp-header\":\"Region\""];
        At::Modern("Mcp-Param-Region: here|"), "tools/call {\"name\":\"test_x_mcp_header\",\"arguments\":{\"region\":\"here\"}}"
            => ["HTTP/1.1 200 "];
        At::Modern("Mcp-Param-Region: there|"), "tools/call {\"name\":\"test_x_mcp_header\",\"arguments\":{\"region\":\"here\"}}"
            => ["HTTP/1.1 400 ", "-32020"];
        MODERN, "tools/call {\"name\":\"test_x_mcp_header\",\"arguments\":{\"region\":\"here\"}}"
            => ["HTTP/1.1 400 ", "-32020"];
        At::Modern("Mcp-Param-Region: =?base64?*?=|"), "tools/call {\"name\":\"test_x_mcp_header\",\"arguments\":{\"region\":\"here\"}}"
            => ["HTTP/1.1 400 ", "-32020"];
        At::Modern("Mcp-Param-Other: x|"), "tools/call {\"name\":\"test_x_mcp_header\",\"arguments\":{}}"
            => ["HTTP/1.1 200 "];
    }
    cac_01_and_02 {
        MODERN, "tools/list" => ["\"ttlMs\":", "\"cacheScope\":\"", "!\"ttlMs\":-"];
        MODERN, "prompts/list" => ["\"ttlMs\":", "\"cacheScope\":\""];
        MODERN, "resources/list" => ["\"ttlMs\":", "\"cacheScope\":\""];
        MODERN, "resources/templates/list" => ["\"ttlMs\":", "\"cacheScope\":\""];
        MODERN, "resources/read {\"uri\":\"demo://readme\"}" => ["\"ttlMs\":", "\"cacheScope\":\""];
        MODERN, "tools/call {\"name\":\"echo\",\"arguments\":{\"message\":\"x\"}}" => ["!ttlMs"];
        R4, "tools/list" => ["!ttlMs", "!cacheScope"];
    }
    cac_07 {
        // All lists are for everybody; a page cannot differ from the next.
        MODERN, "tools/list" => ["\"cacheScope\":\"public\""];
        MODERN, "prompts/list" => ["\"cacheScope\":\"public\""];
        MODERN, "resources/list" => ["\"cacheScope\":\"public\""];
        MODERN, "resources/templates/list" => ["\"cacheScope\":\"public\""];
    }
    pag_03 {
        MODERN, "tools/list {\"cursor\":\"nonsense\"}" => ["-32602"];
        R4, "prompts/list {\"cursor\":\"nonsense\"}" => ["-32602"];
        R1, "resources/list {\"cursor\":\"nonsense\"}" => ["-32602"];
    }
    pag_04 {
        // Whatever happens on a connection, its list is the same.
        MODERN, "tools/list" => ["\"name\":\"touch\""];
        MODERN, "tools/call {\"name\":\"test_trigger_tool_change\"}" => ["HTTP/1.1 200 "];
        MODERN, "tools/list" => ["\"name\":\"touch\""];
    }
    log_01 {
        MODERN, "server/discover" => ["\"logging\":{"];
        R1, r#"{"jsonrpc":"2.0","id":9,"method":"logging/setLevel","params":{"level":"debug"}}"# => ["\"result\":{}"];
    }
    err_05 {
        Raw, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2031-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}"#
            => ["HTTP/1.1 400 ", "-32020"];
        ModernPipe, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2031-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}"#
            => ["-32022", r#""supported":["2026-07-28"],"requested":"2031-01-01""#];
    }
    err_07 {
        R1, "resources/read {\"uri\":\"demo://nothing\"}" => ["-32002"];
        R4, "resources/read {\"uri\":\"demo://nothing\"}" => ["-32002"];
    }
    err_08_and_09 {
        MODERN, "resources/read {\"uri\":\"demo://nothing\"}" => ["HTTP/1.1 200 ", "-32602", "!\"contents\"", "!-32002"];
        ModernPipe, "resources/read {\"uri\":\"demo://nothing\"}" => ["-32602", "!-32002"];
    }
    err_13 {
        MODERN, "tools/call {\"name\":\"test_error_handling\"}" => ["\"isError\":true"];
        R4, "tools/call {\"name\":\"test_error_handling\"}" => ["\"isError\":true"];
        MODERN, "tools/call {\"name\":\"nothing\"}" => ["-32602"];
        R4, "tools/call {\"name\":\"nothing\"}" => ["-32602"];
        // What the model can mend is told to the model, from 2025-11-25 on.
        R4, "tools/call {\"name\":\"echo\",\"arguments\":{}}" => ["\"isError\":true"];
        R1, "tools/call {\"name\":\"echo\",\"arguments\":{}}" => ["-32602"];
    }
    met_02_and_06 {
        MODERN, "tools/list" => ["\"resultType\":\"complete\"", "\"io.modelcontextprotocol/serverInfo\":{"];
        MODERN, "prompts/get {\"name\":\"test_simple_prompt\"}" => ["\"resultType\":\"complete\"", "\"io.modelcontextprotocol/serverInfo\":{"];
        MODERN, "tools/call {\"name\":\"ask\"}" => ["\"resultType\":\"input_required\"", "\"io.modelcontextprotocol/serverInfo\":{"];
        R4, "tools/list" => ["!resultType", "!serverInfo"];
    }
    fea_01_and_02 {
        MODERN, "tools/call {\"name\":\"add\",\"arguments\":{\"a\":1,\"b\":2}}"
            => [r#""structuredContent":{"sum":3}"#, r#"{"type":"text","text":"{\"sum\":3}"}"#];
        Session("2025-06-18"), "tools/call {\"name\":\"add\",\"arguments\":{\"a\":1,\"b\":2}}"
            => [r#""structuredContent":{"sum":3}"#];
        R1, "tools/call {\"name\":\"add\",\"arguments\":{\"a\":1,\"b\":2}}" => ["!structuredContent", "\"type\":\"text\""];
    }
    hdr_21_and_log_06 {
        // Neither an answer nor an event for the log repeats a field.
        At::Modern("Mcp-Param-Key: s3cret|Authorization: Bearer s3cret|"), "tools/call {\"name\":\"echo\",\"arguments\":{\"message\":\"x\"}}"
            => ["HTTP/1.1 200 ", "!s3cret"];
        At::Modern("Mcp-Param-Region: s3cret|"), "tools/call {\"name\":\"test_x_mcp_header\",\"arguments\":{\"region\":\"x\"}}"
            => ["HTTP/1.1 400 ", "-32020", "!s3cret"];
    }
    ver_19 {
        // Never a server of modern revisions alone: `initialize` is answered by a
        // version that it can go on with, the newest if it asks for one without it.
        Raw, "initialize {\"protocolVersion\":\"2026-07-28\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}"
            => ["HTTP/1.1 200 ", "\"protocolVersion\":\"2025-11-25\""];
    }
    fea_03 {
        MODERN, "server/discover" => ["\"completions\":{}"];
        R1, "completion/complete {\"ref\":{\"type\":\"ref/prompt\",\"name\":\"greet\"},\"argument\":{\"name\":\"style\",\"value\":\"\"}}"
            => ["\"values\":["];
        MODERN, "completion/complete {\"ref\":{\"type\":\"ref/prompt\",\"name\":\"greet\"},\"argument\":{\"name\":\"style\",\"value\":\"\"}}"
            => ["\"values\":["];
    }
    tsk_04 {
        MODERN, "tools/call {\"name\":\"echo\",\"arguments\":{\"message\":\"x\"},\"task\":{\"ttl\":1}}"
            => ["\"resultType\":\"complete\"", "!taskId"];
    }
    tsk_06 {
        MODERN, "tasks/result {\"taskId\":\"1\"}" => ["HTTP/1.1 404 ", "-32601"];
        MODERN, "server/discover" => ["!\"tasks\""];
        R4, "tasks/get {\"taskId\":\"1\"}" => ["-32601"];
    }
}
