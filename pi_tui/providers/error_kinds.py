"""Which kind of failure the words and the status of a reply mean. Pure; wording is in `errors.py`.

The patterns are sentences and machine words of model servers and of litellm, in lower case. Order
matters: sure words go before the status, because gateways change statuses and rarely words.
"""

from __future__ import annotations

import re

from msgspec import Struct

from pi_tui.core.errors import ErrorKind


class Verdict(Struct, frozen=True):
    """`limit_tokens` is the limit the server named; `output_limit`: it limits the answer."""

    kind: ErrorKind
    limit_tokens: int | None = None
    output_limit: bool = False


_QUOTA = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance|insufficient (balance|credits)"
    r"|out of credits?|not enough credits|requires more credits|billing|payment required"
    r"|extra usage is required|(monthly|weekly|daily|spend(ing)?|usage) limit (has been )?"
    r"(reached|exceeded|hit)|usage_limit_reached|reached your (specified )?(api )?usage limits"
    r"|quota (has been )?exceeded|exceeded_current_quota|hard limit"
)
_RATE = re.compile(
    r"throttl|rate[ _-]?limit|too many requests|tokens per (min|day|hour)|requests per (min|day)"
    r"|too many tokens, please wait|(please )?(wait|try again) (before|in \d|later)"
    r"|resource_exhausted|slow down|concurrency limit"
)
_OVERFLOW = re.compile(
    r"prompt (is )?too long|input (is )?too long|prompt exceeds max length"
    r"|exceeds? (the |its |this )?(model'?s? )?(available |maximum |max )*"
    r"(context|model (token|length)|input length)"
    r"|maximum context length|context[ _](length|window|size)[ _](is )?(exceed|limit|too)"
    r"|context_length_exceeded|context_window_exceeded|contextwindowexceeded|exceed_context_size"
    r"|context (length|window|size) (has been|was) exceeded"
    r"|longer than the (model'?s )?(context|maximum)|greater than the context"
    r"|input (tokens?|length)( count)?( \(\d+\))? exceeds? the"
    r"|token count( of)? \(?\d+\)? exceeds?|maximum prompt length"
    r"|reduce the length of (the |your )?(messages|prompt|input|completion)"
    r"|larger than the (model'?s )?(maximum )?context|exceeded model token limit"
    r"|range of input length|too many (input )?tokens|tokens? (in|of) (your )?(prompt|input) exceed"
    r"|maximum (number of )?(input )?tokens allowed|max_model_len"
    r"|inputs\W{0,3} ?tokens.{0,20}max_new_tokens.{0,20}must be"
    r"|inputs\W{0,3} must have less than \d+ tokens"
)
_OUTPUT_LIMIT = re.compile(
    r"max(_completion|_output)?_tokens:? \d+ >|maximum allowed number of output tokens"
    r"|max(_completion|_output)?_tokens.{0,40}(too large|too big|must be (less|at most|<=)|exceeds?"
    r" the (model|maximum))|at most \d+ (completion|output) tokens"
    r"|invalid.{0,20}max(_completion|_output)?_tokens"
)
_PAYLOAD = re.compile(
    r"request entity too large|payload too large|request_too_large|request (body )?(is )?too large"
    r"|request exceeds the maximum size|body (is )?too large|content too large"
    r"|image.{0,60}(exceeds?|too large|too big|larger than)|maximum length \d{7,}|too many images"
)
_SIGNATURE = re.compile(
    r"invalid.{0,3}signature|signature.{0,40}(invalid|not valid|required|mismatch|verif)"
    r"|(thinking|redacted_thinking).{0,80}(cannot be modified|must remain)"
    r"|expected .?thinking.? or .?redacted_thinking"
    r"|encrypted.{0,40}(could not|cannot|failed).{0,20}(verif|decrypt)|thought.?signature.{0,30}not"
    r"|invalid_encrypted_content"
)
_AUTH = re.compile(
    r"(invalid|incorrect|wrong|missing|no|expired|unknown)[ _](x-)?(api|access)?[ _-]?(key|token)\b"
    r"|api[ _]key (not |is |was )*(valid|invalid|found|expired|missing|required)|unauthor"
    r"|authentication|invalid_api_key|permission[_ ]denied|permission_error|\bforbidden\b"
    r"|user not found|(no|invalid) (auth|credentials)|not authorized"
)
_REFUSED = re.compile(
    r"content[_ ]?(policy|filter|management)|prohibited[_ ]content"
    r"|flagged|safety (system|filter|polic)|responsible ai policy|usage polic(y|ies)"
    r"|data_inspection"
)
_OVERLOADED = re.compile(
    r"overload|server[_ ]?(had an |is )?(error|busy)|internal[ _]?(server[ _]?)?error"
    r"|api_error|service unavailable|temporarily unavailable|unavailable|bad gateway|no healthy"
    r"|upstream|capacity|engine_|try again later|provider returned error|model is loading"
)
_TIMEOUT = re.compile(r"timeout|timed out|deadline exceeded")


