"""Leaving a session: write what waits, move it where it can be written, say so, let go of the lock.

Blocking; callers on the event loop use a thread.
"""

from __future__ import annotations

from pi_tui.core.errors import StorageError
from pi_tui.core.protocols import SessionStore


def save_and_close(store: SessionStore, rescue_directory: str) -> list[str]:
    """Save and close a store; returns what the user must know, nothing when all is well."""
    told: list[str] = []
    if store.pending:
        told += _save_waiting(store, rescue_directory)
    try:
        store.sync()
    except (StorageError, OSError) as error:
        told.append(f"the session file could not be put on the device: {error}")
    try:
        store.close()
    except StorageError as error:
        told.append(f"LOST: {error.message}")
    return told


def _save_waiting(store: SessionStore, rescue_directory: str) -> list[str]:
    try:
        store.flush()
        return []
    except StorageError as error:
        why = error.message
    if not rescue_directory:
        return [why]
    try:
        store.relocate(rescue_directory)
    except StorageError as error:
        return [why, error.message]
    return [f"{why} The whole session was saved to {store.path} instead."]
