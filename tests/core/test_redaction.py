"""Keys in texts that leave the program: what is found, what stays, and how long it takes."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_tui.core.redaction import Net, Redactor, is_placeholder
from pi_tui.export.masking import Masker
from pi_tui.providers.error_bodies import redact
from pi_tui.tui.crash import hide_secrets

NETS: tuple[Net, ...] = ("document", "message", "report")

KEYS = {
    "openai": "sk-proj-Ab1_" + "cD2-" * 9,
    "anthropic": "sk-ant-api03-" + "Ab1_" * 12,
    "stripe": "sk_live_" + "a1B2" * 6,
    "github": "ghp_" + "a1B2" * 9,
    "github-oauth": "gho_" + "a1B2" * 9,
    "github-fine": "github_pat_" + "A1b2" * 12,
    "gitlab": "glpat-" + "x1Y2" * 5,
    "gitlab-trigger": "glptt-" + "x1Y2" * 10,
    "slack-bot": "xoxb-123456789012-abcdefABCDEF",
    "slack-app": "xapp-1-A0123-456-abcdef",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "google": "AIza" + "Bc3_" * 8 + "xyz",
    "google-access": "ya29." + "a0Af" * 10,
    "hugging-face": "hf_" + "aB3c" * 9,
    "npm": "npm_" + "aB3c" * 9,
    "groq": "gsk_" + "aB3c" * 13,
    "xai": "xai-" + "aB3c" * 20,
    "pypi": "pypi-" + "AgEI" * 20,
    "replicate": "r8_" + "aB3c" * 9,
    "nvidia": "nvapi-" + "aB3-" * 16,
    "cerebras": "csk-" + "aB3c" * 12,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijklmno",
    "sendgrid": "SG." + "a1B2" * 5 + "a1." + "c3D4" * 10 + "e5f",
}
PEM = "-----BEGIN {0}PRIVATE KEY-----\nMIIEpAIBAAKCAQEA{1}\n-----END {0}PRIVATE KEY-----"


def hidden(text: str, net: Net, *secrets: str) -> str:
    return Redactor(secrets, net=net, mark="<hidden>").redact(text)


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("kind", KEYS)
def test_every_kind_of_key_is_found_by_every_net(kind: str, net: Net) -> None:
    key = KEYS[kind]
    for text in (f"use {key} now", f'{{"k":"{key}"}}', f"K={key}\n", f"({key}).", key):
        assert key[6:] not in hidden(text, net), text


@pytest.mark.parametrize("kind", KEYS)
def test_all_three_places_hide_the_same_keys(kind: str) -> None:
    text = f"it said {KEYS[kind]} twice"
    for changed in (Masker().mask(text), redact(text), hide_secrets(text)):
        assert KEYS[kind][6:] not in changed
        assert changed.startswith("it said ") and changed.endswith(" twice")


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_private_keys_are_hidden_whole(kind: str, net: Net) -> None:
    key = PEM.format(kind, "abcDEF123+/" * 10)
    assert hidden(f"a {key} b", net) == "a <hidden> b"
    cut = key[:80]
    assert "abcDEF" not in hidden(f"a {cut}", net), "its end was cut off"
    escaped = key.replace("\n", "\\n")
    assert hidden(f'{{"k":"{escaped}"}}', net) == '{"k":"<hidden>"}'


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("kind", KEYS)
def test_keys_are_found_in_encoded_text_too(kind: str, net: Net) -> None:
    for text in (
        f"a\n{KEYS[kind]}\tb",
        f"\x1b{KEYS[kind]} ",
        f"é{KEYS[kind]}\r",
        f"\x9b{KEYS[kind]}",
    ):
        once = json.dumps(text)
        for encoded in (once, json.dumps(once), repr(text), json.dumps(repr(text))):
            assert KEYS[kind][6:] not in hidden(encoded, net), encoded


@pytest.mark.parametrize("net", NETS)
def test_named_values_are_found_in_encoded_text_too(net: Net) -> None:
    value = "abcd1234efgh5678ijkl"
    for text in (f'{{"api_key": "{value}"}}', f'x\npassword: "{value}"', f"token='{value}'"):
        encoded = text
        for _ in range(3):
            encoded = json.dumps(encoded)
            assert value[4:] not in hidden(encoded, net), encoded


@pytest.mark.parametrize("secret", ['plain "words" é', "back\\slash words", "two\nlines of it"])
def test_known_secrets_are_found_as_they_are_encoded(secret: str) -> None:
    for text in (secret, json.dumps(secret), json.dumps(secret, ensure_ascii=False), repr(secret)):
        assert "words" not in hidden(text, "report", secret).replace("lines", "words"), text


def test_values_are_redacted_before_they_are_encoded() -> None:
    redactor = Redactor(net="document", mark="#")
    key, value = KEYS["github"], "abcd1234efgh5678ijkl"
    data = {"token": [value, {"x": f"\n{key}"}], key: 1, "id": value, "n": None}
    changed = redactor.redact_json(data)
    assert changed == {"token": ["#", {"x": "\n#"}], "#": 1, "id": value, "n": None}
    assert redactor.count == 3
    deep: Any = key
    for _ in range(5000):
        deep = [deep]
    assert key not in json.dumps(redactor.redact_json(deep))


def test_a_mention_of_private_keys_is_no_key() -> None:
    text = "It begins with -----BEGIN PRIVATE KEY----- and is followed by lines of base64 text."
    assert hidden(text, "document") == text


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcd1234efgh5678ijkl",
        "authorization: bearer abcd1234efgh5678ijkl",
        "curl -H 'X-Custom: Bearer abcd1234efgh5678ijkl'",
        "OPENAI_API_KEY=abcd1234efgh5678ijkl",
        '"api_key": "abcd1234efgh5678ijkl"',
        "aws_secret_access_key = abcd1234efgh5678ijkl",
        "password=abcd1234efgh5678ijkl",
        "postgres://user:abcd1234efgh5678ijkl@db/x",
        "redis://:abcd1234efgh5678ijkl@cache:6379",
    ],
)
def test_values_beside_a_telling_name_are_hidden(text: str, net: Net) -> None:
    assert "efgh5678ijkl" not in hidden(text, net)


@pytest.mark.parametrize(
    "text",
    [
        "tokens: 1234",
        "maximum tokens: 128000",
        "token = next_token_of_the_stream",
        "the secret: a walk in the garden",
        "password = getpass.getpass()",
        "sk-learn and ask-me-anything-about-it",
        "git show 1234567890abcdef1234567890abcdef12345678",
        "https://example.org:8080/a@b",
        "the bearer of this letter",
        "npm_config_registry and hf_hub_download",
        "AKIAs and AIza",
    ],
)
@pytest.mark.parametrize("net", ["document", "message"])
def test_ordinary_text_stays(text: str, net: Net) -> None:
    assert hidden(text, net) == text


def test_failed_requests_quote_keys_in_part() -> None:
    for text in ("key sk-proj-****1234.", "key gsk_abcd****efgh1234.", "Bearer ab*****cd"):
        assert "1234" not in hidden(text, "message")
        assert "***" not in hidden(text, "message")
    assert hidden("not sk-proj-****1234.", "message") == "not <hidden>."


def test_a_crash_shows_no_value_of_a_telling_name() -> None:
    for text in ("password='hunter'", "api key: hunter", '{"token": "hunter"}', "secret=hunter)"):
        assert "hunter" not in hidden(text, "report")


@pytest.mark.parametrize("net", NETS)
def test_named_values_are_hidden_whatever_they_look_like(net: Net) -> None:
    redactor = Redactor(("plain words", "plain words too", "short"), net=net, mark="#")
    assert redactor.redact("plain words too, plain words, short") == "#, #, short"
    assert redactor.count == 2


def test_a_known_secret_beside_a_telling_name_counts_once() -> None:
    redactor = Redactor(("abcd1234efgh5678ijkl",), net="report", mark="<hidden>")
    assert redactor.redact("api_key=abcd1234efgh5678ijkl") == "api_key=<hidden>"
    assert redactor.count == 1


@pytest.mark.parametrize("word", ["ollama", "not-needed", "lm-studio", "no_key"])
def test_words_in_place_of_a_key_are_no_secrets(word: str) -> None:
    assert is_placeholder(word)
    assert redact(f"{word} said no", [word]) == f"{word} said no"


@pytest.mark.parametrize("key", ["b9f8e7d6c5a4", "correct-horse-battery-staple", "p4ssword", ""])
def test_other_values_are_no_placeholders(key: str) -> None:
    assert not is_placeholder(key)


@given(st.text(), st.sampled_from(NETS))
def test_any_text_is_survived_and_doing_it_again_changes_nothing(text: str, net: Net) -> None:
    once = hidden(text, net, "a secret of mine")
    assert hidden(once, net, "a secret of mine") == once


HOSTILE = {
    "names": "token=",
    "names and blanks": "token" + " " * 20,
    "beginnings of private keys": "-----BEGIN PRIVATE KEY-----",
    "almost private keys": "-----BEGIN PRIVATE KEY-----" + "A" * 23 + " ",
    "beginnings of JWTs": " eyJ" + "a" * 4000 + ".",
    "short JWTs": "eyJ" + "a" * 9 + ".",
    "beginnings of keys": " sk-",
    "bearers": "bearer ",
    "logins": "://a:b",
    "long logins": "http://" + "a" * 99 + ":" + "b" * 200 + " ",
    "dots": " ya29.a.a.a.a",
    "letters": "a",
    "dashes": "-",
    "blanks": " ",
    "escapes": "\\nsk-",
    "backslashes": "token" + "\\" * 7,
    "code points": "\\u00e9sk-",
}


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_megabyte_takes_a_moment(kind: str, net: Net) -> None:
    text = (HOSTILE[kind] * (1_000_000 // len(HOSTILE[kind]) + 1))[:1_000_000]
    before = time.process_time()
    hidden(text, net, *(f"secret-{n:04}" for n in range(50)))
    assert time.process_time() - before < 2.0, "measured: 0.3 s"
