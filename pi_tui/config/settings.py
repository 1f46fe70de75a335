"""Settings files: the user's, and the project's over it when the project is trusted.

Objects merge key by key, anything else replaces. A wrong value never stops the program: it becomes
a problem that names file and setting, and what would hold without it is used instead. Unknown keys
are left alone. The numbers of a compaction depend on the model: `config.compaction`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from pi_tui.config.json_file import kind_of, parse_json, read_text
from pi_tui.config.paths import Environment
from pi_tui.config.schema import USER_ONLY_SETTINGS, Settings, Tokens
from pi_tui.core.errors import SettingsError
from pi_tui.core.messages import JSON

Scope: TypeAlias = Literal["global", "project"]
KeyPath: TypeAlias = tuple[str, ...]


class LoadedSettings(Struct, frozen=True):
    """The settings and how they came about.

    `problems` are for the user, in the order of the files. `unreadable` names the files that count
    as empty because they could not be parsed. `merged` is the raw object, project over user;
    `project` the part of it that came from the project.
    """

    settings: Settings
    user_file: str
    project_file: str
    problems: tuple[SettingsError, ...] = ()
    unreadable: tuple[Scope, ...] = ()
    merged: dict[str, JSON] = {}
    project: dict[str, JSON] = {}

    def file_of(self, path: KeyPath) -> str:
        """The file that gave the value at a path of keys."""
        return self.project_file if _has(self.project, path) else self.user_file


def load_settings(environment: Environment, *, project_trusted: bool = False) -> LoadedSettings:
    """Read the user's file and, only when it is trusted, the one of the project in `cwd`."""
    user_path = environment.directories.settings_file
    project_path = environment.project_directory() / "settings.json"
    texts: dict[Scope, str | None] = {"global": None, "project": None}
    faults: dict[Scope, SettingsError] = {}
    paths: dict[Scope, Path] = {"global": user_path}
    if project_trusted:
        paths["project"] = project_path
    for scope, path in paths.items():
        try:
            texts[scope] = read_text(path)
        except SettingsError as error:
            faults[scope] = error
    return settings_from_texts(
        texts["global"],
        texts["project"],
        user_file=str(user_path),
        project_file=str(project_path),
        project_root=environment.cwd,
        project_trusted=project_trusted,
        faults=faults,
    )


def settings_from_texts(
    user_text: str | None,
    project_text: str | None,
    *,
    user_file: str = "settings.json",
    project_file: str = ".pi/settings.json",
    project_root: Path | None = None,
    project_trusted: bool = False,
    faults: Mapping[Scope, SettingsError] | None = None,
) -> LoadedSettings:
    """Settings from the texts of the two files; None means that there is no such file.

    `project_root` is where a project's `sessionDir` must stay; None refuses every one. `faults` are
    files that could not even be read.
    """
    broken = dict(faults or {})
    user = _parse("global", user_text, user_file, broken)
    project: dict[str, JSON] = {}
    if project_trusted:
        project = _parse("project", project_text, project_file, broken)
    problems = [broken[s] for s in _SCOPES if s in broken]
    project, refused = _without_user_only(project, project_file, project_root)
    loaded = LoadedSettings(
        settings=Settings(),
        user_file=user_file,
        project_file=project_file,
        unreadable=tuple(s for s in _SCOPES if s in broken),
        merged=_merge(user, project),
        project=project,
    )
    reader = _Reader(user, loaded)
    settings = reader.read(Settings, ())
    return msgspec.structs.replace(
        loaded, settings=settings, problems=(*problems, *refused, *reader.problems)
    )


_SCOPES: tuple[Scope, Scope] = ("global", "project")


def _parse(
    scope: Scope, text: str | None, file: str, broken: dict[Scope, SettingsError]
) -> dict[str, JSON]:
    if text is None or not text.removeprefix("\ufeff").strip():
        return {}
    try:
        value = parse_json(text, file)
    except SettingsError as error:
        broken[scope] = error
        return {}
    if isinstance(value, dict):
        return value
    if not isinstance(value, list):
        # A list at the top is empty without a word: so it was measured, and files rely on it.
        broken[scope] = SettingsError(
            f"{file} must hold a JSON object, not {kind_of(value)}", file=file
        )
    return {}


def _merge(low: Mapping[str, JSON], high: Mapping[str, JSON]) -> dict[str, JSON]:
    merged = dict(low)
    for key, value in high.items():
        below = merged.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            value = _merge(below, value)
        merged[key] = value
    return merged


def _has(data: JSON, path: KeyPath) -> bool:
    for key in path:
        if not isinstance(data, dict) or key not in data:
            return False
        data = data[key]
    return True


def _at(data: JSON, path: KeyPath) -> JSON:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


# ---------------------------------------------------------------- what a project may not say


def _without_user_only(
    project: dict[str, JSON], file: str, root: Path | None
) -> tuple[dict[str, JSON], list[SettingsError]]:
    kept, refused = {}, []
    for key, value in project.items():
        if key in USER_ONLY_SETTINGS:
            why = USER_ONLY_SETTINGS[key]
        elif key == "sessionDir" and (inside := _inside(value, root)) is None:
            why = "a project may only name a directory inside itself"
        else:
            kept[key] = inside if key == "sessionDir" else value
            continue
        refused.append(
            SettingsError(
                f"{file}: {key} was ignored: {why}",
                file=file,
                key=key,
                hint="Put it into your own settings if you want it.",
            )
        )
    return kept, refused


