// A server of the official TypeScript SDK, 2.x, that adds: on standard input and output,
// or, with a port, at http://127.0.0.1:PORT/mcp.

import { createServer } from 'node:http';

import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

function adder() {
    const server = new McpServer({ name: 'adder', version: '1.0.0' });
    server.registerTool(
        'add',
        { description: 'Adds two numbers', inputSchema: z.object({ a: z.number(), b: z.number() }) },
        async ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }),
    );
    return server;
}

const port = process.argv[2];
if (port) {
    createServer(toNodeHandler(createMcpHandler(adder))).listen(Number(port), '127.0.0.1');
} else {
    serveStdio(adder);
}
