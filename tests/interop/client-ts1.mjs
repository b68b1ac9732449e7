// The official TypeScript client, 1.x.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ListRootsRequestSchema,
    LoggingMessageNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

import { run } from './checks.mjs';

await run({
    name: 'ts1',

    async connect({ transport, target, answer }) {
        const client = new Client(
            { name: 'interop-ts1', version: '1.0.0' },
            { capabilities: { elicitation: {}, sampling: {}, roots: {} } },
        );
        client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer.elicit(params));
        client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => answer.sample(params));
        client.setRequestHandler(ListRootsRequestSchema, () => answer.roots());
        client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => answer.log(params));
        const [command, ...args] = target;
        await client.connect(
            transport === 'http'
                ? new StreamableHTTPClientTransport(new URL(command))
                : new StdioClientTransport({ command, args, stderr: 'inherit' }),
        );
        return client;
    },

    call: (client, params, options) => client.callTool(params, undefined, options),

    isModern: () => false,

    async close(client) {
        await client.transport.terminateSession?.();
        await client.close();
    },
});
