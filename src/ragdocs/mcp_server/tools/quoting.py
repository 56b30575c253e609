"""Text from files inside an answer: fenced, so that it cannot end its fence or be mistaken."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

_BACKTICKS = re.compile("`{3,}")
_PLACE = re.compile(r"(?<![\w~.:/…])/(?:[^\s/:]+/)+([^\s/:]+/[^\s/:]+)")
# From a drive or a server on: what comes before the last two names of the path.
_WINDOWS_PLACE = re.compile(
    r"(?<!\w)(?:[A-Za-z]:[\\/]|\\\\)(?:[^\s\\/:]+[\\/])*([^\s\\/:]+[\\/][^\s\\/:]+)"
)


def fenced(label: str, text: str) -> str:
    """The fence is longer than any within."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=3)
    fence = "`" * (longest + 1)
    return f"{fence}{label}\n{text.rstrip()}\n{fence}"


def one_line(text: str) -> str:
    """Names, titles and headings, which may have line ends in them."""
    return " ".join(text.split())


def headed(title: str, heading_path: Sequence[str]) -> str:
    """The way to a passage: its document's title, unless the first heading is that."""
    parts = heading_path if heading_path[:1] == (title,) else (title, *heading_path)
    return " > ".join(map(one_line, parts))


def without_home(text: str) -> str:
    """The user's own folder as ~: an answer names no place outside the documents."""
    try:
        home = Path.home()
    except RuntimeError:  # nobody says where it is
        return text
    return text.replace(os.path.join(home, ""), "~/") if len(home.parts) > 1 else text


def without_places(text: str) -> str:
    """For errors: of a place outside the documents only the end is named."""
    return _WINDOWS_PLACE.sub(r"…/\1", _PLACE.sub(r"…/\1", without_home(text)))
