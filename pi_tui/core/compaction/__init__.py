"""Compaction and branch summaries, the deciding half: where to cut, what to summarise, which files.

Nothing here asks a model, reads a clock or writes an entry; `agent/compactor.py` and
`agent/navigator.py` carry out what is decided here.
"""
