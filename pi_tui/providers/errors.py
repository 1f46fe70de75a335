"""The one classifier: what kind of failure a reply or an exception is, in words for people.

Nothing outside this module matches strings of providers. Everything ends as a `ProviderError`
whose message is safe to show and store: one plain sentence, no raw JSON, no keys. The library
exceptions are told apart by name, so that no HTTP client is imported here.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Mapping, Sequence

from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.providers.error_bodies import ErrorBody, one_line, read_error_body, redact
from pi_tui.providers.error_kinds import Verdict, find_verdict
from pi_tui.providers.provider_names import key_names, provider_facts
from pi_tui.providers.retry_after import find_retry_after_s


def classify(
    status: int | None,
    body_text: str,
    headers: Mapping[str, str],
    provider: str,
    *,
    secrets: Sequence[str] = (),
    base_url: str = "",
    now_s: float | None = None,
) -> ProviderError:
    """Turn a failed reply, or an error object inside a stream, into a `ProviderError`.

    `status` None: the error came inside a stream or from a library. `headers` have lower-case
    names. `secrets` are the keys in use. `now_s` is Unix time, for dates in Retry-After.
    """
    body = read_error_body(body_text)
    if status is None or status < 300:
        status = body.status
    words = f"{body.detail} {' '.join(body.codes)}".lower()
    verdict = find_verdict(status, words)
    wait_s = None
    if verdict.kind in (ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED, ErrorKind.QUOTA):
        wait_s = find_retry_after_s(headers, body, time.time() if now_s is None else now_s)
    if verdict.kind is ErrorKind.QUOTA and wait_s and "resource_exhausted" in words:
        # Google calls a limit per minute a quota too; only that one comes with a short wait.
        verdict = Verdict(ErrorKind.RATE_LIMIT if wait_s <= 300 else ErrorKind.QUOTA)
    return ProviderError(
        redact(_message(verdict, status, body, provider), secrets),
        kind=verdict.kind,
        provider=provider,
        status=status,
        retry_after_s=wait_s,
        limit_tokens=verdict.limit_tokens,
        hint=_hint(verdict.kind, status, provider, base_url),
    )


def classify_exception(
    exc: BaseException, provider: str = "", *, base_url: str = "", secrets: Sequence[str] = ()
) -> ProviderError:
    """Turn what the HTTP client raised into a `ProviderError`."""
    if isinstance(exc, ProviderError):
        return exc
    names = {cls.__name__ for cls in type(exc).__mro__}
    text = redact(one_line(str(exc)), secrets)
    where = _where(provider, base_url)
    base_url = shown_url(base_url)
    chain = _causes(exc)
    tls = next((c for c in chain if isinstance(c, ssl.SSLError)), None)
    kind, hint = ErrorKind.NETWORK, "Check the network and the base URL."
    if tls is not None:
        message, hint = _tls(tls, where)
    elif "ConnectTimeout" in names:
        kind = ErrorKind.TIMEOUT
        message = f"{where} did not accept a connection in time."
    elif names & {"TimeoutException", "TimeoutError"}:
        kind = ErrorKind.TIMEOUT
        message = f"{where} sent nothing for too long; the connection was closed."
        hint = "Try again; a local model may still be loading."
    elif any(isinstance(c, ConnectionRefusedError) for c in chain) or _says(text, "refused"):
        message = f"Nothing answers at {base_url or where}."
        hint = f"Is the server running at {base_url or 'that address'}?"
    elif _says(text, "name or service not known|nodename nor servname|getaddrinfo|name resolution"):
        message = f"The host name of {base_url or where} could not be found."
    elif names & {"ProxyError"}:
        message = f"The proxy did not let the request through: {text or 'no reason given'}."
        hint = "Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY."
    elif names & {"UnsupportedProtocol", "InvalidURL", "LocalProtocolError", "UnicodeEncodeError"}:
        # The text is left out: it may quote a header, and with it the key.
        kind = ErrorKind.BAD_REQUEST
        message = f"The request to {where} could not be made: its address or a header is wrong."
        hint = "Check base URL, key and headers; a base URL starts with http:// or https://."
    elif names & {"RemoteProtocolError", "ReadError", "WriteError", "CloseError"}:
        message = f"The connection to {where} broke before the answer was complete."
        hint = "The conversation is safe; try again."
    elif names & {"TransportError", "OSError"}:
        message = f"{where} could not be reached{f': {text}' if text else ''}."
    else:
        kind = ErrorKind.UNKNOWN
        message = f"The request to {where} failed: {text or type(exc).__name__}."
        hint = ""
    return ProviderError(redact(message, secrets), kind=kind, provider=provider, hint=hint or None)


def incomplete(provider: str) -> ProviderError:
    """The stream ended, but not the answer."""
    return ProviderError(
        f"The answer of {_name(provider)} is incomplete: the connection ended in the middle.",
        kind=ErrorKind.NETWORK,
        provider=provider,
        hint="The conversation is safe; try again.",
    )


def unreadable(provider: str) -> ProviderError:
    """A piece of the stream was no JSON; what it held cannot be known."""
    return ProviderError(
        _capital(f"{_name(provider)} sent a damaged piece of its answer.", provider),
        kind=ErrorKind.NETWORK,
        provider=provider,
        hint="The conversation is safe; try again.",
    )


def not_a_stream(provider: str, content_type: str, body_text: str, base_url: str) -> ProviderError:
    """Success was reported, but what came is no model answer (a web page, mostly)."""
    what = "a web page" if "html" in content_type else f"{content_type or 'something'}"
    title = read_error_body(body_text).detail
    quoted = f" (“{redact(title)}”)" if title else ""
    where = _where(provider, base_url)
    return ProviderError(
        _capital(f"{where} answered with {what}{quoted} and not with a model's answer.", provider),
        kind=ErrorKind.UNKNOWN,
        provider=provider,
        status=200,
        hint=f"Check the base URL {shown_url(base_url)}".rstrip() + "; it often ends in /v1.",
    )


def refused(provider: str, reason: str = "") -> ProviderError:
    """The model or its safety filter ended the answer."""
    return ProviderError(
        _capital(
            f"{_name(provider)} refused to answer{f' ({one_line(reason)})' if reason else ''}.",
            provider,
        ),
        kind=ErrorKind.REFUSED,
        provider=provider,
        hint="Word the request differently, or choose another model.",
    )


def window_exceeded(provider: str) -> ProviderError:
    """The answer stopped because the context window was full."""
    return classify(None, "model_context_window_exceeded", {}, provider)


# ---------------------------------------------------------------- wording

_SENTENCES = {
    ErrorKind.AUTH: "{who} did not accept the key",
    ErrorKind.QUOTA: "The account at {who} has no quota or credit left for this request",
    ErrorKind.RATE_LIMIT: "{who} asks to slow down",
    ErrorKind.OVERLOADED: "{who} has a fault of its own",
    ErrorKind.OVERFLOW: "The conversation is too long for the model",
    ErrorKind.PAYLOAD_TOO_LARGE: "The request is larger than {who} accepts",
    ErrorKind.BAD_REQUEST: "{who} did not accept the request",
    ErrorKind.BAD_SIGNATURE: "{who} did not accept the stored thinking of an earlier answer",
    ErrorKind.NETWORK: "The connection to {who} broke",
    ErrorKind.TIMEOUT: "{who} took too long",
    ErrorKind.REFUSED: "{who} refused to answer",
    ErrorKind.UNKNOWN: "{who} reported an error",
}


def _message(verdict: Verdict, status: int | None, body: ErrorBody, provider: str) -> str:
    sentence = _SENTENCES[verdict.kind]
    if verdict.output_limit:
        sentence = "The output limit asked for is more than {who} allows"
    elif verdict.kind is ErrorKind.OVERLOADED and _is_overload(status, body):
        sentence = "{who} is overloaded"
    elif status == 403:
        sentence = "{who} denied access"
    elif status == 404:
        sentence = "{who} does not know this model or address"
    elif status is not None and 300 <= status < 400:
        sentence = "{who} has moved to another address"
    said = _capital(sentence.format(who=_name(provider)), provider)
    if status is not None:
        said += f" ({status})"
    detail = body.detail
    if detail and detail.lower().replace("_", " ") != "model context window exceeded":
        said += f": {detail}"
    return said if said.endswith((".", "!", "?", "…")) else said + "."


def _is_overload(status: int | None, body: ErrorBody) -> bool:
    words = f"{body.detail} {' '.join(body.codes)}".lower()
    return status in (503, 529) or "overload" in words or "capacity" in words


def _capital(sentence: str, provider: str) -> str:
    """Begin with a capital letter, unless with the name of a provider, which stays as it is."""
    return sentence if provider else sentence[:1].upper() + sentence[1:]


def _hint(kind: ErrorKind, status: int | None, provider: str, base_url: str) -> str | None:
    if status == 403 and kind is ErrorKind.AUTH:
        return "Check that this key may use the model, and whether the provider serves your region."
    if kind is ErrorKind.AUTH:
        names = key_names(provider) if provider else ()
        if not names:
            return "Check the key of this provider."
        if provider_facts(provider) is None:
            return "Check the apiKey of this provider in models.json."
        return f"Set {names[0]} to a valid key."
    if status == 404 or (status is not None and 300 <= status < 400):
        at = f" ({shown_url(base_url)})" if base_url else ""
        return f"Check the model id and the base URL{at}."
    return {
        ErrorKind.QUOTA: "Check plan and billing at the provider, or choose another model.",
        ErrorKind.OVERFLOW: "Compact the conversation, or choose a model with a larger window.",
        ErrorKind.PAYLOAD_TOO_LARGE: "Leave out images or large attachments.",
        ErrorKind.REFUSED: "Word the request differently, or choose another model.",
    }.get(kind)


def _name(provider: str) -> str:
    facts = provider_facts(provider)
    return facts.name if facts is not None else provider or "the model server"


def shown_url(url: str) -> str:
    """The address without a user name and password."""
    return re.sub(r"^(\w+://)[^@/]*@", r"\1", url)


def _where(provider: str, base_url: str) -> str:
    if not base_url:
        return _name(provider)
    host = re.sub(r"^\w+://", "", shown_url(base_url)).split("/")[0]
    return f"{_name(provider)} at {host}"


def _tls(exc: ssl.SSLError, where: str) -> tuple[str, str]:
    if isinstance(exc, ssl.SSLCertVerificationError):
        reason = getattr(exc, "verify_message", "") or "it could not be verified"
        return (
            f"The certificate of {where} is not trusted: {reason}.",
            "Behind a company proxy, set SSL_CERT_FILE to its certificate bundle.",
        )
    return (
        f"A secure connection to {where} could not be made.",
        "Check whether the base URL should start with http:// or https://.",
    )


def _causes(exc: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    queue: list[BaseException | None] = [exc]
    while queue and len(found) < 20:
        current = queue.pop(0)
        if current is None or current in found:
            continue
        found.append(current)
        queue += [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            queue += list(current.exceptions)
    return found


def _says(text: str, pattern: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None
