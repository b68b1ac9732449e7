"""The official Python client, 1.x: each version speaks the revision that was the
newest when it came out. What a version cannot do is left out.

usage: client-py1.py RUNTIME http|sse URL
       client-py1.py RUNTIME stdio COMMAND [ARGUMENT]...

One line for each check: ok|FAIL runtime transport client check. With
CHECKS=questions, only what servers that ask are asked for.
"""

import inspect
import os
import sys
import traceback
from contextlib import asynccontextmanager

import anyio
import mcp.types as types
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.sse import sse_client

import questions

PATIENCE = 20
NAME = os.environ["NAME"]


def texts(result):
    return "\n".join(getattr(item, "text", "") for item in result.content)


@asynccontextmanager
async def streams(transport, target):
    if transport == "stdio":
        server = StdioServerParameters(command=target[0], args=target[1:])
        async with stdio_client(server) as (read, write):
            yield read, write
    elif transport == "sse":
        async with sse_client(target[0]) as (read, write):
            yield read, write
    else:
        from mcp.client.streamable_http import streamablehttp_client

        async with streamablehttp_client(target[0]) as (read, write, _):
            yield read, write


class Checks:
    def __init__(self, runtime, transport):
        self.where = f"{runtime} {transport} {NAME}"
        self.failed = False
        self.session = None
        self.sampled = []

    async def check(self, name, work):
        try:
            with anyio.fail_after(PATIENCE):
                await work()
            self.report("ok", name)
        except Exception:
            self.report("FAIL", name)

    def report(self, verdict, name):
        print(verdict, self.where, name, flush=True)
        if verdict == "FAIL":
            self.failed = True
            traceback.print_exc()

    async def sample(self, _context, params):
        self.sampled.append(params)
        content = types.TextContent(type="text", text="a sampled answer")
        return types.CreateMessageResult(model="none", role="assistant", content=content)

    async def elicit(self, _context, params):
        return types.ElicitResult(action="accept", content={"name": "Ada Lovelace"})

    async def roots(self, _context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///interop", name="interop")])

    async def echo(self, message="still here"):
        result = await self.session.call_tool("echo", {"message": message})
        assert texts(result) == f"Echo: {message}", result

    async def tools_list(self):
        names = [tool.name for tool in (await self.session.list_tools()).tools]
        assert "echo" in names and "trigger-long-running-operation" in names, names

    async def echo_text(self):
        await self.echo('héllo 世界 \U0001f600 \u2028 "\\')

    async def progress(self):
        if "progress_callback" not in inspect.signature(self.session.call_tool).parameters:
            return
        seen = []

        async def on_progress(progress, total, _message):
            seen.append((progress, total))

        result = await self.session.call_tool(
            "trigger-long-running-operation",
            {"duration": 1, "steps": 4},
            progress_callback=on_progress,
        )
        assert "completed" in texts(result), result
        # The last one may be lost in the client, if it comes together with the result.
        assert seen == [(n, 4) for n in (1, 2, 3, 4)][: max(len(seen), 3)], seen

    async def cancel(self):
        arguments = {"duration": 60, "steps": 300}
        number = self.session._request_id
        async with anyio.create_task_group() as group:
            group.start_soon(self.session.call_tool, "trigger-long-running-operation", arguments)
            await anyio.sleep(0.5)
            params = types.CancelledNotificationParams(requestId=number, reason="enough")
            cancelled = types.CancelledNotification(method="notifications/cancelled", params=params)
            await self.session.send_notification(types.ClientNotification(cancelled))
            group.cancel_scope.cancel()
        await self.echo()

    async def resources(self):
        uri = (await self.session.list_resources()).resources[0].uri
        contents = (await self.session.read_resource(uri)).contents
        assert contents[0].uri == uri and contents[0].text, contents

    async def prompts(self):
        names = [prompt.name for prompt in (await self.session.list_prompts()).prompts]
        assert "args-prompt" in names, names
        result = await self.session.get_prompt("args-prompt", {"city": "Zürich"})
        assert "Zürich" in result.messages[0].content.text, result

    async def sampling(self):
        arguments = {"prompt": "a question", "maxTokens": 9}
        result = await self.session.call_tool("trigger-sampling-request", arguments)
        assert [params.maxTokens for params in self.sampled] == [9], self.sampled
        assert "a sampled answer" in texts(result), result

    async def unknown_tool(self):
        # An error of the protocol or of the tool, as the server likes it.
        try:
            result = await self.session.call_tool("no-such-tool", {})
            assert result.isError, result
        except Exception as error:
            assert "no-such-tool" in str(error), error
        await self.echo()


async def main():
    runtime, transport, *target = sys.argv[1:]
    checks = Checks(runtime, transport)
    stage = "connect"
    try:
        async with streams(transport, target) as (read, write):
            callbacks = {"sampling_callback": checks.sample}
            if questions.ONLY:
                callbacks["elicitation_callback"] = checks.elicit
                callbacks["list_roots_callback"] = checks.roots
            session = ClientSession(read, write, **callbacks)
            async with session:
                welcome = await session.initialize()
                assert welcome.protocolVersion == types.LATEST_PROTOCOL_VERSION, welcome
                checks.session = session
                checks.report("ok", stage)
                print(f"# {NAME}: {welcome.protocolVersion}", file=sys.stderr)
                stage = "close"
                for name, work in questions.checks(checks.session.call_tool, texts) if questions.ONLY else (
                    ("tools-list", checks.tools_list),
                    ("echo", checks.echo_text),
                    ("progress", checks.progress),
                    ("cancel", checks.cancel),
                    ("resources", checks.resources),
                    ("prompts", checks.prompts),
                    ("sampling", checks.sampling),
                    ("unknown-tool", checks.unknown_tool),
                ):
                    await checks.check(name, work)
        checks.report("ok", stage)
    except Exception:
        checks.report("FAIL", stage)
    return 1 if checks.failed else 0


sys.exit(anyio.run(main))
