"""One exception tree. An error carries data, is classified once at the edge, worded once in front.

    PiTuiError
    ├── UsageError               the command line or a command was used wrongly (exit 2)
    │   └── TargetExistsError    a file of that name is there; it was not touched
    ├── SettingsError            a settings, models or key file holds a wrong value
    ├── ModelError               no such model, no key for it, a model file that cannot be used
    ├── ProviderError            a model request failed; `kind` says how
    ├── ToolError                a tool refuses or fails; its text goes to the model as the result
    ├── CompactionError          a summary could not be made; nothing was written
    └── StorageError             a session file cannot be read or written
        ├── NotASessionError     the file is no session and was not touched
        ├── SessionNotFoundError no session answers to that name
        ├── SessionLockedError   another process owns the session
        └── NoTrashError         the system has no trash for this file; it was not deleted

Messages are plain sentences: what happened, what is safe, what to do next where that is known.
Cancellation is not an error: it travels as asyncio.CancelledError or as the stop reason "aborted".
"""

from __future__ import annotations

from enum import StrEnum


class PiTuiError(Exception):
    """Base of everything this program raises on purpose. `hint` is the next step, if known."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def text(self) -> str:
        """Message and hint as one text for people, with a stop between them."""
        if not self.hint:
            return self.message
        stop = "" if self.message.rstrip().endswith((".", "!", "?", "…", ":")) else "."
        return f"{self.message.rstrip()}{stop} {self.hint}"


class UsageError(PiTuiError):
    pass


class TargetExistsError(UsageError):
    pass


class SettingsError(PiTuiError):
    """`file` is the path as the user knows it, `key` the dotted name of the setting."""

    def __init__(self, message: str, *, file: str, key: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.file = file
        self.key = key


class ModelError(PiTuiError):
    pass


class ErrorKind(StrEnum):
    """Every way a model request can fail. The classifier in `providers/errors.py` decides."""

    AUTH = "auth"
    QUOTA = "quota"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    OVERFLOW = "overflow"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    BAD_REQUEST = "bad_request"
    BAD_SIGNATURE = "bad_signature"
    NETWORK = "network"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    UNKNOWN = "unknown"


RETRYABLE_KINDS = frozenset(
    {ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED, ErrorKind.NETWORK, ErrorKind.TIMEOUT}
)


class ProviderError(PiTuiError):
    """A model request failed.

    `message` is safe to show and store: no keys, no raw JSON. `status` is the HTTP status or None;
    `retry_after_s` what the server asked for; `limit_tokens` the window or output limit it named.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind,
        provider: str = "",
        status: int | None = None,
        retry_after_s: float | None = None,
        limit_tokens: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.provider = provider
        self.status = status
        self.retry_after_s = retry_after_s
        self.limit_tokens = limit_tokens

    @property
    def retryable(self) -> bool:
        """True when the same request may succeed later."""
        return self.kind in RETRYABLE_KINDS


class ToolError(PiTuiError):
    """What the model reads as the failed result of its call."""


class CompactionError(PiTuiError):
    pass


class StorageError(PiTuiError):
    """`reason` is why entries could not be written, where the message also says what is safe."""

    def __init__(
        self, message: str, *, path: str = "", hint: str | None = None, reason: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.reason = reason


class NotASessionError(StorageError):
    pass


class SessionNotFoundError(StorageError):
    pass


class NoTrashError(StorageError):
    pass


class SessionLockedError(StorageError):
    """`owner` describes the process that holds the session, as far as it is known.

    `can_take_over`: nobody can tell from here whether the owner still lives, so the person may
    decide.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str = "",
        owner: str = "",
        can_take_over: bool = False,
        hint: str | None = None,
        reason: str = "",
    ) -> None:
        super().__init__(message, path=path, hint=hint, reason=reason)
        self.owner = owner
        self.can_take_over = can_take_over
