//! A server of the official Rust SDK: on standard input and output, or, with a port, at
//! http://127.0.0.1:PORT/mcp.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServiceExt, schemars, tool, tool_router};

#[derive(Clone)]
struct Adder;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

#[tool_router(server_handler)]
impl Adder {
    #[tool(description = "Adds two numbers")]
    fn add(&self, Parameters(Sum { a, b }): Parameters<Sum>) -> String {
        (a + b).to_string()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(port) = std::env::args().nth(1) else {
        Adder.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    };
    let service = StreamableHttpService::new(
        || Ok(Adder),
        LocalSessionManager::default().into(),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
