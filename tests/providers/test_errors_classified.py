"""The one classifier: kinds, waiting times, limits, and words that are safe to show."""

from __future__ import annotations

import json
import ssl

import httpx
import pytest

from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.providers.error_bodies import redact
from pi_tui.providers.errors import classify, classify_exception

K = ErrorKind


def openai(message: str, code: str | None = None, kind: str = "invalid_request_error") -> str:
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


def anthropic(message: str, kind: str = "invalid_request_error") -> str:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}})


SORTING_CASES = [
    (1, 429, "", K.RATE_LIMIT),
    (2, 429, "Extra usage is required for long context requests.", K.QUOTA),
    (3, 400, "prompt is too long: 203977 tokens > 200000 maximum", K.OVERFLOW),
    (
        4,
        400,
        "input length and max_tokens exceed context limit: 181250 + 32000 > 200000",
        K.OVERFLOW,
    ),
    (
        5,
        400,
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in "
        "301004 tokens.",
        K.OVERFLOW,
    ),
    (
        6,
        400,
        "The input (33100 tokens) is longer than the model's context length (32768 tokens).",
        K.OVERFLOW,
    ),
    (
        7,
        400,
        "The input token count (1050001) exceeds the maximum number of tokens allowed (1048576).",
        K.OVERFLOW,
    ),
    (
        8,
        400,
        "ThrottlingException: Too many tokens, please wait before trying again.",
        K.RATE_LIMIT,
    ),
    (9, 529, "overloaded", K.OVERLOADED),
    (10, 413, "Request Entity Too Large", K.PAYLOAD_TOO_LARGE),
    (
        11,
        400,
        "max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens",
        K.BAD_REQUEST,
    ),
    (12, 400, "tool_use ids must be unique", K.BAD_REQUEST),
    (
        13,
        400,
        "No tool call found for function call output with call_id call_9",
        K.BAD_REQUEST,
    ),
    (14, None, "model_context_window_exceeded", K.OVERFLOW),
]


@pytest.mark.parametrize(("row", "status", "text", "kind"), SORTING_CASES)
@pytest.mark.parametrize("shape", ["plain", "openai", "anthropic", "litellm", "gateway"])
def test_rows_are_sorted_alike_in_every_wrapping(
    row: int, status: int | None, text: str, kind: ErrorKind, shape: str
) -> None:
    body = {
        "plain": text,
        "openai": openai(text) if text else "",
        "anthropic": anthropic(text) if text else "",
        "litellm": f"litellm.BadRequestError: AnthropicException - {anthropic(text)}"
        if text
        else "",
        "gateway": json.dumps(
            {"error": {"message": "Provider returned error", "metadata": {"raw": anthropic(text)}}}
        ),
    }[shape]
    assert classify(status, body, {}, "anthropic").kind is kind, f"row {row}"


MORE_CASES = [
    (401, openai("Incorrect API key provided: sk-abc", "invalid_api_key"), K.AUTH),
    (401, anthropic("invalid x-api-key", "authentication_error"), K.AUTH),
    (403, "<html><title>Forbidden</title></html>", K.AUTH),
    (400, '[{"error":{"code":400,"message":"API key not valid. Please pass one."}}]', K.AUTH),
    (429, openai("You exceeded your current quota", "insufficient_quota"), K.QUOTA),
    (402, '{"error":{"message":"Insufficient Balance"}}', K.QUOTA),
    (400, anthropic("Your credit balance is too low to access the Anthropic API."), K.QUOTA),
    (429, openai("The engine is currently overloaded, please try again later"), K.OVERLOADED),
    (500, anthropic("Internal server error", "api_error"), K.OVERLOADED),
    (502, "<html><head><title>502 Bad Gateway</title></head></html>", K.OVERLOADED),
    (503, "try again later", K.OVERLOADED),
    (504, "", K.TIMEOUT),
    (500, '{"error":{"message":"context size has been exceeded"}}', K.OVERFLOW),
    (400, openai("This model's maximum context length is 8192 tokens.", None), K.OVERFLOW),
    (400, openai("whatever", "context_length_exceeded"), K.OVERFLOW),
    (400, "This model's maximum prompt length is 131072 but got 537812 tokens", K.OVERFLOW),
    (400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
     K.OVERFLOW),
    (400, '{"error":{"type":"exceed_context_size_error","message":"too big"}}', K.OVERFLOW),
    (400, "Range of input length should be [1, 30720]", K.OVERFLOW),
    (413, openai("Request too large on tokens per minute (TPM): Limit 6000, Requested 9000"),
     K.OVERFLOW),
    (413, anthropic("Request exceeds the maximum size", "request_too_large"),
     K.PAYLOAD_TOO_LARGE),
    (400, anthropic("messages.0: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes"),
     K.PAYLOAD_TOO_LARGE),
    (400, anthropic("messages.1.content.0: Invalid `signature` in `thinking` block"),
     K.BAD_SIGNATURE),
    (400, anthropic("`thinking` or `redacted_thinking` blocks in the latest assistant message "
                    "cannot be modified."), K.BAD_SIGNATURE),
    (400, anthropic("Expected `thinking` or `redacted_thinking`, but found `tool_use`."),
     K.BAD_SIGNATURE),
    (400, anthropic("`tool_use` ids were found without `tool_result` blocks"), K.BAD_REQUEST),
    (400, openai("Invalid 'input[2].id': string too long. Expected a string with maximum length "
                 "64"), K.BAD_REQUEST),
    (422, '{"detail":[{"type":"extra_forbidden","msg":"Extra inputs are not permitted"}]}',
     K.BAD_REQUEST),
    (404, '{"error":"model \\"x\\" not found, try pulling it first"}', K.BAD_REQUEST),
    (400, openai("Your request was flagged", "content_policy_violation"), K.REFUSED),
    (None, anthropic("Overloaded", "overloaded_error"), K.OVERLOADED),
    (None, '{"error":{"code":502,"message":"Provider returned error"}}', K.OVERLOADED),
    (None, '{"error":{"code":429,"message":"slow"}}', K.RATE_LIMIT),
    (None, "litellm.ContextWindowExceededError: too big", K.OVERFLOW),
    (None, "something nobody has seen", K.UNKNOWN),
    (307, "", K.UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "kind"), MORE_CASES)
