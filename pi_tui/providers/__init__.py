"""One `Provider` protocol, many ways to serve it.

Thin clients for two wire formats, litellm in a child process for everything else, a demo model that
needs neither key nor network, and a scripted one for tests. `registry.ModelRegistry` is the door:
it knows the models, the keys and who serves what. Nothing here imports an HTTP client until the
first request. This room knows nothing of sessions, tools or screens.
"""
