"""The entry point of `ragdocs` and `python -m ragdocs`: a signal ends the program at any time."""

import os
import signal
import sys
from types import FrameType

_HEARD_SECONDS = 1.0
"""Enough for the thread that handles signals to run, on any machine."""


def main() -> None:
    """Runs the command that was typed; does not return."""
    _forget_working_folder()
    # During the first imports and at the very end nothing is open, so the process may exit at once.
    signal.signal(signal.SIGINT, _exit_now)
    from ragdocs.shutdown import Ending

    ending = Ending(watch_parent=False, interrupts=True)
    try:
        with ending:
            from ragdocs.cli.main import main as program

            program(prog_name="ragdocs")
    finally:
        # Even if some code has caught the KeyboardInterrupt.
        if ending.has_interrupted:
            ending.begun.wait(_HEARD_SECONDS)
            sys.exit(ending.exit_code)


def _forget_working_folder() -> None:
    """`python -m` would import modules from the working directory, which may contain a stranger's
    code. With -P it never does."""
    from ragdocs.embedding.foreign_code import importable_paths

    sys.path[:] = importable_paths(sys.path)


def _exit_now(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


if __name__ == "__main__":
    main()
