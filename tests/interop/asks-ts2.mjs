// A server of the official TypeScript SDK, 2.x, that asks its host in the middle of its
// tools, as 2026-07-28 has it: for a form, for what a model says, and for roots. On
// standard input and output.

import { inputRequired, inputResponse, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const ask = {
    form: () =>
        inputRequired.elicit({ message: 'Who is there?', requestedSchema: z.object({ name: z.string() }) }),
    model: () =>
        inputRequired.createMessage({
            messages: [{ role: 'user', content: { type: 'text', text: 'Say something.' } }],
            maxTokens: 9,
        }),
    roots: () => inputRequired.listRoots(),
};

const said = {
    form: (answer) => `${answer.action} ${answer.content?.name}`,
    model: (answer) => answer.result.content.text,
    roots: (answer) => answer.roots.map((root) => root.uri).join(' '),
};

serveStdio(() => {
    const server = new McpServer({ name: 'asks', version: '1.0.0' });
    for (const what of ['form', 'model', 'roots']) {
        const options = { description: `Asks for it (${what})`, inputSchema: z.object({}) };
        server.registerTool(`ask_${what}`, options, async (_, context) => {
            const answer = inputResponse(context.mcpReq.inputResponses, what);
            if (answer.kind === 'missing') {
                return inputRequired({ inputRequests: { [what]: ask[what]() }, requestState: what });
            }
            return { content: [{ type: 'text', text: `heard: ${said[what](answer)}` }] };
        });
    }
    return server;
});
