"""`completion`: the script by which a shell completes commands and options."""

from pathlib import Path

import click

NAMES = ("ragdocs", "mcp-markdown-ragdocs")


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands and options.

    \b
    Examples:
      ragdocs completion bash >> ~/.bashrc
      ragdocs completion zsh >> ~/.zshrc
      ragdocs completion fish > ~/.config/fish/completions/ragdocs.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    root = context.find_root()
    name = Path(root.info_name or "").name
    name = name if name in NAMES else NAMES[0]
    variable = f"_{name}_complete".replace("-", "_").upper()
    script = kind(root.command, {}, name, variable)
    # Not `script.source()`: it starts a bash to see how old that is.
    click.echo(script.source_template % script.source_vars())
