"""The door to all models: which there are, who serves them, whether a key is at hand.

Models come from `models.json`, from extensions, from servers on this machine, from the built-in
catalogue, and last from the demo. Everything is loaded when first needed: a start with a model of
the user's own file never opens the catalogue, and no client exists before a request needs it. Keys
go to the addresses of the user's own files and of this program's table, and nowhere else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pi_tui.core.errors import ErrorKind, ModelError, PiTuiError, ProviderError, SettingsError
from pi_tui.core.messages import ThinkingLevel
from pi_tui.core.models import Model, ModelChoice
from pi_tui.core.protocols import Provider
from pi_tui.core.redaction import is_placeholder
from pi_tui.providers.catalogue import Catalogue
from pi_tui.providers.client_options import USUAL, ClientOptions
from pi_tui.providers.clients import Access, Clients
from pi_tui.providers.credentials import Credentials, variables_of
from pi_tui.providers.custom_models import model_from_entry, override_model, override_provider
from pi_tui.providers.demo import DEMO_MODEL, DemoProvider
from pi_tui.providers.enabled_models import enabled
from pi_tui.providers.local import PROBE_TIMEOUT_S, LocalServer, local_model, local_servers, probe
from pi_tui.providers.model_search import containing, nearest, only_one, search, split_level
from pi_tui.providers.models_file import ModelsFile, ProviderEntry, load_models_file
from pi_tui.providers.provider_names import (
    KNOWN_PROVIDERS,
    LOCAL_PROVIDERS,
    canonical_provider,
    key_names,
    provider_facts,
)
from pi_tui.providers.user_providers import UserProviders


def open_registry(
    environment: Mapping[str, str],
    *,
    models_path: Path | None = None,
    cache_dir: Path | None = None,
    stored_keys: Mapping[str, str] | None = None,
    client_options: ClientOptions = USUAL,
    enabled_models: Sequence[str] = (),
) -> ModelRegistry:
    """The registry for real use; `problems` of it are to be told.

    Raises SettingsError when the models file cannot be read or parsed at all.
    """
    file = load_models_file(models_path) if models_path is not None else ModelsFile()
    credentials = Credentials(environment, stored=stored_keys)
    return ModelRegistry(
        credentials=credentials,
        catalogue=Catalogue(cache_dir),
        models_file=file,
        servers=local_servers(environment),
        environment=environment,
        clients=Clients(credentials.child_environment, client_options),
        enabled_models=enabled_models,
    )


class ModelRegistry:
    """Knows the models and makes the clients; see `core.protocols.ModelSource`."""

    def __init__(
        self,
        *,
        credentials: Credentials,
        catalogue: Catalogue,
        models_file: ModelsFile | None = None,
        servers: Sequence[LocalServer] = (),
        environment: Mapping[str, str] | None = None,
        demo: Provider | None = None,
        clients: Clients | None = None,
        enabled_models: Sequence[str] = (),
    ) -> None:
        self.credentials = credentials
        self.catalogue = catalogue
        self._file = models_file or ModelsFile()
        self._users = UserProviders(self._file, environment or {})
        self._entries = self._users.entries
        self._servers = {server.provider: server for server in servers}
        self._local: dict[str, tuple[Model, ...]] = {}
        self._added: dict[str, tuple[tuple[Model, ...], Provider | None]] = {}
        self._demo = demo or DemoProvider(models_file=self._file.path)
        self._clients = clients or Clients(credentials.child_environment)
        self._enabled_models = tuple(enabled_models)

    @property
    def problems(self) -> tuple[SettingsError, ...]:
        """What the user described wrongly and was left out, in the order of the models file."""
        return tuple(self._users.problems)

    def _problem_of(self, provider: str, model_id: str = "") -> SettingsError | None:
        if provider in self._added:
            return None
        return self._users.problem_of(provider, model_id)

    # -------------------------------------------------------- which models there are

    def find(self, full_name: str) -> Model | None:
        """The model called `provider/id`, or None. Open-ended providers take any id."""
        provider, slash, model_id = full_name.partition("/")
        if not slash or not model_id:
            return None
        return self._find(self.provider_id(provider), model_id)

    def _find(self, provider: str, model_id: str, *, made_up: bool = True) -> Model | None:
        if self._problem_of(provider, model_id) is not None:
            return None
        entry = self._entries.get(provider)
        for item in entry.models if entry is not None else ():
            if entry is not None and item.id == model_id:
                base = self._base(provider, model_id) if provider_facts(provider) else None
                return model_from_entry(entry, item, base)
        if entry is not None and entry.models and provider_facts(provider) is None:
            return None  # a provider of the user's own has the models it lists, and no others
        base = self._base(provider, model_id)
        if base is None and made_up:
            base = self._made_up(provider, model_id)
        return base if base is None or entry is None else self._adapted(base, entry)

    def _base(self, provider: str, model_id: str) -> Model | None:
        """The model without the file's changes."""
        if provider in self._added or provider in self._local or provider == DEMO_MODEL.provider:
            return next((m for m in self._built_in(provider) if m.id == model_id), None)
        return self.catalogue.find(provider, model_id)

    def _built_in(self, provider: str) -> tuple[Model, ...]:
        if provider in self._added:
            return self._added[provider][0]
        if provider == DEMO_MODEL.provider:
            return (DEMO_MODEL,)
        if provider in LOCAL_PROVIDERS:
            return self._local.get(provider, ())
        return self.catalogue.models(provider)

    def _made_up(self, provider: str, model_id: str) -> Model | None:
        """A model no list holds, where the provider takes such ids."""
        server = self._servers.get(provider)
        if server is not None:
            return local_model(server, model_id)
        facts = provider_facts(provider)
        entry = self._entries.get(provider)
        if facts is None or not (facts.open_ended or (entry is not None and entry.base_url)):
            return None
        return Model(
            provider=provider, id=model_id, api=facts.api, name=model_id, base_url=facts.base_url
        )

    @staticmethod
    def _adapted(model: Model, entry: ProviderEntry) -> Model:
        changed = override_provider(model, entry)
        change = entry.overrides.get(model.id)
        return changed if change is None else override_model(changed, change)

    def models_of(self, provider: str) -> tuple[Model, ...]:
        """All listed models of one provider, the file's own first."""
        if self._users.any_left_out:
            listed = self._listed(provider)
            return tuple(m for m in listed if self._problem_of(provider, m.id) is None)
        return self._listed(provider)

    def _listed(self, provider: str) -> tuple[Model, ...]:
        entry = self._entries.get(provider)
        if entry is None:
            return self._built_in(provider)
        built_in = self._built_in(provider) if provider_facts(provider) or not entry.models else ()
        by_id = {model.id: model for model in built_in}
        own = {item.id: model_from_entry(entry, item, by_id.get(item.id)) for item in entry.models}
        rest = tuple(self._adapted(m, entry) for m in built_in if m.id not in own)
        return (*own.values(), *rest)

    def providers(self) -> tuple[str, ...]:
        """Every provider with models, in the order of preference: own ones, known ones, others."""
        known = [facts.id for facts in KNOWN_PROVIDERS]
        listed = set(self.catalogue.providers()) | set(self._local)
        order = [
            *self._entries,
            *self._added,
            *(provider for provider in known if provider in listed),
            *sorted(listed.difference(known)),
            DEMO_MODEL.provider,
        ]
        return tuple(dict.fromkeys(order))

    def all(self) -> tuple[Model, ...]:
        """Every model known, usable or not."""
        return tuple(model for provider in self.providers() for model in self.models_of(provider))

    def available(self) -> tuple[Model, ...]:
        """Models that could be used now: a key is set, or none is needed; of the enabled ones."""
        usable = tuple(
            model
            for provider in self.providers()
            if self.provider_usable(provider)
            for model in self.models_of(provider)
        )
        return enabled(usable, self._enabled_models)

    def search(self, query: str, *, only_available: bool = False) -> list[Model]:
        """Models that fit the query, best first; all of them for an empty one."""
        return search(self.available() if only_available else self.all(), query)

    def add_provider(
        self, provider: str, models: Sequence[Model], client: Provider | None = None
    ) -> None:
        """Add or replace a provider, as extensions and tests do; `client` serves its models."""
        self._added[provider] = (tuple(models), client)
        self._clients.forget(provider)

    def remove_provider(self, provider: str) -> None:
        """Take an added provider away again."""
        self._added.pop(provider, None)
        self._clients.forget(provider)

    async def probe_local(self, timeout_s: float = PROBE_TIMEOUT_S) -> tuple[Model, ...]:
        """Ask servers on this machine for their models; they are listed from then on."""
        found = await probe(tuple(self._servers.values()), timeout_s)
        grouped: dict[str, list[Model]] = {}
        for model in found:
            grouped.setdefault(model.provider, []).append(model)
        self._local = {provider: tuple(models) for provider, models in grouped.items()}
        return found

    # -------------------------------------------------------- what the user named

    def resolve(self, reference: str, provider: str = "") -> ModelChoice:
        """The model meant by `provider/id[:level]`, an id, or a part of one that fits only one.

        Raises ModelError with the nearest names otherwise.
        """
        text = reference.strip()
        if not text:
            raise ModelError("No model was named.", hint="Name one as `provider/id`.")
        if provider:
            provider = self.provider_id(provider)
        head, level = split_level(text)
        readings: list[tuple[str, ThinkingLevel | None]] = [(text, None)]
        if level is not None:
            readings.append((head, level))
        for name, wanted in readings:
            model = self._in_provider(name, provider, made_up=False)
            if model is not None:
                return ModelChoice(model, wanted)
        for name, wanted in readings if not provider else ():
            model = self._by_id(name)
            if model is not None:
                return ModelChoice(model, wanted)
        model = self._in_provider(head, provider, made_up=True) or self._by_part(head, provider)
        if model is not None:
            return ModelChoice(model, level)
        raise self._unknown(head, provider)

    def provider_id(self, name: str) -> str:
        """Our id for a provider as the user, another program or litellm calls it."""
        if name in self._entries or name in self._added:
            return name
        return canonical_provider(name)

    def _in_provider(self, text: str, provider: str, *, made_up: bool) -> Model | None:
        """The model of that id in the provider, or of that full name when there is none given."""
        if not provider:
            first, _, text = text.partition("/")
            provider = self.provider_id(first)
        return self._find(provider, text, made_up=made_up) if text else None

    def _by_id(self, model_id: str) -> Model | None:
        """The model of exactly that id, at a usable provider if there is one."""
        for models in (self.available, self.all):
            for model in models():
                if model.id == model_id:
                    return model
        return None

    def _by_part(self, text: str, provider: str) -> Model | None:
        for models in (self.available(), self.all()):
            fitting = [m for m in models if not provider or m.provider == provider]
            matches = containing(fitting, text)
            if matches:
                found = only_one(matches)
                if found is None and matches[0].provider != matches[-1].provider:
                    return None
                return found
        return None

    def _unknown(self, text: str, provider: str) -> ModelError:
        named = provider or self.provider_id(text.partition("/")[0])
        problem = self._problem_of(named, text if provider else text.partition("/")[2])
        if problem is not None:
            return ModelError(problem.message, hint=problem.hint)
        pool = self.models_of(named) or self.all()
        if provider and "/" not in text:
            text = f"{provider}/{text}"
        matches = containing(self.available(), text) or containing(pool, text)
        names = [model.full_name for model in matches[:4]] or nearest(pool, text)
        if len(matches) > 1:
            more = ", …" if len(matches) > 4 else ""
            return ModelError(
                f"“{text}” fits {len(matches)} models: {', '.join(names)}{more}.",
                hint="Name one of them in full.",
            )
        hint = f"Did you mean {' or '.join(names)}? " if names else ""
        return ModelError(
            f"There is no model called “{text}”.",
            hint=f"{hint}`--list-models` shows all; one that is missing can be added to"
            f" {self._file.path}.",
        )

    # -------------------------------------------------------- keys

    def key_reference(self, provider: str) -> str | None:
        """The key as it is written: this run's, the models file's, a stored one, a variable's."""
        entry = self._entries.get(provider)
        given = self.credentials.override(provider) or (entry.api_key if entry else "")
        if given:
            return given
        return self.credentials.stored_key(provider) or self._environment_key(provider)

    def _environment_key(self, provider: str) -> str | None:
        if self._entries.get(provider) and provider_facts(provider) is None:
            return None  # a provider of the user's own says itself where its key is
        return self.credentials.environment_key(provider)

    def provider_usable(self, provider: str) -> bool:
        """True when a key is at hand or none is needed, as far as can be told without asking."""
        if self._problem_of(provider) is not None:
            return False
        if provider in self._added or provider in self._local or provider == DEMO_MODEL.provider:
            return True
        reference = self.key_reference(provider)
        if reference is not None:
            return self._key_is_literal(provider) or self.credentials.is_set(reference)
        entry = self._entries.get(provider)
        if entry is not None and entry.base_url:
            return True
        if entry is not None and entry.models and provider_facts(provider) is None:
            return True
        return provider in LOCAL_PROVIDERS or self.credentials.ambient(provider)

    def _key_is_literal(self, provider: str) -> bool:
        """Only the models file writes keys as `$NAME` or `!command`; others are keys themselves."""
        entry = self._entries.get(provider)
        return bool(self.credentials.override(provider)) or not (entry and entry.api_key)

    def api_key_missing(self, model: Model) -> bool:
        """True when a request is sure to fail for want of a key, or of a place to send it to."""
        if self._problem_of(model.provider, model.id) is not None:
            return True
        facts = provider_facts(model.provider)
        if self.provider_usable(model.provider):
            return False
        if facts is None:  # litellm may know other variables than we do
            return self.key_reference(model.provider) is not None
        return bool(facts.key_names) and not facts.ambient_names

    def key_advice(self, model: Model) -> ModelError:
        """The error for a model without a key: what to set, never what is set."""
        problem = self._problem_of(model.provider, model.id)
        if problem is not None:
            return ModelError(problem.message, hint=problem.hint)
        facts = provider_facts(model.provider)
        who = facts.name if facts is not None else model.provider
        entry = self._entries.get(model.provider)
        if entry is not None and entry.api_key:
            return ModelError(
                f"There is no key for {who}: the apiKey in {self._file.path} has no value.",
                hint="Set the variable that it names.",
            )
        names = key_names(model.provider)
        return ModelError(
            f"There is no key for {who}.",
            hint=f"Set {' or '.join(names)} in the environment, or give --api-key.",
        )

    def secrets(self) -> tuple[str, ...]:
        """The values that must not be shown, as they are known now; ask anew when it matters.

        Words that stand where a server needs no key are no secrets.
        """
        known = set(self.credentials.known_values(self._users.key_references()))
        known |= {word for value in known for word in value.split(" ")[1:]}  # `Bearer …`
        return tuple(value for value in known if value and not is_placeholder(value))

    def key_variables(self) -> frozenset[str]:
        """Variables that may hold a key of a provider: known ones, and those the file names."""
        known = {name for facts in KNOWN_PROVIDERS for name in facts.key_names}
        own = (variables_of(reference) for reference in self._users.key_references())
        return frozenset(known.union(*own))

    # -------------------------------------------------------- clients

    def provider_for(self, model: Model) -> Provider:
        """The client that serves the model. Raises ModelError where no key is set."""
        if model.api == DEMO_MODEL.api and model.provider == DEMO_MODEL.provider:
            return self._demo
        added = self._added.get(model.provider)
        if added is not None and added[1] is not None:
            return added[1]
        if self.api_key_missing(model):
            raise self.key_advice(model)
        headers = self._headers(model)
        return self._clients.client(model, self._access(model.provider, headers), headers)

    async def prepare(self, model: Model) -> None:
        """Load in the background what the model's first request will need; failures are its own."""
        with contextlib.suppress(PiTuiError):
            self.provider_for(model)
            await self._clients.prepare(model, self._headers(model))

    async def close(self) -> None:
        """Close connections and end the child process."""
        await self._clients.close()

    def _headers(self, model: Model) -> dict[str, str]:
        """Headers of the file, as written; the model's own win."""
        entry = self._entries.get(model.provider)
        if entry is None:
            return {}
        own = next((item.headers for item in entry.models if item.id == model.id), {})
        change = entry.overrides.get(model.id)
        return {**entry.headers, **own, **(change.headers if change is not None else {})}

    def _access(self, provider: str, headers: Mapping[str, str]) -> Callable[[], Awaitable[Access]]:
        """Resolves key and headers before each request; commands run once."""

        async def access() -> Access:
            file = self._file.path
            reference = self.key_reference(provider) or ""
            try:
                if reference and not self._key_is_literal(provider):
                    where = f"{file}, providers.{provider}.apiKey"
                    reference = await self.credentials.resolve(reference, where)
                resolved = {
                    name: await self.credentials.resolve(
                        value, f"{file}, providers.{provider}.headers.{name}"
                    )
                    for name, value in headers.items()
                }
            except ModelError as error:
                raise ProviderError(
                    error.message, kind=ErrorKind.AUTH, provider=provider, hint=error.hint
                ) from error
            entry = self._entries.get(provider)
            return Access(reference.strip(), resolved, bool(entry and entry.auth_header))

        return access

    def without_keys(self) -> Iterator[ModelError]:
        """Why the models of the models file that lack a key cannot be used, one each provider."""
        for name, entry in self._entries.items():
            missing = (m for m in self.search(name) if m.provider == name)
            model = next(missing, None) if entry.models else None
            if model is not None and self.api_key_missing(model):
                yield self.key_advice(model)

    def own_providers(self) -> Iterable[str]:
        """Providers of the models file that bring models of their own, in its order."""
        return (name for name, entry in self._entries.items() if entry.models)
