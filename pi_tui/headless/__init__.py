"""Front ends without a screen: print the answer, or every event as a JSON line.

They hold a session through the few methods of `run.PromptSession`, and speak through standard
output and standard error only: output is what was asked for, everything else is an error line.
"""
