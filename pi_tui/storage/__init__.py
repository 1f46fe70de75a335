"""Session files: `jsonl` opens and creates, `listing` finds, `fork` copies, `memory` forgets."""
