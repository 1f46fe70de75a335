"""Where keys come from, and how a key written in a file is read.

A key is written as itself, as `$NAME` or `${NAME}` (a variable), or as `!command` (the first line a
shell command prints; it runs once and only when the key is needed). The environment is a mapping
given by the caller; nothing here reads the real one. No message ever holds a key.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from pi_tui.core.errors import ModelError
from pi_tui.providers.provider_names import key_names, provider_facts

COMMAND_TIMEOUT_S = 20.0
_WHOLE = re.compile(r"\$([A-Za-z_]\w*)")
_BRACED = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_OUTPUT_LIMIT_BYTES = 64 * 1024

_CHILD_NAMES = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "LANG",
        "TMPDIR",
        "TZ",
        "PYTHONPATH",
        "PYTHONHOME",
        "VIRTUAL_ENV",
        "LD_LIBRARY_PATH",
        "SYSTEMROOT",
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "HF_TOKEN",
    }
)
_CHILD_PATTERN = re.compile(
    r"^(LC_.*|(HTTPS?|ALL|NO)_PROXY|(https?|all|no)_proxy"
    r"|.*_(API_KEY|APIKEY|API_BASE|API_TOKEN|API_VERSION|BASE_URL|AUTH_TOKEN)"
    r"|(AWS|AZURE|VERTEX|VERTEXAI|GOOGLE|GCLOUD|CLOUDSDK|DATABRICKS|WATSONX|WX|SNOWFLAKE|OCI"
    r"|SAGEMAKER|CLOUDFLARE|GIGACHAT|SCW)_.*)$"
)


class KeyCommand(Struct, frozen=True):
    """A key that a command prints; `where` names the setting for messages."""

    command: str
    where: str


class Credentials:
    """Keys by provider, and the values of settings that may name a variable or a command.

    `stored`: keys the user saved (auth.json), by provider. `overrides`: keys of this run
    (`--api-key`), by provider; they win.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        stored: Mapping[str, str] | None = None,
        overrides: Mapping[str, str] | None = None,
    ) -> None:
        self._environment = environment
        self._stored = dict(stored or {})
        self._overrides = dict(overrides or {})
        self._running: dict[str, asyncio.Task[str]] = {}
        self._printed: dict[str, str] = {}

    def set_override(self, provider: str, key: str) -> None:
        """Use the key for the provider until the program ends."""
        self._overrides[provider] = key

    def override(self, provider: str) -> str | None:
        return self._overrides.get(provider)

    def stored_key(self, provider: str) -> str | None:
        return self._stored.get(provider)

    def environment_key(self, provider: str) -> str | None:
        """The key in the environment, of the first variable that is set and not blank."""
        for name in key_names(provider):
            value = self._environment.get(name, "").strip()
            if value:
                return value
        return None

    def ambient(self, provider: str) -> bool:
        """True when the provider library can sign in without a key of ours (cloud accounts)."""
        facts = provider_facts(provider)
        return facts is not None and any(
            self._environment.get(name, "").strip() for name in facts.ambient_names
        )

    def is_set(self, reference: str) -> bool:
        """True when the reference has a value, as far as can be told without running a command."""
        if reference.startswith("!"):
            return bool(reference[1:].strip())
        names = variables_of(reference)
        return bool(reference.strip()) and all(self._environment.get(name) for name in names)

    def read(self, reference: str, where: str) -> str | KeyCommand:
        """The value of a literal or variable, or the command that is to print it.

        Raises ModelError when a named variable is not set.
        """
        if reference.startswith("!"):
            command = reference[1:].strip()
            if not command:
                raise ModelError(f"{where} is an empty command.", hint="Write `!command`.")
            printed = self._printed.get(command)
            return printed if printed is not None else KeyCommand(command, where)
        for name in variables_of(reference):
            if not self._environment.get(name):
                raise ModelError(
                    f"{where} names the variable {name}, which is not set.",
                    hint=f"Set {name} in the environment, or write the value another way.",
                )
        if reference.startswith("$$"):
            return reference[1:]
        whole = _WHOLE.fullmatch(reference)
        if whole is not None:
            return self._environment[whole.group(1)].strip()
        return _BRACED.sub(lambda match: self._environment[match.group(1)].strip(), reference)

    async def resolve(self, reference: str, where: str) -> str:
        """The value; runs a command when that is what the reference is. Raises ModelError."""
        value = self.read(reference, where)
        return value if isinstance(value, str) else await self.run(value)

    async def run(self, wanted: KeyCommand) -> str:
        """What the command prints, without surrounding blanks; run once, then remembered.

        A failure is not remembered: the next request tries again. Raises ModelError.
        """
        printed = self._printed.get(wanted.command)
        if printed is not None:
            return printed
        task = self._running.get(wanted.command)
        if task is None:
            task = asyncio.ensure_future(_run_command(wanted, self._environment))
            self._running[wanted.command] = task
            task.add_done_callback(lambda done: self._finished(wanted.command, done))
        return await asyncio.shield(task)

    def _finished(self, command: str, task: asyncio.Task[str]) -> None:
        self._running.pop(command, None)
        if not task.cancelled() and task.exception() is None:
            self._printed[command] = task.result()

    def known_values(self, references: Iterable[str]) -> Iterator[str]:
        """What the references stand for, as far as it is known now: no command is run for it.

        The keys of this run and the stored ones, and whatever commands have printed, are given too.
        """
        # Copies: an export asks in a thread of its own.
        yield from tuple(self._overrides.values())
        yield from tuple(self._stored.values())
        yield from tuple(self._printed.values())
        for reference in references:
            yield from (self._environment.get(name, "") for name in variables_of(reference))
            with contextlib.suppress(ModelError):
                value = self.read(reference, "")
                if isinstance(value, str):
                    yield value

    def child_environment(self) -> dict[str, str]:
        """What the provider library's process may know: system basics, proxies, provider keys."""
        return {
            name: value
            for name, value in self._environment.items()
            if name in _CHILD_NAMES or _CHILD_PATTERN.match(name)
        }


