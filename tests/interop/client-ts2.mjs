// The official TypeScript client, 2.x. It asks for the modern revision first,
// unless MODE is legacy.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { run } from './checks.mjs';

const mode = process.env.MODE === 'legacy' ? 'legacy' : 'auto';

await run({
    name: mode === 'legacy' ? 'ts2-legacy' : 'ts2',

    async connect({ transport, target, answer }) {
        const client = new Client(
            { name: 'interop-ts2', version: '1.0.0' },
            {
                capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
                versionNegotiation: { mode },
            },
        );
        client.setRequestHandler('elicitation/create', ({ params }) => answer.elicit(params));
        client.setRequestHandler('sampling/createMessage', ({ params }) => answer.sample(params));
        client.setRequestHandler('roots/list', () => answer.roots());
        client.setNotificationHandler('notifications/message', ({ params }) => answer.log(params));
        const [command, ...args] = target;
        await client.connect(
            transport === 'http'
                ? new StreamableHTTPClientTransport(new URL(command))
                : new StdioClientTransport({ command, args, stderr: 'inherit' }),
        );
        console.error(`# ts2: ${client.getProtocolEra()} ${client.getNegotiatedProtocolVersion()}`);
        return client;
    },

    call: (client, params, options) => client.callTool(params, options),

    isModern: (client) => client.getProtocolEra() === 'modern',

    async close(client) {
        await client.transport.terminateSession?.();
        await client.close();
    },
});
