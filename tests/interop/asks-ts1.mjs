// A server of the official TypeScript SDK, 1.x, that asks its host in the middle of its
// tools: for a form, for what a model says, and for roots. On standard input and output.

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';

const server = new McpServer({ name: 'asks', version: '1.0.0' });
const tool = (what, ask) =>
    server.registerTool(`ask_${what}`, { description: `Asks for it (${what})` }, async () => ({
        content: [{ type: 'text', text: `heard: ${await ask(server.server)}` }],
    }));

tool('form', async (asker) => {
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } };
    const answer = await asker.elicitInput({ message: 'Who is there?', requestedSchema });
    return `${answer.action} ${answer.content?.name}`;
});
tool('model', async (asker) => {
    const messages = [{ role: 'user', content: { type: 'text', text: 'Say something.' } }];
    return (await asker.createMessage({ messages, maxTokens: 9 })).content.text;
});
tool('roots', async (asker) => (await asker.listRoots()).roots.map((root) => root.uri).join(' '));

await server.connect(new StdioServerTransport());
