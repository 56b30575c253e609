"""Local search over Markdown for AI agents and people."""

__all__ = ["__version__"]

__version__ = "0.1.0"
