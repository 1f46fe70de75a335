"""When the garbage collector looks at what: large sessions are not gone through again and again.

The collector stops the program while it looks. A session of 100,000 entries makes millions of
objects, none of them garbage; going through them takes longer than an arrow key should. So young
objects are looked at in larger lots, everything seldom, and what was loaded is set aside.
"""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 10_000
"""So many new objects are looked at together: about a millisecond."""
LOTS_BEFORE_MIDDLE = 10
MIDDLES_BEFORE_ALL = 100
"""Everything is looked at after about ten million new objects."""


def begin_collecting() -> None:
    """Collect from now on; what was loaded while the program started is set aside."""
    set_aside()
    gc.set_threshold(YOUNG_OBJECTS, LOTS_BEFORE_MIDDLE, MIDDLES_BEFORE_ALL)
    gc.enable()


def set_aside() -> None:
    """No collection looks at what is there now. It goes as ever when nothing refers to it."""
    gc.freeze()


def take_back() -> None:
    """Let the next collection look at everything: what was set aside may be garbage by now."""
    gc.unfreeze()