def _inside(value: JSON, root: Path | None) -> str | None:
    """The absolute directory a project names, links followed; None when it leads outside."""
    if root is None or not isinstance(value, str) or not value or value.startswith("~"):
        return None
    try:
        real_root = root.resolve()
        real = (root / value).resolve()
    except (OSError, RuntimeError, ValueError):
        return None
    return str(real) if real != real_root and real.is_relative_to(real_root) else None


# ---------------------------------------------------------------- values and their types


class _Reader:
    """Fills the structs of the schema from the merged object and collects what is wrong."""

    def __init__(self, user: Mapping[str, JSON], loaded: LoadedSettings) -> None:
        self._user = user
        self._loaded = loaded
        self.problems: list[SettingsError] = []

    def read(self, kind: type[Any], at: KeyPath) -> Any:
        """A struct of the given type from the object at a path."""
        values: dict[str, Any] = {}
        for name, key, expected in _fields(kind):
            path = (*at, key)
            if not _has(self._loaded.merged, path):
                continue
            value = _at(self._loaded.merged, path)
            if isinstance(expected, type) and issubclass(expected, Struct):
                if isinstance(value, dict):
                    values[name] = self.read(expected, path)
                elif value is not None:
                    self._report(path, value, "an object")
            elif get_origin(expected) is dict:
                values[name] = self._read_entries(path, value, get_args(expected)[1])
            else:
                for found in self._checked(path, value, expected):
                    values[name] = found
        return kind(**values)

    def _read_entries(self, path: KeyPath, value: JSON, expected: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            if value is not None:
                self._report(path, value, "an object")
            return {}
        return {
            key: found
            for key, item in value.items()
            for found in self._checked((*path, key), item, expected)
        }

    def _checked(self, path: KeyPath, value: JSON, expected: Any) -> Iterator[Any]:
        """The value, or the user's own under a wrong one of the project, or nothing."""
        # Null takes a setting back, except for token numbers, where it was measured to be wrong.
        if value is None and expected is not Tokens and expected != Tokens:
            return
        try:
            yield convert(value, expected)
        except msgspec.ValidationError:
            self._report(path, value, describe(expected))
            below = _at(self._user, path)
            if _has(self._loaded.project, path) and below is not None:
                try:
                    yield convert(below, expected)
                except msgspec.ValidationError:
                    self._report(path, below, describe(expected), self._loaded.user_file)

    def _report(self, path: KeyPath, value: JSON, expected: str, file: str = "") -> None:
        self.problems.append(wrong_value(file or self._loaded.file_of(path), path, value, expected))


def wrong_value(file: str, path: KeyPath, value: JSON, expected: str) -> SettingsError:
    """The error for a value that is not what its setting needs."""
    key = dotted(path)
    shown = kind_of(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        shown = str(value) if len(str(value)) <= 40 else "a very large number"
    elif isinstance(value, str) and len(value) <= 40:
        shown = f'"{value}"'
    return SettingsError(f"{file}: {key} must be {expected}, not {shown}", file=file, key=key)


def convert(value: JSON, expected: Any) -> Any:
    """Check a decoded value against a type of the schema. Raises msgspec.ValidationError."""
    if isinstance(value, float) and value.is_integer():
        # JSON knows one kind of number: 5.0 and 5e0 are the whole number 5.
        value = int(value)
    return msgspec.convert(value, expected)


def describe(expected: Any) -> str:
    """What a type of the schema accepts, to follow "must be"."""
    origin = get_origin(expected)
    if origin is Annotated:
        for meta in get_args(expected)[1:]:
            if isinstance(meta, msgspec.Meta) and meta.description:
                return meta.description
    if origin is Literal:
        words = [f'"{choice}"' for choice in get_args(expected)]
        return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    if origin in (Union, UnionType):
        parts = [describe(part) for part in get_args(expected) if part is not type(None)]
        return " or ".join(parts)
    if origin is tuple:
        return "a list of texts"
    return {bool: "true or false", int: "a whole number", str: "a text"}.get(expected, "an object")


def _fields(kind: type[Any]) -> tuple[tuple[str, str, Any], ...]:
    """Attribute, key in the file, and type of each field."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        (name, key, hints[name])
        for name, key in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    )


def settings_below(kind: type[Struct]) -> dict[str, type[Struct] | None]:
    """The keys a struct of the schema reads, each with the struct of its own settings, if any."""
    return {
        key: expected if isinstance(expected, type) and issubclass(expected, Struct) else None
        for _, key, expected in _fields(kind)
    }


def dotted(path: KeyPath) -> str:
    """The name of a setting as people write it: `a.b`, and `a["x/y"]` for other keys."""
    text = ""
    for key in path:
        if key.isidentifier():
            text += f".{key}" if text else key
        else:
            text += f"[{msgspec.json.encode(key).decode()}]"
    return text


def session_directory(
    environment: Environment, loaded: LoadedSettings, override: str | None = None
) -> Path:
    """Where session files go: the command line, else the setting, else the usual directory."""
    if override:
        return environment.expand(override)
    chosen = loaded.settings.session_dir
    if chosen:
        # The user's own relative path is meant from the place of the file it stands in.
        return environment.expand(chosen, base=Path(loaded.user_file).parent)
    return environment.directories.sessions
