"""A Python server, of the official package 1.x or 2.x, that asks its host in the middle
of its tools: for a form, for what a model says, and for roots. With 2.x as 2026-07-28 has
it. On standard input and output.
"""

try:
    from mcp.server.mcpserver import Context, MCPServer
except ImportError:
    MCPServer = None

if MCPServer:
    import mcp_types as types

    SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
    TEXT = types.TextContent(type="text", text="Say something.")
    MESSAGES = [types.SamplingMessage(role="user", content=TEXT)]
    FORM = types.ElicitRequestFormParams(message="Who is there?", requested_schema=SCHEMA)
    MODEL = types.CreateMessageRequestParams(messages=MESSAGES, max_tokens=9)

    server = MCPServer("asks")

    def answer_to(context, key, request):
        answer = (context.input_responses or {}).get(key)
        if answer is not None:
            return answer, None
        asked = {key: request}
        return None, types.InputRequiredResult(input_requests=asked, request_state=key)

    @server.tool()
    async def ask_form(ctx: Context) -> str | types.InputRequiredResult:
        answer, asks = answer_to(ctx, "form", types.ElicitRequest(params=FORM))
        return asks or f"heard: {answer.action} {answer.content['name']}"

    @server.tool()
    async def ask_model(ctx: Context) -> str | types.InputRequiredResult:
        answer, asks = answer_to(ctx, "model", types.CreateMessageRequest(params=MODEL))
        return asks or f"heard: {answer.content.text}"

    @server.tool()
    async def ask_roots(ctx: Context) -> str | types.InputRequiredResult:
        answer, asks = answer_to(ctx, "roots", types.ListRootsRequest())
        return asks or "heard: " + " ".join(str(root.uri) for root in answer.roots)

else:
    import mcp.types as types
    from mcp.server.fastmcp import Context, FastMCP
    from pydantic import BaseModel

    class Form(BaseModel):
        name: str

    server = FastMCP("asks")

    @server.tool()
    async def ask_form(ctx: Context) -> str:
        answer = await ctx.elicit("Who is there?", schema=Form)
        return f"heard: {answer.action} {answer.data.name}"

    @server.tool()
    async def ask_model(ctx: Context) -> str:
        text = types.TextContent(type="text", text="Say something.")
        messages = [types.SamplingMessage(role="user", content=text)]
        answer = await ctx.session.create_message(messages, max_tokens=9)
        return f"heard: {answer.content.text}"

    @server.tool()
    async def ask_roots(ctx: Context) -> str:
        answer = await ctx.session.list_roots()
        return "heard: " + " ".join(str(root.uri) for root in answer.roots)


server.run(transport="stdio")
