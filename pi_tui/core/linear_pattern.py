"""Regular expressions that cannot hang: time follows the length of the text, whatever the pattern.

The expressions of Python's `re` can take years for thirty characters and hold the interpreter
while they do, so that no thread and no timer can stop them. Here a pattern becomes an automaton
whose states are made when they are first needed; each character of a text is looked at a few times.
The states a pattern may make are bounded; one that needs more is refused in words.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pi_tui.core.errors import UsageError
from pi_tui.core.pattern_syntax import (
    Alternatives,
    Assertion,
    AssertKind,
    CharSet,
    Node,
    Repeat,
    Sequence,
    is_word,
    parse_pattern,
)

MAX_INSTRUCTIONS = 1_000
MAX_STEPS = 1_500_000
"""Steps of making states in one search; about a second."""
MAX_STATES = 4_000

_Kind: TypeAlias = Literal["edge", "line", "word", "other"]
_Instruction: TypeAlias = tuple[CharSet | AssertKind | None, tuple[int, ...]]
"""What has to fit (None: nothing) and where to go on; without targets it is the end."""


class LinearPattern:
    """A compiled pattern. Letter case never counts; `^` and `$` stand for the ends of a line."""

    def __init__(self, pattern: str) -> None:
        """Compile. Raises UsageError when the pattern is wrong or too large."""
        self.pattern = pattern
        node = parse_pattern(pattern)
        self._search = _Automaton(_Compiler(pattern).compile(node, backward=False), floating=True)
        self._forward = _Automaton(self._search.program, floating=False)
        self._backward = _Automaton(
            _Compiler(pattern).compile(node, backward=True), floating=False, backward=True
        )

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """The leftmost of the matches that end first, as long as it can be.

        Raises UsageError when the pattern turns out to be too costly.
        """
        budget = _Budget(self.pattern)
        end = self._search.run(text, start, budget, first=True)
        if end is None:
            return None
        begin = self._backward.run(text, end, budget, stop=start)
        if begin is None:
            return end, end
        longest = self._forward.run(text, begin, budget)
        return begin, end if longest is None else longest

    def spans(self, text: str, limit: int) -> list[tuple[int, int]] | None:
        """Up to `limit` matches that do not overlap; None when there is none."""
        found = self.find(text)
        if found is None:
            return None
        spans: list[tuple[int, int]] = []
        while found is not None and len(spans) < limit:
            start, end = found
            if end > start:
                spans.append(found)
            at = end if end > start else end + 1
            found = self.find(text, at) if at < len(text) else None
            if found is not None and found[1] <= at and found[1] == found[0]:
                break  # an empty match fits everywhere; more of them tell nothing
        return spans


class _Budget:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._left = MAX_STEPS

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise UsageError(
                f"the pattern {self._pattern!r} is too costly to search with",
                hint="Use fewer or smaller repeats.",
            )


class _Compiler:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._program: list[_Instruction] = [(None, ())]  # number 0 is the end

    def compile(self, node: Node, *, backward: bool) -> list[_Instruction]:
        """The program; its last instruction is where to begin."""
        start = self._emit(node, 0, backward)
        self._add(None, (start,))
        return self._program

    def _add(self, test: CharSet | AssertKind | None, targets: tuple[int, ...]) -> int:
        if len(self._program) >= MAX_INSTRUCTIONS:
            raise UsageError(f"the pattern {self._pattern!r} is too large to search with")
        self._program.append((test, targets))
        return len(self._program) - 1

    def _emit(self, node: Node, then: int, backward: bool) -> int:
        """Add the instructions of a node that go on at `then`; returns the first."""
        if isinstance(node, CharSet):
            return self._add(node, (then,))
        if isinstance(node, Assertion):
            return self._add(node.kind, (then,))
        if isinstance(node, Alternatives):
            return self._add(None, tuple(self._emit(o, then, backward) for o in node.options))
        if isinstance(node, Sequence):
            for part in node.parts if backward else reversed(node.parts):
                then = self._emit(part, then, backward)
            return then
        return self._repeat(node, then, backward)

    def _repeat(self, node: Repeat, then: int, backward: bool) -> int:
        if node.most is None:
            loop = self._add(None, ())
            self._program[loop] = (None, (self._emit(node.part, loop, backward), then))
            then = loop
        else:
            after = then
            for _ in range(node.most - node.least):
                then = self._add(None, (self._emit(node.part, then, backward), after))
        for _ in range(node.least):
            then = self._emit(node.part, then, backward)
        return then


class _State:
    """Places in the program, and what stands before them. `moves` is filled while running."""

    __slots__ = ("before", "moves", "places")

    def __init__(self, places: frozenset[int], before: _Kind) -> None:
        self.places = places
        self.before: _Kind = before
        self.moves: dict[str, tuple[bool, _State]] = {}


class _Automaton:
    """Runs a program over a text, in one direction; `floating` lets a match begin anywhere."""

    def __init__(
        self, program: list[_Instruction], *, floating: bool, backward: bool = False
    ) -> None:
        self.program = program
        self._floating = floating
        self._backward = backward
        self._begin = frozenset({len(program) - 1})
        self._states: dict[tuple[frozenset[int], _Kind], _State] = {}

    def run(
        self, text: str, at: int, budget: _Budget, *, first: bool = False, stop: int = 0
    ) -> int | None:
        """Where a match that begins at `at` ends: the farthest place, or the first one met."""
        step = -1 if self._backward else 1
        last = stop if self._backward else len(text)
        behind = at if self._backward else at - 1
        state = self._state(self._begin, _kind(text[behind] if 0 <= behind < len(text) else ""))
        found: int | None = None
        while True:
            ahead = at - 1 if self._backward else at
            char = text[ahead] if 0 <= ahead < len(text) else ""
            move = state.moves.get(char)
            if move is None:
                move = self._move(state, char, budget)
            accepted, state = move
            if accepted:
                found = at
                if first:
                    return found
            if at == last or not state.places:
                return found
            at += step

    def _state(self, places: frozenset[int], before: _Kind) -> _State:
        key = places, before
        state = self._states.get(key)
        if state is None:
            if len(self._states) >= MAX_STATES:
                for known in self._states.values():
                    known.moves.clear()
                self._states.clear()
            state = self._states[key] = _State(places, before)
        return state

    def _move(self, state: _State, char: str, budget: _Budget) -> tuple[bool, _State]:
        """What reading a character ("" at the end of the text) leads to."""
        kind = _kind(char)
        left, right = (kind, state.before) if self._backward else (state.before, kind)
        reached: set[int] = set()
        following: set[int] = set(self._begin) if self._floating else set()
        waiting = list(state.places)
        while waiting:
            place = waiting.pop()
            if place in reached:
                continue
            reached.add(place)
            test, targets = self.program[place]
            if isinstance(test, CharSet):
                if char and test.has(char):
                    following.update(targets)
            elif test is None or _holds(test, left, right):
                waiting.extend(targets)
        budget.spend(len(reached) + 1)
        move = 0 in reached, self._state(frozenset(following), kind)
        state.moves[char] = move
        return move


def _kind(char: str) -> _Kind:
    if not char:
        return "edge"
    if char == "\n":
        return "line"
    return "word" if is_word(char) else "other"


def _holds(assertion: AssertKind, left: _Kind, right: _Kind) -> bool:
    if assertion == "line start":
        return left in ("edge", "line")
    if assertion == "line end":
        return right in ("edge", "line")
    at_word_edge = (left == "word") != (right == "word")
    return at_word_edge == (assertion == "word edge")
