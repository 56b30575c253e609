"""Numbers, sizes, processes and commands as a person reads them: in the same words everywhere."""

from collections.abc import Iterable

OPTIONS = ("--config", "--docs", "--index")
"""Where the documents, the index and the settings are: what most commands take."""
OPTIONS_OF: dict[str, tuple[str, ...]] = {
    "trust": (),
    "init": (),
    "models": ("--config",),
    "eval": ("--config",),
}
"""The commands that take fewer of them."""
_typed: list[tuple[str, str]] = []


def remember_typed(options: Iterable[tuple[str, str]]) -> None:
    """Which of these options this process was started with: what it advises repeats them."""
    _typed[:] = options


def advised(command: str) -> str:
    """A command to copy, in backticks: with what was typed, so that it means the same place."""
    taken = OPTIONS_OF.get(command.split()[0], OPTIONS)
    options = "".join(f" {name} {_quoted(value)}" for name, value in _typed if name in taken)
    return f"`ragdocs {command}{options}`"


def _quoted(value: str) -> str:
    """For a shell; what would speak to the terminal is written as an escape."""
    import shlex

    if value.isprintable():
        return shlex.quote(value)
    return "$'" + value.encode("unicode_escape").decode().replace("'", "\\'") + "'"


def number_of(count: int, noun: str, plural: str = "") -> str:
    """`1 file`, `1,200 files`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or noun + 's'}"


def size_text(count: int) -> str:
    """`12 bytes`, `1.2 MB`."""
    size, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit}"


def process_text(pid: int | None) -> str:
    """`process 12`, if its number is known."""
    return f"process {pid}" if pid else "another process"
