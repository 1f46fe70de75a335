"""The child process around litellm: JSON lines in, JSON lines out, requests side by side.

Run as a program of its own (`python -m pi_tui.providers.litellm_child PARENT_PID`); it imports
nothing of this package, so importing litellm, which takes seconds, never touches a front end.
In: `{"op": "complete", "id": N, "params": {...}}` (keywords of `litellm.acompletion`) and
`{"op": "cancel", "id": N}`. Out: `{"event": "ready"}`, then per request `chunk` lines and one of
`end`, `error`, `cancelled`. Standard output carries nothing else; what litellm prints goes to
standard error. The process ends when its input ends, that is when the parent is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import importlib.util
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias

JSON: TypeAlias = Any

_PR_SET_PDEATHSIG = 1


class Completion(Protocol):
    """`litellm.acompletion`, as far as it is used here."""

    async def __call__(self, **params: JSON) -> JSON: ...


class Wire:
    """The two ends of the protocol, moved away from the descriptors that libraries print to."""

    def __init__(self) -> None:
        self._in = os.fdopen(os.dup(0), "rb")
        self._out = os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        self._lock = threading.Lock()

    def read(self) -> Mapping[str, JSON] | None:
        """The next message, of any length; None at the end of input."""
        line = self._in.readline()
        if not line.endswith(b"\n"):
            return None  # nothing, or the torn last line of a parent that died
        data = json.loads(line)
        return data if isinstance(data, dict) else {}

    def send(self, message: Mapping[str, JSON]) -> None:
        """Write one message; it ends the process when nobody reads any more."""
        line = json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n"
        view = memoryview(line)
        with self._lock:
            while view:
                try:
                    view = view[os.write(self._out, view) :]
                except (BrokenPipeError, OSError):
                    os._exit(0)


def die_with_parent(parent_pid: int) -> None:
    """Ask Linux for a signal when the parent dies; elsewhere the end of input has to do."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent_pid and os.getppid() != parent_pid:
        os._exit(0)  # it died before the line above


def prepare_environment() -> None:
    """Keep litellm off the network and off the user's project while it is imported."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_OFFLINE_MODE"] = "true"  # bundled lists only; requests are not concerned
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # otherwise a `.env` file nearby is loaded
    os.environ["LITELLM_LOG"] = "ERROR"
    os.environ["LITELLM_TELEMETRY"] = "False"
    spec = importlib.util.find_spec("litellm")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        tokenizers = Path(folder) / "litellm_core_utils" / "tokenizers"
        if tokenizers.is_dir():
            os.environ["TIKTOKEN_CACHE_DIR"] = str(tokenizers)


def load_completion() -> Completion:
    """Import litellm, silence it, and give its completion call."""
    import litellm

    quiet: Any = litellm  # its module attributes have no types worth having
    quiet.telemetry = False
    quiet.suppress_debug_info = True
    quiet.set_verbose = False
    quiet.turn_off_message_logging = True
    quiet.drop_params = True  # what a provider does not know is left out, not refused
    quiet.modify_params = True  # no thinking asked for where earlier thinking cannot be replayed
    quiet.num_retries = 0
    for name in ("callbacks", "success_callback", "failure_callback", "input_callback"):
        setattr(quiet, name, [])
    completion: Completion = quiet.acompletion
    return completion


# ---------------------------------------------------------------- what goes back


def chunk_data(chunk: JSON) -> dict[str, JSON]:
    """A chunk in the shape of OpenAI's stream, without empty fields."""
    data: JSON = chunk.model_dump(exclude_none=True) if hasattr(chunk, "model_dump") else chunk
    made = {key: data[key] for key in ("id", "model", "usage") if data.get(key)}
    made["choices"] = [
        {
            "index": choice.get("index", 0),
            "delta": choice.get("delta") or {},
            "finish_reason": choice.get("finish_reason"),
        }
        for choice in data.get("choices") or ()
    ]
    return made


