"""What a user or a project puts beside the program: instructions, prompts, themes.

Reads files and reports what could not be read. Knows nothing of sessions, settings or trust: the
wiring says which directories may be looked into.
"""
