"""Slash commands: one registry for every front end."""
