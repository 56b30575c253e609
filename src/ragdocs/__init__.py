"""Local search over Markdown for AI agents and people."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragdocs.api import open_index as open_index

__all__ = ["__version__", "open_index"]

__version__ = "0.2.0"


def __getattr__(name: str) -> object:
    """Imports `open_index` at its first use, so that commands start faster."""
    if name == "open_index":
        from ragdocs.api import open_index

        return open_index
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
