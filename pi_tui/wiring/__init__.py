"""The composition root: the only place that names concrete classes of all rooms.

It reads the environment and the settings once, makes the parts, and hands them to one front end.
Errors that stop the start are worded here, once, on standard error; nothing has been changed then.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pi_tui.core.errors import ModelError, PiTuiError, SessionNotFoundError, UsageError
from pi_tui.wiring.start import read_start, say

if TYPE_CHECKING:
    from pi_tui.launch_options import LaunchOptions
    from pi_tui.wiring.start import Start

EXIT_ERROR = 1
EXIT_USAGE = 2


def launch(options: LaunchOptions) -> int:
    """Run one front end; returns the exit code."""
    from pi_tui.wiring import front_ends

    start: Start | None = None
    try:
        if options.mode == "doctor":
            return front_ends.doctor(options)
        start = read_start(options)
        if options.mode == "list-models":
            return front_ends.list_models(start)
        if options.mode == "interactive":
            return front_ends.interactive(start)
        return front_ends.headless(start)
    except PiTuiError as error:
        say(error.text)
        usage = isinstance(error, UsageError | ModelError | SessionNotFoundError)
        return EXIT_USAGE if usage else EXIT_ERROR
    except BrokenPipeError:
        raise  # nobody reads any more; that is no fault
    except Exception as error:  # noqa: BLE001 - a mistake of the program; its report shows no key
        from pi_tui.tui.crash import crash_report

        sys.stderr.write(crash_report(error, () if start is None else start.secrets))
        return EXIT_ERROR
