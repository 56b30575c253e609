"""The program's entry, `ragdocs` and `python -m ragdocs`: a signal ends it, whenever it comes."""

import os
import signal
import sys
from types import FrameType

_HEARD_SECONDS = 1.0
"""In which the thread that hears signals has had a turn, on any machine."""


def main() -> None:
    """Runs the command that was typed; does not return."""
    _forget_working_folder()
    # While the first modules are imported, and at the very end: nothing is open then.
    signal.signal(signal.SIGINT, _exit_now)
    from ragdocs.shutdown import Ending

    ending = Ending(watch_parent=False, interrupts=True)
    try:
        with ending:
            from ragdocs.cli.main import main as program

            program(prog_name="ragdocs")
    finally:
        # Whatever became of KeyboardInterrupt: code that it met may have caught it.
        if ending.has_interrupted:
            ending.begun.wait(_HEARD_SECONDS)
            sys.exit(ending.exit_code)


def _forget_working_folder() -> None:
    """`python -m` lets modules be imported from the folder it is started in, which may hold a
    stranger's; with -P it does not from the beginning."""
    from ragdocs.embedding.foreign_code import importable_paths

    sys.path[:] = importable_paths(sys.path)


def _exit_now(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


if __name__ == "__main__":
    main()
