"""The official Python client, 2.x. It asks for the modern revision first,
unless MODE is legacy.

usage: client-py.py RUNTIME http URL
       client-py.py RUNTIME stdio COMMAND [ARGUMENT]...

One line for each check: ok|FAIL runtime transport client check. With
CHECKS=questions, only what servers that ask are asked for.
"""

import os
import sys
import traceback
import warnings

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

import questions

PATIENCE = 20
MODE = "legacy" if os.environ.get("MODE") == "legacy" else "auto"
NAME = "py-legacy" if MODE == "legacy" else "py"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"


def texts(result):
    return "\n".join(getattr(item, "text", "") for item in result.content)


class Checks:
    def __init__(self, runtime, transport):
        self.where = f"{runtime} {transport} {NAME}"
        self.failed = False
        self.client = None
        self.elicited, self.sampled, self.logged = [], [], []

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

    # The host's side.

    async def elicit(self, _context, params):
        self.elicited.append(params)
        content = {"name": "Ada Lovelace", "check": True, "integer": 7}
        return types.ElicitResult(action="accept", content=content)

    async def sample(self, _context, params):
        self.sampled.append(params)
        content = types.TextContent(type="text", text="a sampled answer")
        return types.CreateMessageResult(
            model="none", role="assistant", stop_reason="endTurn", content=content
        )

    async def roots(self, _context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///interop", name="interop")])

    async def log(self, params):
        self.logged.append(params)

    # The checks.

    async def echo(self, message="still here"):
        result = await self.client.call_tool("echo", {"message": message})
        assert texts(result) == f"Echo: {message}", result

    async def tools_list(self):
        names = [tool.name for tool in (await self.client.list_tools()).tools]
        assert "echo" in names and "trigger-long-running-operation" in names, names

    async def echo_text(self):
        await self.echo('héllo 世界 \U0001f600 \u2028 "\\')

    async def progress(self):
        seen = []

        async def on_progress(progress, total, _message):
            seen.append((progress, total))

        result = await self.client.call_tool(
            "trigger-long-running-operation",
            {"duration": 1, "steps": 4},
            progress_callback=on_progress,
        )
        assert "completed" in texts(result), result
        # The last one may be lost in the client, if it comes together with the result.
        assert seen == [(n, 4) for n in (1, 2, 3, 4)][: max(len(seen), 3)], seen

    async def cancel(self):
        with anyio.CancelScope() as scope:

            async def on_progress(_progress, _total, _message):
                scope.cancel()

            with anyio.fail_after(10):
                await self.client.call_tool(
                    "trigger-long-running-operation",
                    {"duration": 60, "steps": 300},
                    progress_callback=on_progress,
                )
        assert scope.cancelled_caught
        await self.echo()

    async def resources(self):
        listed = (await self.client.list_resources()).resources
        for uri in (str(listed[0].uri), "demo://resource/dynamic/text/1"):
            contents = (await self.client.read_resource(uri)).contents
            assert str(contents[0].uri) == uri and contents[0].text, contents

    async def resource_templates(self):
        listed = (await self.client.list_resource_templates()).resource_templates
        assert any(t.uri_template.startswith("demo://resource/dynamic") for t in listed), listed

    async def prompts(self):
        names = [prompt.name for prompt in (await self.client.list_prompts()).prompts]
        assert "args-prompt" in names, names
        result = await self.client.get_prompt("args-prompt", {"city": "Zürich"})
        assert "Zürich" in result.messages[0].content.text, result

    async def completion(self):
        prompt = types.PromptReference(type="ref/prompt", name="completable-prompt")
        argument = {"name": "department", "value": "E"}
        result = await self.client.complete(prompt, argument)
        assert result.completion.values == ["Engineering"], result

    async def elicitation(self):
        result = await self.client.call_tool("trigger-elicitation-request", {})
        assert len(self.elicited) == 1, self.elicited
        assert "name" in self.elicited[0].requested_schema["properties"]
        assert "Name: Ada Lovelace" in texts(result), result

    async def sampling(self):
        arguments = {"prompt": "a question", "maxTokens": 9}
        result = await self.client.call_tool("trigger-sampling-request", arguments)
        assert [params.max_tokens for params in self.sampled] == [9], self.sampled
        assert "a sampled answer" in texts(result), result

    async def logging(self):
        if self.client.protocol_version >= "2026-07-28":
            # The level goes with each request, and nothing logs during this one.
            await self.client.call_tool("echo", {"message": ""}, meta={LOG_LEVEL: "debug"})
            return
        await self.client.set_logging_level("debug")
        await self.client.call_tool("toggle-simulated-logging", {})
        with anyio.move_on_after(3):
            while not self.simulated():
                await anyio.sleep(0.02)
        await self.client.call_tool("toggle-simulated-logging", {})
        assert self.simulated(), self.logged

    def simulated(self):
        # The server may have logged something else before, that it knows our roots for one.
        return [entry for entry in self.logged if "level message" in str(entry.data).replace("-", " ")]

    async def unknown_tool(self):
        # An error of the protocol or of the tool, as the server likes it.
        try:
            result = await self.client.call_tool("no-such-tool", {})
            assert result.is_error, result
        except MCPError:
            pass
        await self.echo()


async def main():
    runtime, transport, *target = sys.argv[1:]
    checks = Checks(runtime, transport)
    server = (
        target[0]
        if transport == "http"
        else StdioServerParameters(command=target[0], args=target[1:])
    )
    client = Client(
        server,
        mode=MODE,
        elicitation_callback=checks.elicit,
        sampling_callback=checks.sample,
        list_roots_callback=checks.roots,
        logging_callback=checks.log,
        client_info=types.Implementation(name="interop-py", version="1.0.0"),
    )

    # The client is entered and left in one place: its task group must not
    # outlive a time limit around it. The caller limits the whole run.
    stage = "connect"
    try:
        async with client:
            checks.client = client
            checks.report("ok", stage)
            print(f"# {NAME}: {client.protocol_version}", file=sys.stderr)
            stage = "close"
            for name, work in questions.checks(checks.client.call_tool, texts) if questions.ONLY else (
                ("tools-list", checks.tools_list),
                ("echo", checks.echo_text),
                ("progress", checks.progress),
                ("cancel", checks.cancel),
                ("resources", checks.resources),
                ("resource-templates", checks.resource_templates),
                ("prompts", checks.prompts),
                ("completion", checks.completion),
                ("elicitation", checks.elicitation),
                ("sampling", checks.sampling),
                ("logging", checks.logging),
                ("unknown-tool", checks.unknown_tool),
            ):
                await checks.check(name, work)
        checks.report("ok", stage)
    except Exception:
        checks.report("FAIL", stage)
    return 1 if checks.failed else 0


warnings.simplefilter("ignore", MCPDeprecationWarning)
sys.exit(anyio.run(main))
