"""Conversations as files for others: a web page, Markdown, or the stored lines."""