def test_bodies_of_real_servers(status: int | None, body: str, kind: ErrorKind) -> None:
    error = classify(status, body, {}, "openai")
    assert error.kind is kind, error.message
    assert "{" not in error.message
    assert "<" not in error.message
    assert error.message.endswith(".")


TGI_TOTAL = (
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3900 "
    "`inputs` tokens and 500 `max_new_tokens`"
)
TGI_INPUT = "Input validation error: `inputs` must have less than 1000 tokens. Given: 1512"


@pytest.mark.parametrize("text", [TGI_TOTAL, TGI_INPUT])
@pytest.mark.parametrize("status", [422, 400, None])
def test_a_validation_error_about_length_is_an_overflow(text: str, status: int | None) -> None:
    body = json.dumps({"error": text, "error_type": "validation"})
    assert classify(status, body, {}, "x").kind == K.OVERFLOW


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (SORTING_CASES[2][2], 200_000),
        (SORTING_CASES[3][2], 200_000),
        (SORTING_CASES[4][2], 272_000),
        (SORTING_CASES[5][2], 32_768),
        (SORTING_CASES[6][2], 1_048_576),
        (SORTING_CASES[10][2], 64_000),
        ("max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
         16_384),
        ("tool_use ids must be unique", None),
        (TGI_TOTAL, 4096),
        (TGI_INPUT, 1000),
        ("request (9000 tokens) exceeds the available context size (4096 tokens)", 4096),
    ],
)  # fmt: skip
def test_limits_named_by_the_server(text: str, limit: int | None) -> None:
    assert classify(400, text, {}, "x").limit_tokens == limit


NOW_S = 1_700_000_000.0


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({"retry-after": "7"}, "", 7.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, "", 1.5),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, "", 30.0),
        ({"retry-after": "Tue, 14 Nov 2000 22:13:50 GMT"}, "", 0.0),
        ({"retry-after": "soon"}, "Please try again in 2s.", 2.0),
        ({}, "Please try again in 850ms.", 0.85),
        ({}, "Please try again in 1m30.5s.", 90.5),
        ({}, "Please wait 20 seconds", 20.0),
        ({}, "no number of seconds", None),
        ({"retry-after": "9" * 400}, "", 3_153_600_000.0),  # finite: it is counted with
        ({}, f"Please wait {'9' * 400} hours", 3_153_600_000.0),
    ],
)
def test_waiting_time(headers: dict[str, str], text: str, seconds: float | None) -> None:
    error = classify(429, openai(text) if text else "", headers, "x", now_s=NOW_S)
    assert (
        error.retry_after_s == pytest.approx(seconds)
        if seconds
        else (error.retry_after_s == seconds)
    )


def test_googles_limit_per_minute_is_no_empty_account() -> None:
    body = json.dumps(
        {
            "error": {
                "code": 429,
                "message": "You exceeded your current quota, please check your plan.",
                "status": "RESOURCE_EXHAUSTED",
                "details": [{"@type": "RetryInfo", "retryDelay": "34s"}],
            }
        }
    )
    error = classify(429, body, {}, "gemini")
    assert error.kind is K.RATE_LIMIT
    assert error.retry_after_s == 34


