"""The built-in catalogue: models, windows and prices from the file that litellm ships.

litellm itself is never imported: its package is found without running it, and the file is read once
and kept as a small cache, one JSON text per provider, of which only the asked-for providers are
decoded. Without litellm the catalogue is empty and everything else still works. Prices are US
dollars per million tokens, windows count tokens.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

import msgspec
from msgspec import Raw, Struct, field

from pi_tui.core.models import Model, ModelCost
from pi_tui.providers.litellm_files import find_litellm_file
from pi_tui.providers.provider_names import (
    LITELLM_MODEL_KEY,
    LOCAL_PROVIDERS,
    UNSUPPORTED_LITELLM_PROVIDERS,
    litellm_prefix,
    provider_facts,
    provider_of_litellm,
)
from pi_tui.providers.regular_file import read_regular_file

SOURCE_NAME = "model_prices_and_context_window_backup.json"
CACHE_NAME = "catalogue.json"
CACHE_FORMAT = 1

_MAX_CACHE_BYTES = 64 * 1024 * 1024

_DEFAULT_WINDOW_TOKENS = 128_000
_DEFAULT_MAX_TOKENS = 16_384
_NOT_FOR_CODING = re.compile(
    r"(^|[-/.])(audio|tts|transcribe|realtime|image|robotics|omni|lyria|live|prompt-guard|"
    r"safeguard|search-preview|search-api|deep-research|computer-use|ocr)([-/.]|$)"
    r"|^ft:|/container$|commitment/|^1024-x|sample_spec"
)
_REGION = re.compile(r"^(?:[a-z]{2}(?:-gov)?-[a-z]+-\d|us|eu|global|us-gov)/")


class _SourceEntry(Struct):
    """The fields of litellm's file that matter here; the rest is not decoded."""

    litellm_provider: str = ""
    mode: str | None = None
    max_input_tokens: int | float | None = None
    max_output_tokens: int | float | None = None
    max_tokens: int | float | None = None
    input_cost_per_token: float | None = None
    output_cost_per_token: float | None = None
    cache_read_input_token_cost: float | None = None
    cache_creation_input_token_cost: float | None = None
    supports_function_calling: bool | None = None
    supports_reasoning: bool | None = None
    supports_vision: bool | None = None
    supports_minimal_reasoning_effort: bool | None = None
    supports_xhigh_reasoning_effort: bool | None = None
    supports_max_reasoning_effort: bool | None = None
    supports_none_reasoning_effort: bool | None = None
    supported_output_modalities: list[str] | None = None


class _Cache(Struct):
    format: int
    source: str
    size_bytes: int
    mtime_ns: int
    providers: dict[str, Raw] = field(default_factory=dict)


class _CacheHead(Struct):
    format: int = 0
    source: str = ""
    size_bytes: int = -1
    mtime_ns: int = -1


def find_source() -> Path | None:
    """litellm's model file; None where litellm is missing."""
    return find_litellm_file(SOURCE_NAME)


def _model_id(key: str, entry: _SourceEntry) -> tuple[str, str] | None:
    """The id under our provider and litellm's string for it; None for entries to leave out."""
    prefix, _, rest = key.partition("/")
    own_prefix = prefix.replace("-", "_") == entry.litellm_provider.replace("-", "_")
    if rest and (
        own_prefix or provider_of_litellm(prefix) == provider_of_litellm(entry.litellm_provider)
    ):
        model_id, full = rest, f"{entry.litellm_provider}/{rest}" if own_prefix else key
    else:
        provider = provider_of_litellm(entry.litellm_provider)
        model_id, full = key, f"{litellm_prefix(provider)}/{key}"
    if _REGION.match(model_id) or _NOT_FOR_CODING.search(model_id):
        return None
    return model_id, full


def _levels(entry: _SourceEntry, api: str) -> dict[str, str | None]:
    """Thinking levels that differ from the usual off, low, medium, high."""
    levels: dict[str, str | None] = {}
    if not entry.supports_reasoning:
        return levels
    if entry.supports_minimal_reasoning_effort is False:
        levels["minimal"] = None
    if entry.supports_xhigh_reasoning_effort:
        levels["xhigh"] = "xhigh"
    if entry.supports_max_reasoning_effort:
        levels["max"] = "max"
    if entry.supports_none_reasoning_effort and api == "openai-completions":
        levels["off"] = "none"
    return levels


def _per_million(per_token: float | None) -> float:
    return round((per_token or 0) * 1e6, 6)


