// What every TypeScript client is asked to do. One line for each check:
// ok|FAIL runtime transport client check
//
// usage: client-x.mjs RUNTIME http URL
//        client-x.mjs RUNTIME stdio COMMAND [ARGUMENT]...
//
// With CHECKS=questions, only what servers that ask are asked for.

import assert from 'node:assert/strict';

const PATIENCE = 20_000;

/// Waits for `work`, but not for ever.
function inTime(work) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`no answer in ${PATIENCE} ms`)), PATIENCE);
    });
    return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

const texts = (result) => result.content.map((item) => item.text ?? '').join('\n');

/// Runs all checks with a client as `adapter` makes it:
///
/// - `name`: the client's name in the output
/// - `connect({ transport, target, answer })`: a connected client; `answer` has
///   the host's side: `elicit(params)`, `sample(params)`, `roots()`, `log(params)`
/// - `call(client, params, options)`: tools/call
/// - `isModern(client)`: whether there is no session, as of 2026-07-28
/// - `close(client)`
export async function run(adapter) {
    const [runtime, transport, ...target] = process.argv.slice(2);
    let failed = false;
    const check = async (name, work) => {
        const where = `${runtime} ${transport} ${adapter.name} ${name}`;
        try {
            const value = await inTime(work());
            console.log(`ok ${where}`);
            return value;
        } catch (error) {
            failed = true;
            console.log(`FAIL ${where}`);
            console.error(error);
        }
    };

    const elicited = [];
    const sampled = [];
    const logged = [];
    const answer = {
        elicit(params) {
            elicited.push(params);
            return { action: 'accept', content: { name: 'Ada Lovelace', check: true, integer: 7 } };
        },
        sample(params) {
            sampled.push(params);
            return {
                model: 'none',
                role: 'assistant',
                stopReason: 'endTurn',
                content: { type: 'text', text: 'a sampled answer' },
            };
        },
        log: (params) => logged.push(params),
        roots: () => ({ roots: [{ uri: 'file:///interop', name: 'interop' }] }),
    };

    const client = await check('connect', () => adapter.connect({ transport, target, answer }));
    if (!client) process.exit(1);
    const call = (name, args, options) => adapter.call(client, { name, arguments: args }, options);
    const echo = async (message) => {
        assert.equal(texts(await call('echo', { message })), `Echo: ${message}`);
    };

    if (process.env.CHECKS === 'questions') {
        for (const [what, heard] of [
            ['form', 'heard: accept Ada Lovelace'],
            ['model', 'heard: a sampled answer'],
            ['roots', 'heard: file:///interop'],
        ]) {
            await check(`ask-${what}`, async () => assert.equal(texts(await call(`ask_${what}`, {})), heard));
        }
        await check('close', () => adapter.close(client));
        process.exit(failed ? 1 : 0);
    }

    await check('tools-list', async () => {
        const { tools } = await client.listTools();
        const names = tools.map((tool) => tool.name);
        assert.ok(names.includes('echo'), `${names}`);
        assert.ok(names.includes('trigger-long-running-operation'), `${names}`);
    });

    await check('echo', () => echo('héllo 世界 \u{1f600} \u2028 "\\'));

    await check('progress', async () => {
        const reports = [];
        const result = await call(
            'trigger-long-running-operation',
            { duration: 1, steps: 4 },
            { onprogress: (progress) => reports.push(progress) },
        );
        assert.match(texts(result), /completed/);
        // The 2.x client reports rounds of its own, without a total, if it is asked meanwhile.
        const seen = reports.filter(({ message }) => !/^Fulfilling input required/.test(message ?? ''));
        // The last one may be lost in the client, if it comes together with the result.
        const all = [1, 2, 3, 4].slice(0, Math.max(seen.length, 3));
        assert.deepEqual(seen.map((progress) => progress.progress), all);
        assert.ok(seen.every((progress) => progress.total === 4));
    });

    await check('cancel', async () => {
        const stop = new AbortController();
        const begin = Date.now();
        await assert.rejects(
            call(
                'trigger-long-running-operation',
                { duration: 60, steps: 300 },
                { signal: stop.signal, onprogress: () => stop.abort('enough') },
            ),
        );
        assert.ok(stop.signal.aborted, 'it failed before it was cancelled');
        assert.ok(Date.now() - begin < 10_000, 'it took too long');
        await echo('still here');
    });

    await check('resources', async () => {
        const { resources } = await client.listResources();
        assert.ok(resources.length > 0);
        for (const uri of [resources[0].uri, 'demo://resource/dynamic/text/1']) {
            const { contents } = await client.readResource({ uri });
            assert.equal(contents[0].uri, uri);
            assert.ok(contents[0].text.length > 0);
        }
    });

    await check('resource-templates', async () => {
        const { resourceTemplates } = await client.listResourceTemplates();
        assert.ok(resourceTemplates.some((t) => t.uriTemplate.startsWith('demo://resource/dynamic')));
    });

    await check('prompts', async () => {
        const { prompts } = await client.listPrompts();
        assert.ok(prompts.some((prompt) => prompt.name === 'args-prompt'));
        const result = await client.getPrompt({ name: 'args-prompt', arguments: { city: 'Zürich' } });
        assert.match(result.messages[0].content.text, /Zürich/);
    });

    await check('completion', async () => {
        const { completion } = await client.complete({
            ref: { type: 'ref/prompt', name: 'completable-prompt' },
            argument: { name: 'department', value: 'E' },
        });
        assert.deepEqual(completion.values, ['Engineering']);
    });

    await check('elicitation', async () => {
        const result = await call('trigger-elicitation-request', {});
        assert.equal(elicited.length, 1);
        assert.ok(elicited[0].requestedSchema.properties.name);
        assert.match(texts(result), /Name: Ada Lovelace/);
    });

    await check('sampling', async () => {
        const result = await call('trigger-sampling-request', { prompt: 'a question', maxTokens: 9 });
        assert.equal(sampled.length, 1);
        assert.equal(sampled[0].maxTokens, 9);
        assert.match(texts(result), /a sampled answer/);
    });

    await check('logging', async () => {
        if (adapter.isModern(client)) {
            // The level goes with each request, and nothing logs during this one.
            const level = { 'io.modelcontextprotocol/logLevel': 'debug' };
            await adapter.call(client, { name: 'echo', arguments: { message: '' }, _meta: level });
            return;
        }
        await client.setLoggingLevel('debug');
        await call('toggle-simulated-logging', {});
        // The server may have logged something else before, that it knows our roots for one.
        const simulated = () => logged.some(({ data }) => /level.message/.test(data));
        const begin = Date.now();
        while (!simulated() && Date.now() - begin < 3000) {
            await new Promise((resolve) => setTimeout(resolve, 20));
        }
        await call('toggle-simulated-logging', {});
        assert.ok(simulated(), JSON.stringify(logged));
    });

    await check('unknown-tool', async () => {
        // An error of the protocol or of the tool, as the server likes it.
        const result = await call('no-such-tool', {}).catch((error) => ({ error }));
        assert.ok(result.error ?? result.isError);
        await echo('still here');
    });

    await check('close', () => adapter.close(client));
    process.exit(failed ? 1 : 0);
}