def find_verdict(status: int | None, words: str) -> Verdict:
    """Sort by words first, where the words are sure, then by status."""
    over_limit = _requested_over_limit(words)
    if over_limit is not None:
        return Verdict(ErrorKind.OVERFLOW, over_limit)
    if status == 402 or _QUOTA.search(words):
        return Verdict(ErrorKind.QUOTA)
    if status == 429 or (_RATE.search(words) and status not in (401, 403, 404, 413)):
        # "Try again later" of a server error is no rate limit.
        if status is not None and status >= 500 and not re.search(r"rate|throttl|too many", words):
            return Verdict(ErrorKind.OVERLOADED)
        return Verdict(ErrorKind.OVERLOADED if "overloaded" in words else ErrorKind.RATE_LIMIT)
    if status not in (401, 403, 404):
        if _OUTPUT_LIMIT.search(words) and "exceed context limit" not in words:
            return Verdict(ErrorKind.BAD_REQUEST, _output_limit(words), output_limit=True)
        if _OVERFLOW.search(words):
            return Verdict(ErrorKind.OVERFLOW, _window(words))
    if status == 413 or (_PAYLOAD.search(words) and (status is None or status < 500)):
        return Verdict(ErrorKind.PAYLOAD_TOO_LARGE)
    if _SIGNATURE.search(words) and (status is None or status < 500):
        return Verdict(ErrorKind.BAD_SIGNATURE)
    return Verdict(_kind_by_status(status, words))


def _kind_by_status(status: int | None, words: str) -> ErrorKind:
    if status in (401, 403):
        return ErrorKind.REFUSED if _REFUSED.search(words) else ErrorKind.AUTH
    if status in (408, 504, 524):
        return ErrorKind.TIMEOUT
    if status == 500 and re.search(r"\bconnection error", words):
        return ErrorKind.NETWORK  # litellm's status for a connection that broke
    if status is not None and (status >= 500 or status == 425):
        return ErrorKind.OVERLOADED
    if _REFUSED.search(words):
        return ErrorKind.REFUSED
    if status != 404 and _AUTH.search(words):
        return ErrorKind.AUTH
    if status is not None and status >= 400:
        return ErrorKind.BAD_REQUEST
    if _TIMEOUT.search(words):
        return ErrorKind.TIMEOUT
    if _OVERLOADED.search(words):
        return ErrorKind.OVERLOADED
    if re.search(r"connection|network|disconnected", words):
        return ErrorKind.NETWORK
    if re.search(r"invalid[_ ]request|not[_ ]?found|bad[_ ]?request", words):
        return ErrorKind.BAD_REQUEST
    return ErrorKind.UNKNOWN


def _requested_over_limit(words: str) -> int | None:
    """The limit when a single request is above a per-minute limit: waiting would never help."""
    match = re.search(r"limit:? ([\d,]+)[^\d]{1,20}requested:? ([\d,]+)", words)
    if match is None:
        return None
    limit, requested = _int(match.group(1)), _int(match.group(2))
    return limit if requested > limit > 0 else None


def _window(words: str) -> int | None:
    return _first_number(
        words,
        r"> ([\d,]{4,})",
        r"(?:must be <=?|less than) ?([\d,]{3,})",
        r"(?:maximum|limit|window|context (?:length|size)|model length)[^\d]{0,40}?([\d,]{4,})",
        r"with ([\d,]{4,}) maximum",
        r"([\d,]{4,})(?: tokens?)? (?:maximum|limit)",
        r"\[1, ?([\d,]{4,})\]",
    )


def _output_limit(words: str) -> int | None:
    return _first_number(
        words,
        r"\d+ > ([\d,]{3,})",
        r"at most ([\d,]{3,})",
        r"(?:maximum|limit|<=|less than or equal to|range of)[^\d]{0,40}(?:\[?1, ?)?([\d,]{3,})",
    )


def _first_number(words: str, *patterns: str) -> int | None:
    """The number in the first pattern that fits."""
    for pattern in patterns:
        match = re.search(pattern, words)
        if match:
            return _int(match.group(1)) or None
    return None


def _int(text: str) -> int:
    digits = text.replace(",", "")
    return int(digits) if digits.isdigit() and len(digits) < 12 else 0
