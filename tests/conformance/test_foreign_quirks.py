"""Quirk cases of another folder: never hidden, and a failure only where a sane result is known."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

VECTORS = Path(__file__).parent / "vectors"


@pytest.fixture
def run_foreign(tmp_path):
    """Runs the token cases of a folder in which `change` was made to one quirk case."""

    def run(change):
        folder = tmp_path / "vectors"
        folder.mkdir()
        (folder / "sessions").symlink_to(VECTORS / "sessions")
        cases = json.loads((VECTORS / "tokens.json").read_bytes())
        quirk = next(c for c in cases if "excluded-bash-counted" in c.get("quirks", ()))
        plain = next(c for c in cases if not c.get("quirks"))
        change(quirk)
        (folder / "tokens.json").write_text(json.dumps([quirk, plain]))
        test = str(Path(__file__).parent / "test_tokens.py")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
        command += ["--vectors", str(folder)]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=Path(__file__).parents[2]
        )

    return run


def differing(case, name="foreign"):
    case["name"] = name
    case["expected"] = dict.fromkeys(case["expected"], "something else")


def test_an_unknown_quirk_that_differs_is_counted_and_does_not_fail(run_foreign):
    done = run_foreign(differing)
    assert done.returncode == 0, done.stdout
    told = "1 quirk cases of a foreign folder differ from the measured value: kinds "
    assert f"{told}excluded-bash-counted (1)" in done.stdout
    assert "1 of 2 cases" in done.stdout


def test_a_quirk_with_a_sane_result_fails_where_that_differs(run_foreign):
    def change(case):
        differing(case)
        case["alternative"] = case["expected"]

    done = run_foreign(change)
    assert done.returncode == 1
    assert "FAILED" in done.stdout and "test_tokens[foreign]" in done.stdout