def test_the_message_is_a_sentence_with_the_servers_own_words() -> None:
    error = classify(401, anthropic("invalid x-api-key", "authentication_error"), {}, "anthropic")
    assert error.message == "Anthropic did not accept the key (401): invalid x-api-key."
    assert "ANTHROPIC_API_KEY" in str(error.hint)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (529, anthropic("Overloaded"), "Anthropic is overloaded (529): Overloaded."),
        (500, "Sorry!", "Anthropic has a fault of its own (500): Sorry!"),
        (403, "", "Anthropic denied access (403)."),
        (404, "", "Anthropic does not know this model or address (404)."),
        (429, "", "Anthropic asks to slow down (429)."),
    ],
)
def test_words(status: int, body: str, message: str) -> None:
    assert classify(status, body, {}, "anthropic").message == message


def test_words_for_a_server_without_a_name() -> None:
    assert classify(429, "", {}, "").message == "The model server asks to slow down (429)."
    assert classify(429, "", {}, "my-box").message == "my-box asks to slow down (429)."
    error = classify_exception(httpx.ReadError(""), "", base_url="http://h:1/v1")
    assert error.message.startswith("The connection to the model server at h:1 broke")


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-abcDEF1234567890",
        "sk-ant-api03-xyz_-0123456789",
        "AIzaSyA1234567890abcdefghijk",
        "gsk_1234567890abcdef",
        "xai-1234567890abcdef",
        "ghp_1234567890abcdefABCDEF",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abc",
        "hf_abcdefghijklmnop",
    ],
)
def test_keys_of_known_shapes_are_hidden(key: str) -> None:
    assert key[5:] not in classify(401, openai(f"bad key {key}, sorry"), {}, "x").message
    assert redact(f"Authorization: Bearer {key}").count(key[5:]) == 0


def test_the_key_in_use_is_hidden_and_a_placeholder_is_not() -> None:
    error = classify(400, "a b9f8e7d6c5a4 c", {}, "x", secrets=["b9f8e7d6c5a4"])
    assert "b9f8" not in error.message
    assert redact("ask ollama first", ["ollama"]) == "ask ollama first"


def test_control_characters_and_length_are_bounded() -> None:
    message = classify(400, "a\x1b[31mb\u202ec\n\n" + "x" * 5000, {}, "x").message
    assert "\x1b" not in message
    assert "\u202e" not in message
    assert len(message) < 800


@pytest.mark.parametrize("body", ["{", "[]", "{}", '{"error": null}', "[" * 5000, '{"a":' * 500])
def test_odd_bodies_do_not_matter(body: str) -> None:
    assert classify(400, body, {}, "x").kind is K.BAD_REQUEST


# ---------------------------------------------------------------- exceptions

REQUEST = httpx.Request("POST", "http://localhost:1/v1")


def _caused(exc: Exception, cause: Exception) -> Exception:
    exc.__cause__ = cause
    return exc


@pytest.mark.parametrize(
    ("exc", "kind", "words"),
    [
        (httpx.ConnectTimeout("", request=REQUEST), K.TIMEOUT, "accept a connection"),
        (httpx.ReadTimeout("", request=REQUEST), K.TIMEOUT, "nothing for too long"),
        (httpx.ReadError("", request=REQUEST), K.NETWORK, "broke"),
        (httpx.RemoteProtocolError("peer closed", request=REQUEST), K.NETWORK, "broke"),
        (_caused(httpx.ConnectError("x"), ConnectionRefusedError(111, "no")), K.NETWORK,
         "Nothing answers at http://localhost:1/v1"),
        (httpx.ConnectError("[Errno -2] Name or service not known"), K.NETWORK, "host name"),
        (httpx.ProxyError("407 Proxy Authentication Required"), K.NETWORK, "proxy"),
        (httpx.UnsupportedProtocol("missing http://"), K.BAD_REQUEST, "could not be made"),
        (httpx.LocalProtocolError("Illegal header value b'Bearer secret9'"), K.BAD_REQUEST,
         "header is wrong"),
        (_caused(httpx.ConnectError("x"), ssl.SSLCertVerificationError(1, "self-signed")),
         K.NETWORK, "not trusted"),
        (_caused(httpx.ConnectError("x"), ssl.SSLError(1, "WRONG_VERSION_NUMBER")), K.NETWORK,
         "secure connection"),
        (ValueError("odd"), K.UNKNOWN, "odd"),
    ],
)  # fmt: skip
def test_exceptions_of_the_http_library(exc: Exception, kind: ErrorKind, words: str) -> None:
    error = classify_exception(exc, "local", base_url="http://user:pw@localhost:1/v1")
    assert error.kind is kind
    assert words in error.message
    assert "pw@" not in f"{error.message} {error.hint}"
    assert "secret9" not in error.message


def test_a_classified_error_is_passed_on() -> None:
    error = ProviderError("x", kind=K.QUOTA)
    assert classify_exception(error) is error
