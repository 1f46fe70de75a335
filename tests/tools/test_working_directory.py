"""A working directory that was taken away: no tool works in it, and none makes it anew."""

from __future__ import annotations

import os
from typing import Any

import pytest

from pi_tui.core.errors import ToolError

CALLS = {
    "write": {"path": "new.txt", "content": "x"},
    "read": {"path": "old.txt"},
    "edit": {"path": "old.txt", "edits": [{"oldText": "a", "newText": "b"}]},
    "bash": {"command": "true"},
    "grep": {"pattern": "a"},
    "find": {"pattern": "*"},
    "ls": {},
}


@pytest.mark.parametrize("tool", CALLS)
async def test_every_tool_refuses_in_the_same_words(bench: Any, tool: str) -> None:
    bench.directory.rmdir()
    with pytest.raises(ToolError, match=r"working directory .* does not exist any more") as refusal:
        await bench.output(tool, **CALLS[tool])
    assert "nothing was done" in refusal.value.message
    assert not bench.directory.exists()


async def test_an_absolute_path_is_no_way_around(bench: Any, tmp_path: Any) -> None:
    bench.directory.rmdir()
    with pytest.raises(ToolError, match="does not exist any more"):
        await bench.output("write", path=str(tmp_path / "other" / "x"), content="x")
    assert not (tmp_path / "other").exists()


async def test_every_tool_is_in_this_test(bench: Any) -> None:
    assert set(CALLS) == set(bench.tools)


async def test_the_users_own_command_is_refused_too(bench: Any) -> None:
    bench.directory.rmdir()
    outcome = await bench.shell.run("true", str(bench.directory), lambda text: None)
    assert "does not exist any more" in outcome.output
    assert outcome.exit_code is None


@pytest.mark.parametrize("tool", ["find", "grep"])
async def test_a_pipe_for_an_ignore_file_is_not_waited_for(bench: Any, tool: str) -> None:
    bench.put(".git/HEAD", "")
    bench.put("sub/a.txt", "quartz")
    os.mkfifo(bench.path(".gitignore"))
    os.mkfifo(bench.path("sub/.gitignore"))
    assert "sub/a.txt" in await bench.text(tool, pattern="*.txt" if tool == "find" else "quartz")
