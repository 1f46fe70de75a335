"""The navigator of the session tree: a panel with a list, a preview, and what may be done there."""
