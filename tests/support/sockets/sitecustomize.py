"""Read by each Python that has this folder on its path: its sockets are written down."""

import os
import sys


def _note(event, arguments):
    if event.startswith("socket."):
        family = arguments[1] if event == "socket.__new__" else ""
        with open(os.environ["SOCKETS_SEEN"], "a", encoding="utf-8") as seen:
            seen.write(f"python {event.removeprefix('socket.')} {int(family) if family else ''}\n")


if "SOCKETS_SEEN" in os.environ:
    sys.addaudithook(_note)
