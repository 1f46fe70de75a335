"""What is true: messages, entries, the session tree, projection, tokens, compaction.

Pure: no disk, network, clock, environment, user interface or provider library in here.
"""
