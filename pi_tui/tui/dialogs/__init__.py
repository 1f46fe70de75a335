"""Panels that take the editor's place: a picker, a text to read, a question."""
