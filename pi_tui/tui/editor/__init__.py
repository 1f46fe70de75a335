"""The multi-line prompt editor: a pure buffer, its layout, history, completion, and the widget."""
