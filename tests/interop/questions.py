"""What servers that ask are asked for, by whatever Python client."""

import os

#: Whether that is all that is to be done.
ONLY = os.environ.get("CHECKS") == "questions"

_ANSWERS = {
    "form": "heard: accept Ada Lovelace",
    "model": "heard: a sampled answer",
    "roots": "heard: file:///interop",
}


def checks(call_tool, texts):
    """The checks, each with its name: `texts` reads the result of `call_tool`."""
    for what, heard in _ANSWERS.items():

        async def ask(what=what, heard=heard):
            result = await call_tool(f"ask_{what}", {})
            assert texts(result) == heard, result

        yield f"ask-{what}", ask
