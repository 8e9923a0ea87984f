"""The Python in README.md and docs/: each block is run as its reader would run it.

A block with `asyncio.run(` is a script, run by an interpreter of its own. Any other is typed into `python -m asyncio`,
where `await` needs no function around it: with `asyncio`, `bucketq`, a `client` on a queue in memory, and its queue
`mail`. `file:///tmp/` stands for a directory of the test's own.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import bucketq

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Snippet(NamedTuple):
    file: str
    line: int
    code: str

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def is_script(self) -> bool:
        return "asyncio.run(" in self.code

    def at(self, directory: Path) -> str:
        """The code, with its own directory in place of /tmp. Its lines keep their numbers."""
        return "\n" * (self.line - 1) + self.code.replace("file:///tmp/", f"{directory.as_uri()}/")


def snippets() -> list[Snippet]:
    found = []
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]:
        text = path.read_text()
        for block in _BLOCK.finditer(text):
            line = text.count("\n", 0, block.start(1)) + 1
            found.append(Snippet(str(path.relative_to(ROOT)), line, block[1]))
    return found


async def run_typed(snippet: Snippet, directory: Path) -> dict[str, Any]:
    """Run a block as if typed; the names it leaves."""
    code = compile(snippet.at(directory), snippet.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    async with bucketq.connect("memory://") as client:
        names: dict[str, Any] = {
            "__name__": "__main__", "asyncio": asyncio, "bucketq": bucketq, "client": client,
            "mail": client.queue("mail"),
        }  # fmt: skip
        pending = eval(code, names)
        if inspect.iscoroutine(pending):
            await pending
        left = names["client"]
        if isinstance(left, bucketq.Client):
            await left.close()
    return names


async def run_script(snippet: Snippet, directory: Path) -> tuple[int | None, str]:
    """Run a block as a script; its exit code and what it wrote to the standard error."""
    script = directory / "script.py"
    script.write_text(snippet.at(directory))
    process = await asyncio.create_subprocess_exec(
        sys.executable, script, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=directory
    )
    _, errors = await process.communicate()
    return process.returncode, errors.decode()
