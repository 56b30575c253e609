"""The command line's front door: the group that every command joins."""

import click

from ragdocs import __version__


@click.group()
@click.version_option(__version__, prog_name="ragdocs")
def main() -> None:
    """Search your Markdown: offline, cited, with an honest confidence."""