def variables_of(reference: str) -> tuple[str, ...]:
    """Variables a setting names: the whole value `$NAME`, or `${NAME}` anywhere.

    Other dollars belong to the value; a leading `$$` stands for one dollar and names nothing.
    """
    if reference.startswith(("!", "$$")):
        return ()
    whole = _WHOLE.fullmatch(reference)
    return (whole.group(1),) if whole is not None else tuple(_BRACED.findall(reference))


async def _run_command(wanted: KeyCommand, environment: Mapping[str, str]) -> str:
    """Run the command in a shell of its own process group, bounded in time and output."""
    hint = "Run the command in a terminal to see what it says."
    process = await asyncio.create_subprocess_shell(
        wanted.command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=dict(environment),
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(COMMAND_TIMEOUT_S):
            output = await _read_some(process.stdout)
            code = await process.wait()
    except TimeoutError:
        raise ModelError(
            f"The command of {wanted.where} did not end within {COMMAND_TIMEOUT_S:.0f} s.",
            hint=hint,
        ) from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if code != 0:
        raise ModelError(f"The command of {wanted.where} failed with exit code {code}.", hint=hint)
    text = output.decode("utf-8", "replace").strip()
    key = text.splitlines()[0].strip() if text else ""
    if not key:
        raise ModelError(f"The command of {wanted.where} printed no key.", hint=hint)
    return key


async def _read_some(stream: asyncio.StreamReader) -> bytes:
    """Everything up to the end of the stream, but no more than a key could ever be."""
    output = b""
    while len(output) < _OUTPUT_LIMIT_BYTES:
        chunk = await stream.read(_OUTPUT_LIMIT_BYTES - len(output))
        if not chunk:
            break
        output += chunk
    return output
