"""Loads conformance vectors and makes one test per case.

`pytest tests/conformance --vectors DIR` runs any folder laid out like `tests/conformance/vectors`.
A module says with `GROUP` which file it checks; its test takes a `case`. Cases with `quirks` are
compared with their `alternative`, or with the result documented in `deviations.json`. A quirk of
another folder that has neither is expected to fail where it differs, and the summary counts it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

import pytest

from pi_tui.core.entries import entry_from_data
from pi_tui.core.tree import SessionTree, tree_of

HERE = Path(__file__).parent
DEFAULT_VECTORS = HERE / "vectors"
Case = dict[str, Any]

_cases: dict[Path, list[Case]] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--vectors", metavar="DIR", default=None, help="folder of conformance vectors to run"
    )


def vectors_dir(config: pytest.Config) -> Path:
    given = config.getoption("--vectors", default=None)
    return Path(given).absolute() if given else DEFAULT_VECTORS


def cases_of(folder: Path, group: str) -> list[Case]:
    file = folder / f"{group}.json"
    if file not in _cases:
        _cases[file] = json.loads(file.read_bytes()) if file.exists() else []
    return _cases[file]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    group = getattr(metafunc.module, "GROUP", None)
    if group is None or "case" not in metafunc.fixturenames:
        return
    cases = cases_of(vectors_dir(metafunc.config), group)
    metafunc.parametrize("case", cases, ids=[case["name"] for case in cases])


@pytest.fixture(scope="session")
def vectors(pytestconfig: pytest.Config) -> Path:
    return vectors_dir(pytestconfig)


@pytest.fixture(scope="session")
def session_lines(vectors: Path) -> Callable[[str], list[dict[str, Any]]]:
    """The entry objects of a session file, by its path in the vectors."""
    read: dict[str, list[dict[str, Any]]] = {}

    def lines(name: str) -> list[dict[str, Any]]:
        if name not in read:
            text = (vectors / name).read_text(encoding="utf-8")
            read[name] = [json.loads(line) for line in text.split("\n") if line][1:]
        return read[name]

    return lines


@pytest.fixture(scope="session")
def tree_for(
    session_lines: Callable[[str], list[dict[str, Any]]],
) -> Callable[[str], SessionTree]:
    """The tree of a session file; loaded once, so do not change it."""
    trees: dict[str, SessionTree] = {}

    def tree(name: str) -> SessionTree:
        if name not in trees:
            trees[name] = tree_of(map(entry_from_data, session_lines(name)))
        return trees[name]

    return tree


@pytest.fixture(scope="session")
def _documented() -> dict[str, Any]:
    documented: dict[str, Any] = json.loads((HERE / "deviations.json").read_bytes())
    return documented


@pytest.fixture(scope="session")
def deviations(_documented: dict[str, Any]) -> dict[str, Any]:
    """Results this program gives on purpose instead of a measured quirk, by case name.

    `instead` stands for the whole result, `changed` for the fields that differ.
    """
    found: dict[str, Any] = _documented["cases"]
    return found


@pytest.fixture(scope="session")
def deviation_reasons(_documented: dict[str, Any]) -> dict[str, str]:
    """Why, by quirk."""
    found: dict[str, str] = _documented["reasons"]
    return found


@pytest.fixture(scope="session")
def cases() -> dict[str, Case]:
    """The quirk cases of our own vectors, by name."""
    return {
        case["name"]: case
        for file in DEFAULT_VECTORS.glob("*.json")
        if file.name != "manifest.json"
        for case in cases_of(DEFAULT_VECTORS, file.stem)
        if case.get("quirks")
    }


@pytest.fixture
def expected(
    case: Case, deviations: dict[str, dict[str, Any]], record_property: Callable[[str, Any], None]
) -> dict[str, Any]:
    """What the case should give: the measured result, or the sane one for a quirk."""
    result = dict(case["expected"])
    if not case.get("quirks"):
        return result
    if case["name"] in deviations:
        record_property("conformance", "with a documented result of our own")
        result |= case.get("alternative", {})
        sane = deviations[case["name"]]
        return sane["instead"] if "instead" in sane else result | sane["changed"]
    if "alternative" in case or any("alternative" in p for p in result.get("prepared", ())):
        record_property("conformance", "with the alternative")
        return result | case.get("alternative", {})
    record_property("conformance", "where the measured value is kept")
    return result


def is_settled(case: Case, own: Container[str]) -> bool:
    """False for a quirk case of another folder that does not say what a sane result is.

    One with several quirks may give an alternative for one of them only, inside its result.
    """
    quirks = case.get("quirks", ())
    if not quirks or case["name"] in own or "alternative" in case:
        return True
    inside = any("alternative" in part for part in case["expected"].get("prepared", ()))
    return inside and len(quirks) == 1


@pytest.fixture
def check(
    case: Case, cases: dict[str, Case], record_property: Callable[[str, Any], None]
) -> Callable[[Any, Any], None]:
    """Compare; an unsettled quirk case that differs is an expected failure, told in the summary."""

    def compare(found: Any, wanted: Any) -> None:
        if found != wanted and not is_settled(case, cases):
            kinds = ", ".join(sorted(case["quirks"]))
            record_property("differs", kinds)
            pytest.xfail(f"quirk {kinds}: {found!r} instead of {wanted!r}")
        assert found == wanted

    return compare


def pytest_terminal_summary(terminalreporter: Any) -> None:
    totals: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    quirks: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    for outcome in ("passed", "failed", "skipped", "xfailed"):
        for report in terminalreporter.stats.get(outcome, []):
            if "tests/conformance/test_" not in report.nodeid or "[" not in report.nodeid:
                continue
            if report.when != "call" and outcome == "passed":
                continue
            group = Path(report.nodeid.split("::")[0]).stem.removeprefix("test_")
            totals[group] += 1
            passed[group] += outcome == "passed"
            for name, value in report.user_properties:
                if name == "conformance":
                    quirks[value] += outcome == "passed"
                elif name == "differs":
                    differing[value] += 1
    if not totals:
        return
    terminalreporter.section("conformance")
    for group in sorted(totals):
        terminalreporter.line(f"{group:>10}: {passed[group]} of {totals[group]} cases")
    terminalreporter.line(f"{'all':>10}: {sum(passed.values())} of {sum(totals.values())} cases")
    for value, count in sorted(quirks.items()):
        terminalreporter.line(f"    {count} quirk cases {value}")
    if differing:
        kinds = "; ".join(f"{kind} ({count})" for kind, count in sorted(differing.items()))
        terminalreporter.line(
            f"    {sum(differing.values())} quirk cases of a foreign folder differ from the "
            f"measured value: kinds {kinds}"
        )
