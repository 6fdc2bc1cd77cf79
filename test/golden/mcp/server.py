"""A server under test, spoken to line by line: what the tests of `drystone mcp` share."""
import json
import os
import pathlib
import subprocess

VERSION = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {}}
data = pathlib.Path(__file__).resolve().parents[2] / "data"


class Server:
    """One process; every line is written at once, and an answer is one line."""

    def __init__(self, tool, *folders, cwd=None):
        # A sanitizer would end the program where memory is refused; the C library says so.
        options = os.environ.get("ASAN_OPTIONS", "") + ":allocator_may_return_null=1"
        self.process = subprocess.Popen([tool, "mcp", *folders], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, cwd=cwd,
                                        env={**os.environ, "ASAN_OPTIONS": options})
        self.last = 0
        self.longest = 0

    def write(self, line):
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self):
        line = self.process.stdout.readline()
        self.longest = max(self.longest, len(line))
        return json.loads(line)

    def say(self, line):
        self.write(line if isinstance(line, bytes) else json.dumps(line).encode())
        return self.read()

    def ask(self, method, meta=META, **params):
        self.last += 1
        if meta:
            params["_meta"] = meta
        answer = self.say({"jsonrpc": "2.0", "id": self.last, "method": method,
                           "params": params})
        assert answer["jsonrpc"] == "2.0" and answer["id"] == self.last, answer
        return answer

    def call(self, name, **arguments):
        """The text of a tool's answer, and whether it is an error."""
        answer = self.ask("tools/call", name=name, arguments=arguments)
        content = answer["result"]["content"]
        assert len(content) == 1 and content[0]["type"] == "text", answer
        return content[0]["text"], answer["result"]["isError"]

    def pages(self, name, **arguments):
        """All pages of an answer, joined; how many; and the longest line."""
        text, count, self.longest = "", 0, 0
        while True:
            page, is_error = self.call(name, **arguments)
            assert not is_error, page
            count += 1
            head, mark, tail = page.rpartition("[bytes ")
            if not mark or not tail.endswith("]\n"):
                return text + page, count, self.longest
            text += head
            arguments["cursor"] = tail.split()[-1].rstrip("]")

    def end(self):
        self.process.stdin.close()
        rest = self.process.stdout.read()
        assert rest == b"", rest
        return self.process.wait(timeout=60)
