#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`drystone mcp` behind the protocol's own client, mcp from PyPI: client.py TOOL

DRY_TEST_MCP is the folder where it is installed; .ci/run brings one, and without it this
test skips. The client validates every message against the protocol's types, and a tool's
result by the types of the revision that was agreed on.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

where = os.environ.get("DRY_TEST_MCP", "")
if not pathlib.Path(where, "ready").exists():
    print("SKIPPED: DRY_TEST_MCP names no folder with mcp from PyPI")
    sys.exit(77)
sys.path.insert(0, where)

import anyio  # noqa: E402
import jsonschema  # noqa: E402
from mcp import Client, StdioServerParameters  # noqa: E402
from mcp.shared.exceptions import MCPError  # noqa: E402

tool = str(pathlib.Path(sys.argv[1]).resolve())
reading = {"list_files", "info", "explain", "explain_message", "top", "steps",
           "diff", "replay", "sweep"}


async def check_tools(client):
    tools = (await client.list_tools()).tools
    assert {t.name for t in tools} == reading
    for t in tools:
        jsonschema.Draft202012Validator.check_schema(t.input_schema)
        assert t.annotations.read_only_hint
    return {t.name: t.input_schema for t in tools}


async def check_calls(client, schemas, folder):
    for name, arguments in (
            ("list_files", {}), ("info", {"file": "demo.pickle"}),
            ("explain", {"file": "demo.pickle", "gpu_total": "15GiB", "rows": 3}),
            ("explain_message", {"text": "CUDA error: out of memory"}),
            ("top", {"file": "demo.pickle", "by": "category", "format": "json"}),
            ("top", {"file": "demo.pickle", "free": True}), ("steps", {"file": "demo.pickle"}),
            ("diff", {"files": ["demo.pickle", "demo.pickle"]}),
            ("replay", {"file": "demo.pickle", "conf": ["expandable_segments:True"]}),
            ("sweep", {"file": "demo.pickle", "goal": "peak"})):
        jsonschema.validate(arguments, schemas[name])
        result = await client.call_tool(name, arguments)
        text = result.content[0].text
        assert not result.is_error and len(text) > 40, (name, text)
        assert len(text.encode()) <= 10000, name
    refused = await client.call_tool("info", {"file": "../outside.pickle"})
    assert refused.is_error and "no such file" in refused.content[0].text
    try:
        await client.call_tool("remove", {})
    except MCPError as error:
        assert error.error.code == -32602
    else:
        raise AssertionError("a tool that is not there was called")


async def check(mode, version, folder):
    server = StdioServerParameters(command=tool, args=["mcp", str(folder)])
    async with Client(server, mode=mode) as client:
        assert client.protocol_version == version, client.protocol_version
        if mode != version:  # a client that is told the revision asks for neither
            assert client.server_info.name == "drystone"
            assert "explain" in client.instructions
        await check_calls(client, await check_tools(client), folder)


with tempfile.TemporaryDirectory() as name:
    subprocess.run([tool, "demo", "--capacity", "24GiB", "--output", pathlib.Path(name, "demo.pickle")],
                   check=True, stdout=subprocess.DEVNULL)
    for mode, version in (("auto", "2026-07-28"), ("2026-07-28", "2026-07-28"),
                          ("legacy", "2025-11-25")):
        anyio.run(check, mode, version, pathlib.Path(name))
        print(f"{mode}: {version}")
