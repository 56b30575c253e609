"""`python -m ragdocs`, the same as the command."""

from ragdocs.cli.main import main

main(prog_name="ragdocs")
