"""A Python server that adds: of the official package, whatever its version, or of
FastMCP.

usage: server-py.py stdio
       server-py.py sse|streamable-http PORT
"""

import os
import sys

transport = sys.argv[1]
port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
own_port = False
if os.environ.get("FASTMCP"):
    from fastmcp import FastMCP
else:
    try:
        from mcp.server.mcpserver import MCPServer as FastMCP
    except ImportError:
        from mcp.server.fastmcp import FastMCP

        own_port = True

server = FastMCP("adder", **({"port": port} if own_port and port else {}))


@server.tool()
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return str(a + b)


options = {} if own_port or not port else {"host": "127.0.0.1", "port": port}
server.run(transport=transport, **options)
