"""Text from files inside an answer: fenced, so that it cannot end its fence or be mistaken."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_BACKTICKS = re.compile("`{3,}")
_PLACE = r"(?<![\w~.:/…])/(?:[^\s/:]+/)+[^\s/:]+"
_WINDOWS_ROOT = r"(?:[A-Za-z]:[\\/]|\\\\)"
# From a drive or a server on: what comes before the last two names of the path.
_WINDOWS_PLACE = re.compile(
    rf"(?<!\w){_WINDOWS_ROOT}(?:[^\s\\/:]+[\\/])*([^\s\\/:]+[\\/][^\s\\/:]+)"
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


def without_places(text: str, roots: Iterable[str] = (), known: Iterable[str] = ()) -> str:
    """Of a place outside the documents only the end is named. `roots` are the documents' folders;
    `known` are places that may be in the text, and have blanks that would end a path."""
    kept = [re.escape(without_home(root)) for root in sorted(roots, key=len, reverse=True)]
    for place in sorted(known, key=len, reverse=True):
        if not any(place == root or place.startswith(os.path.join(root, "")) for root in roots):
            text = text.replace(place, _end(without_home(place)))
    stays = "|".join(f"{root}(?![\\w.-])" for root in kept)
    places = re.compile(f"({stays})|{_PLACE}" if stays else f"(?!)()|{_PLACE}")
    shown = places.sub(lambda found: found[1] or _end(found[0]), without_home(text))
    return _WINDOWS_PLACE.sub(r"…/\1", shown)


def _end(place: str) -> str:
    """The last two names of a whole path, if it has more."""
    is_windows = re.match(_WINDOWS_ROOT, place) is not None
    if not is_windows and not place.startswith("/"):
        return place
    names = [name for name in re.split(r"[\\/]" if is_windows else "/", place) if name]
    names = names[1:] if is_windows and place[1:2] == ":" else names
    return "/".join(["…", *(names[-2:] if len(names) > 2 else names[-1:])])
