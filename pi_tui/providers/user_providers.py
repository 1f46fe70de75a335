"""The providers the user described, under our ids: the models file, and addresses in variables.

What is described wrongly is left out with a problem. It is not replaced by the built-in provider of
the same name: that would send prompts to another place than the user chose.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from pi_tui.core.errors import SettingsError
from pi_tui.providers.models_file import ModelsFile, ProviderEntry
from pi_tui.providers.provider_names import canonical_provider
from pi_tui.providers.request_headers import is_secret_header
from pi_tui.providers.web_address import is_web_address

_ADDRESS_NAMES = {
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "anthropic": ("ANTHROPIC_BASE_URL",),
}
"""Variables in wide use that send a provider's requests to another address."""


class UserProviders:
    """`entries` by our provider id; `problems` are for the user, those of the file first."""

    def __init__(self, file: ModelsFile, environment: Mapping[str, str]) -> None:
        self.entries = {
            name if entry.models else canonical_provider(name): entry
            for name, entry in file.providers.items()
        }
        self.problems = list(file.problems)
        self._left_out = dict(file.left_out)
        for provider, names in _ADDRESS_NAMES.items():
            variable = next((name for name in names if environment.get(name)), "")
            if variable:
                self._take_address(provider, variable, environment[variable].strip())

    def _take_address(self, provider: str, variable: str, url: str) -> None:
        entry = self.entries.get(provider, ProviderEntry(provider))
        if not url or entry.base_url or provider in self._left_out:
            return
        if is_web_address(url):
            self.entries[provider] = replace(entry, base_url=url.rstrip("/"))
            return
        problem = SettingsError(
            f"The variable {variable} must be an http:// or https:// address.",
            file="the environment",
            key=variable,
            hint=f"Correct it. Until then the provider {provider!r} is left out.",
        )
        self.problems.append(problem)
        self._left_out[provider] = problem

    def key_references(self) -> list[str]:
        """Keys and secret headers as they are written: literals, variables, commands."""
        found: list[str] = []
        for entry in self.entries.values():
            headers = [entry.headers, *(item.headers for item in entry.models)]
            headers += [change.headers for change in entry.overrides.values()]
            found += [value for h in headers for name, value in h.items() if is_secret_header(name)]
            found.append(entry.api_key)
        return [reference for reference in found if reference]

    @property
    def any_left_out(self) -> bool:
        return bool(self._left_out)

    def problem_of(self, provider: str, model_id: str = "") -> SettingsError | None:
        """Why a provider, or a model of it, is left out; None when it is not."""
        found = self._left_out.get(provider)
        if found is None and model_id:
            return self._left_out.get(f"{provider}/{model_id}")
        return found
