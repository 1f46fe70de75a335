"""litellm as a provider: one child process for all models that need it, started at first use.

The child keeps litellm's five seconds of import and its memory out of the front end. Requests run
side by side over JSON lines. A child that dies fails the requests in flight with a plain error and
is started anew by the next one; closing the pipe ends it, so it never outlives the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.json_text import mended, mended_text
from pi_tui.core.messages import JSON
from pi_tui.core.protocols import ModelRequest
from pi_tui.core.streaming import StreamEvent
from pi_tui.providers.clients import Access
from pi_tui.providers.error_bodies import one_line, redact
from pi_tui.providers.errors import classify
from pi_tui.providers.litellm_wire import ChunkReader, completion_params

REQUEST_TIMEOUT_S = 600.0
_LINE_LIMIT_BYTES = 64 * 1024 * 1024
_CLOSE_TIMEOUT_S = 0.5
_STDERR_TAIL_BYTES = 2000
_CHILD_FILE = Path(__file__).with_name("litellm_child.py")


def child_command() -> list[str]:
    """How the child is started: by file, and without the current directory in its import path."""
    return [sys.executable, "-P", str(_CHILD_FILE), str(os.getpid())]


class _Child:
    """One running child process and the requests it serves."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.loop = asyncio.get_running_loop()
        self.requests: dict[int, asyncio.Queue[dict[str, JSON]]] = {}
        self.ended = False
        self.failure = ""
        self._stderr = b""
        self._tasks = [
            asyncio.create_task(self._read()),
            asyncio.create_task(self._read_stderr()),
        ]

    @property
    def usable(self) -> bool:
        return not self.ended and self.loop is asyncio.get_running_loop()

    def send(self, message: Mapping[str, JSON]) -> None:
        """Queue a message for the child; never waits."""
        stdin = self.process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    async def drain(self) -> None:
        """Wait until a large request is on its way."""
        if self.process.stdin is not None:
            with contextlib.suppress(ConnectionError):  # the reading side reports the end
                await self.process.stdin.drain()

    async def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        try:
            while line := await stdout.readline():
                message = json.loads(line)
                if message.get("event") == "failed":
                    self.failure = str(message.get("message"))
                queue = self.requests.get(message.get("id"))
                if queue is not None:
                    queue.put_nowait(message)
        except ValueError:
            self.kill()  # a line that is no protocol, or endless: nothing after it can be trusted
        finally:
            self.ended = True
            code = await self.process.wait()
            reason = {"event": "gone", "reason": self.failure or self._reason(code)}
            for queue in self.requests.values():
                queue.put_nowait(reason)

    async def _read_stderr(self) -> None:
        stderr = self.process.stderr
        assert stderr is not None
        while chunk := await stderr.read(65536):
            self._stderr = (self._stderr + chunk)[-_STDERR_TAIL_BYTES:]

    def _reason(self, code: int) -> str:
        lines = self._stderr.decode("utf-8", "replace").strip().splitlines()
        said = f": {one_line(redact(lines[-1]))}" if lines else ""
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"ended by {signal.Signals(-code).name}{said}"
        return f"exit code {code}{said}"

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    async def close(self) -> None:
        """Let the child end by itself, then make it."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await asyncio.shield(self._tasks[0])
        except TimeoutError:
            self.kill()
            await self._tasks[0]
        self._tasks[1].cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class LiteLLMProcess:
    """The one child of this program, shared by all `LiteLLMProvider`s.

    `environment` is everything the child gets to know of ours. `command` replaces the real child
    in tests.
    """

    def __init__(
        self, environment: Mapping[str, str], command: Sequence[str] | None = None
    ) -> None:
        self._environment = dict(environment)
        self._command = command
        self._child: _Child | None = None
        self._starting: asyncio.Task[_Child] | None = None
        self._last_id = 0

    @property
    def pid(self) -> int | None:
        """The child's process id while it runs."""
        child = self._child
        return child.process.pid if child is not None and not child.ended else None

    async def prepare(self) -> None:
        """Start the child now, so that litellm is imported when the first request comes."""
        await self._running()

    async def request(self, params: Mapping[str, JSON]) -> AsyncGenerator[dict[str, JSON], None]:
        """Run one completion; yields the messages of the child, the last one `end` or `error`.

        Leaving early cancels the completion without waiting for the child. A child that dies
        yields `{"event": "gone", "reason": …}`.
        """
        child = await self._running()
        self._last_id += 1
        number = self._last_id
        queue: asyncio.Queue[dict[str, JSON]] = asyncio.Queue()
        child.requests[number] = queue
        finished = False
        try:
            child.send({"op": "complete", "id": number, "params": mended(params)})
            await child.drain()
            while not finished:
                if child.ended and queue.empty():
                    yield {"event": "gone", "reason": child.failure or "it was closed"}
                    return
                message = await queue.get()
                finished = message["event"] != "chunk"
                yield message
        finally:
            del child.requests[number]
            if not finished and not child.ended:
                child.send({"op": "cancel", "id": number})

    async def close(self) -> None:
        """End the child. Requests in flight end with an error."""
        starting, child = self._starting, self._child
        self._child = None
        if starting is not None:
            with contextlib.suppress(ProviderError):
                child = await starting
        if child is not None and child.loop is asyncio.get_running_loop():
            await child.close()
        self._child = None

    async def _running(self) -> _Child:
        """The child, started when there is none; many callers wait for one start."""
        if self._child is not None and self._child.usable:
            return self._child
        if self._starting is None or self._starting.get_loop() is not asyncio.get_running_loop():
            self._starting = asyncio.create_task(self._start())
        return await asyncio.shield(self._starting)

    async def _start(self) -> _Child:
        try:
            process = await asyncio.create_subprocess_exec(
                *(self._command or child_command()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_LINE_LIMIT_BYTES,
                env=self._environment,
                cwd=os.sep,  # nothing of the user's project is imported or read by accident
                start_new_session=True,
            )
        except OSError as error:
            raise ProviderError(
                f"The helper process for litellm could not be started: {error.strerror}.",
                kind=ErrorKind.UNKNOWN,
                hint="Try again; if it stays, restart the program.",
            ) from error
        finally:
            self._starting = None
        self._child = _Child(process)
        return self._child


class LiteLLMProvider:
    """Serves requests through the shared child, with one provider's key and headers."""

    def __init__(
        self,
        process: LiteLLMProcess,
        *,
        access_for: Callable[[], Awaitable[Access]] | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        self._process = process
        self._access_for = access_for
        self._timeout_s = timeout_s

    async def warm_up(self) -> None:
        """Start the child, so that litellm is imported when the first request comes."""
        await self._process.prepare()

    async def aclose(self) -> None:
        """Nothing is held here; the child belongs to all."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Answer the request. Raises ProviderError; leaving early cancels it in the child."""
        access = await self._access_for() if self._access_for is not None else Access()
        params = completion_params(
            request,
            api_key=access.api_key,
            headers=access.headers,
            timeout_s=self._timeout_s,
        )
        secrets = [access.api_key, *access.headers.values()]
        reader = ChunkReader(request)
        messages = self._process.request(params)
        async with contextlib.aclosing(messages):
            async for message in messages:
                if message["event"] == "chunk":
                    for event in reader.feed(message["chunk"]):
                        yield event
                elif message["event"] == "end":
                    for event in reader.finish(torn=message.get("torn") is True):
                        yield event
                else:
                    raise _failure(message, request, secrets)


def _failure(
    message: Mapping[str, JSON], request: ModelRequest, secrets: Sequence[str]
) -> ProviderError:
    """What the last message of a failed completion means."""
    provider = request.model.provider
    if message["event"] == "error":
        return classify_litellm(message, provider, secrets=secrets, base_url=request.model.base_url)
    reason = str(message.get("reason") or "the request was cancelled")
    if "cannot be imported" in reason:
        return ProviderError(
            f"litellm, which {provider} needs, cannot be used ({reason}).",
            kind=ErrorKind.BAD_REQUEST,
            provider=provider,
            hint="Install pi-tui again with its dependencies.",
        )
    return ProviderError(
        f"The helper process for litellm is gone ({reason}).",
        kind=ErrorKind.NETWORK,
        provider=provider,
        hint="Nothing was lost; the next request starts it anew.",
    )


_RENAMED_CLASSES = {
    "ContextWindowExceededError": "context_window_exceeded",
    "ContentPolicyViolationError": "content_policy_violation",
}


def classify_litellm(
    message: Mapping[str, JSON], provider: str, *, secrets: Sequence[str] = (), base_url: str = ""
) -> ProviderError:
    """The error of a child as a `ProviderError`.

    litellm maps some failures to too general a class or a made-up status, so the words decide
    first; its own class counts where they say nothing.
    """
    classes = [str(name) for name in message.get("classes") or ()]
    text = mended_text(str(message.get("message") or ""))
    status = message.get("status")
    status = status if isinstance(status, int) else None
    if "APIConnectionError" in classes or "Timeout" in classes:
        status = None  # no server said 500 or 408; litellm did
    headers = message.get("headers")
    headers = headers if isinstance(headers, dict) else {}

    def judge(words: str) -> ProviderError:
        return classify(status, words, headers, provider, secrets=secrets, base_url=base_url)

    error = judge(text)
    if error.kind in (ErrorKind.BAD_REQUEST, ErrorKind.UNKNOWN):
        word = next((_RENAMED_CLASSES[name] for name in classes if name in _RENAMED_CLASSES), "")
        if word:
            return judge(f"{text} {word}")
        if "Timeout" in classes or "APIConnectionError" in classes:
            timed_out = "Timeout" in classes
            return ProviderError(
                error.message,
                kind=ErrorKind.TIMEOUT if timed_out else ErrorKind.NETWORK,
                provider=provider,
                hint="Check the network and the base URL.",
            )
    return error
