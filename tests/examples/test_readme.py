"""What the documentation shows does run."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tests.examples.snippets import ROOT, Snippet, run_script, run_typed, snippets

PATIENCE_S = 60.0
SNIPPETS = snippets()
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("snippet", SNIPPETS, ids=[snippet.name for snippet in SNIPPETS])
async def test_a_snippet_runs(snippet: Snippet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if snippet.is_script:
        assert await asyncio.wait_for(run_script(snippet, tmp_path), PATIENCE_S) == (0, "")
    else:
        await asyncio.wait_for(run_typed(snippet, tmp_path), PATIENCE_S)


def test_the_readme_begins_with_a_script():
    first = SNIPPETS[0]
    assert (first.file, first.is_script) == ("README.md", True)
    assert len(first.code.splitlines()) <= 12


@pytest.mark.parametrize("path", [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))], ids=lambda path: path.name)
def test_what_a_page_links_to_is_there(path: Path):
    assert [link for link in LINK.findall(path.read_text()) if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))], ids=lambda path: path.name)
def test_the_files_a_page_names_are_there(path: Path):
    """Such as `commit/committer.py` or `src/bucketq/clock.py`, in backquotes."""
    named = re.findall(r"`((?:[\w-]+/)+[\w.-]*\w/?)`", path.read_text())
    places = [ROOT, ROOT / "src" / "bucketq", ROOT / "tests"]
    files = [name for name in named if name.endswith(("/", ".py", ".md"))]
    assert [name for name in files if not any((place / name).exists() for place in places)] == []
