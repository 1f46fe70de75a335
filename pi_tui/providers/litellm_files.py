"""Finds files that the litellm package ships, without importing litellm."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def find_litellm_file(*names: str) -> Path | None:
    """The file below the package; None where litellm is not installed or does not hold it."""
    try:
        spec = importlib.util.find_spec("litellm")
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder, *names)
        if path.is_file():
            return path
    return None
