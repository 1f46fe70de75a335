"""The session picker: list, search, rename, delete."""
