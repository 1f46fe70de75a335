"""The full-screen front end. Textual is imported only by `app` and what it imports.

`terminal` comes first and alone: it may be imported, and must act, before Textual is.
"""