def error_data(error: BaseException) -> dict[str, JSON]:
    """What the classifier of the parent needs: status, words, class names, waiting time."""
    response = getattr(error, "response", None)
    headers = getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None)
    kept = {}
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        kept = {
            str(name).lower(): str(value)
            for name, value in dict(headers or {}).items()
            if "retry" in str(name).lower() or "ratelimit" in str(name).lower()
        }
    status = getattr(error, "status_code", None)
    return {
        "status": status if isinstance(status, int) else None,
        "message": str(getattr(error, "message", "") or error)[:20_000],
        "classes": [cls.__name__ for cls in type(error).__mro__],
        "headers": kept,
    }


async def close_stream(stream: JSON) -> None:
    """Hang up: a server that still writes an answer nobody reads costs money."""
    close = getattr(stream, "aclose", None)
    if close is not None:
        with contextlib.suppress(Exception):  # the outcome has been sent already
            await close()


def is_torn(stream: JSON) -> bool:
    """True when the server never said why it stopped; litellm then makes an end up.

    Told only for OpenAI's format: elsewhere litellm may not keep what the server said.
    """
    import litellm

    family = ("openai", *getattr(litellm, "openai_compatible_providers", ()))
    return (
        getattr(stream, "custom_llm_provider", None) in family
        and getattr(stream, "received_finish_reason", "") is None
    )


class Server:
    """Serves requests until the input ends."""

    def __init__(self, wire: Wire, completion: Completion) -> None:
        self._wire = wire
        self._completion = completion
        self._running: dict[int, asyncio.Task[None]] = {}

    def take(self, message: Mapping[str, JSON]) -> None:
        """Begin or cancel a request; called on the loop."""
        number = message.get("id")
        if not isinstance(number, int):
            return
        if message.get("op") == "complete":
            task = asyncio.ensure_future(self._serve(number, dict(message.get("params") or {})))
            self._running[number] = task
            task.add_done_callback(lambda _: self._running.pop(number, None))
        elif number in self._running:
            self._running[number].cancel()

    async def _serve(self, number: int, params: dict[str, JSON]) -> None:
        stream: JSON = None
        try:
            stream = await self._completion(**params, stream=True)
            async for chunk in stream:
                self._wire.send({"id": number, "event": "chunk", "chunk": chunk_data(chunk)})
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self._wire.send({"id": number, "event": "cancelled"})
        except Exception as error:  # noqa: BLE001  (whatever it is, the parent classifies it)
            self._wire.send({"id": number, "event": "error", **error_data(error)})
        else:
            self._wire.send({"id": number, "event": "end", "torn": is_torn(stream)})
        finally:
            await close_stream(stream)


class Inbox:
    """Messages from the reading thread; kept until there is a loop to give them to."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._lock = threading.Lock()
        self._early: list[Mapping[str, JSON]] = []
        self._deliver: Callable[[Mapping[str, JSON]], object] = self._early.append

    def start(self) -> None:
        """Read in a thread. The end of input ends the process, even while litellm is imported."""
        threading.Thread(target=self._read, daemon=True).start()

    def attach(self, deliver: Callable[[Mapping[str, JSON]], object]) -> None:
        """Give all messages, past and future, to `deliver`; it is called in the thread."""
        with self._lock:
            for message in self._early:
                deliver(message)
            self._deliver = deliver

    def _read(self) -> None:
        try:
            while (message := self._wire.read()) is not None:
                with self._lock:
                    self._deliver(message)
        except ValueError:
            os._exit(1)  # not our protocol: the parent sees the end and says so
        os._exit(0)  # nobody is left to answer; open connections end with the process


async def serve(wire: Wire, inbox: Inbox, completion: Completion) -> None:
    """Serve requests until the reading thread ends the process."""
    loop = asyncio.get_running_loop()
    server = Server(wire, completion)
    wire.send({"event": "ready"})
    inbox.attach(lambda message: loop.call_soon_threadsafe(server.take, message))
    await asyncio.Event().wait()


def main() -> None:
    """Run the child. The first argument is the process id of the parent."""
    die_with_parent(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C in the terminal is for the parent
    wire = Wire()
    inbox = Inbox(wire)
    inbox.start()
    prepare_environment()
    try:
        completion = load_completion()
    except ImportError as error:
        wire.send({"event": "failed", "message": f"litellm cannot be imported: {error}"})
        return
    asyncio.run(serve(wire, inbox, completion))


if __name__ == "__main__":
    main()