def _model(key: str, entry: _SourceEntry) -> Model | None:
    """One catalogue model, or None when the entry is nothing an agent could work with."""
    if entry.mode not in ("chat", "responses") or not entry.supports_function_calling:
        return None
    if entry.litellm_provider in UNSUPPORTED_LITELLM_PROVIDERS or not entry.litellm_provider:
        return None
    if entry.supported_output_modalities and "text" not in entry.supported_output_modalities:
        return None
    provider = provider_of_litellm(entry.litellm_provider)
    named = _model_id(key, entry)
    if provider in LOCAL_PROVIDERS or named is None:
        return None
    model_id, litellm_model = named
    facts = provider_facts(provider)
    api = facts.api if facts is not None else "litellm"
    if entry.mode == "responses" and api == "openai-completions":
        api = "litellm"  # served only by the Responses API, which litellm bridges
    window = int(entry.max_input_tokens or entry.max_tokens or _DEFAULT_WINDOW_TOKENS)
    output = int(entry.max_output_tokens or entry.max_tokens or _DEFAULT_MAX_TOKENS)
    return Model(
        provider=provider,
        id=model_id,
        api=api,
        name=model_id,
        base_url=facts.base_url if facts is not None and api != "litellm" else "",
        context_window=window,
        max_tokens=min(output, window),
        reasoning=bool(entry.supports_reasoning),
        thinking_level_map=_levels(entry, api),
        input=("text", "image") if entry.supports_vision else ("text",),
        cost=ModelCost(
            _per_million(entry.input_cost_per_token),
            _per_million(entry.output_cost_per_token),
            _per_million(entry.cache_read_input_token_cost),
            _per_million(entry.cache_creation_input_token_cost),
        ),
        compat={LITELLM_MODEL_KEY: litellm_model},
    )


def read_source(data: bytes) -> dict[str, list[Model]]:
    """Models of litellm's file by provider, in file order, one per id; odd entries are skipped."""
    entries = msgspec.json.decode(data, type=dict[str, Raw])
    decoder = msgspec.json.Decoder(_SourceEntry)
    by_provider: dict[str, dict[str, Model]] = {}
    for key, raw in entries.items():
        try:
            model = _model(key, decoder.decode(raw))
        except msgspec.ValidationError:
            continue
        if model is not None:
            by_provider.setdefault(model.provider, {}).setdefault(model.id, model)
    return {provider: list(models.values()) for provider, models in by_provider.items()}


class Catalogue:
    """Built-in models by provider, loaded when first asked and then only what is asked for.

    `source` None looks for litellm's file. `cache_dir` None keeps no cache. Unreadable files make
    an empty catalogue; `problem` then says why.
    """

    def __init__(self, cache_dir: Path | None = None, source: Path | None = None) -> None:
        self._cache_dir = cache_dir
        self._source = source
        self._raw: dict[str, Raw] | None = None
        self._decoded: dict[str, tuple[Model, ...]] = {}
        self.problem = ""

    @property
    def loaded(self) -> bool:
        """True once the file or its cache has been read."""
        return self._raw is not None

    def providers(self) -> tuple[str, ...]:
        """Providers that have at least one model here, in alphabetical order."""
        return tuple(sorted(self._providers()))

    def models(self, provider: str) -> tuple[Model, ...]:
        """The provider's models, in the order of the source."""
        done = self._decoded.get(provider)
        if done is None:
            raw = self._providers().get(provider)
            done = () if raw is None else msgspec.json.decode(raw, type=tuple[Model, ...])
            self._decoded[provider] = done
        return done

    def find(self, provider: str, model_id: str) -> Model | None:
        """One model by provider and id."""
        return next((m for m in self.models(provider) if m.id == model_id), None)

    def all(self) -> tuple[Model, ...]:
        """Every model, grouped by provider."""
        return tuple(model for provider in self.providers() for model in self.models(provider))

    def _providers(self) -> dict[str, Raw]:
        if self._raw is None:
            self._raw = self._load()
        return self._raw

    def _load(self) -> dict[str, Raw]:
        source = self._source or find_source()
        if source is None:
            self.problem = "litellm is not installed, so there is no built-in list of models."
            return {}
        try:
            stat = source.stat()
            head = _CacheHead(CACHE_FORMAT, str(source), stat.st_size, stat.st_mtime_ns)
            cached = self._read_cache(head)
            if cached is not None:
                return cached
            models = read_source(source.read_bytes())
        except (OSError, msgspec.DecodeError) as error:
            self.problem = f"The built-in list of models could not be read: {error}"
            return {}
        encode = msgspec.json.encode
        raw = {provider: Raw(encode(entries)) for provider, entries in models.items()}
        self._write_cache(
            _Cache(head.format, head.source, head.size_bytes, head.mtime_ns, providers=raw)
        )
        return raw

    def _read_cache(self, expected: _CacheHead) -> dict[str, Raw] | None:
        if self._cache_dir is None:
            return None
        try:
            data = read_regular_file(self._cache_dir / CACHE_NAME, _MAX_CACHE_BYTES)
            cache = msgspec.json.decode(data, type=_Cache)
        except (OSError, msgspec.DecodeError):
            return None
        found = _CacheHead(cache.format, cache.source, cache.size_bytes, cache.mtime_ns)
        return cache.providers if found == expected else None

    def _write_cache(self, cache: _Cache) -> None:
        """Write the cache beside its final name and move it there; failure only costs time."""
        if self._cache_dir is None:
            return
        target = self._cache_dir / CACHE_NAME
        partial = target.with_name(f"{CACHE_NAME}.{os.getpid()}")
        try:
            self._cache_dir.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(msgspec.json.encode(cache))
            partial.replace(target)
        except OSError:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
