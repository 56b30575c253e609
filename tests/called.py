"""The program called in this process: the same front door, without the start of a process."""

import os
import subprocess
from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner, Result

from ragdocs.cli.main import main


def called(folder: Path, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """As a process in `folder` would answer; of our variables, only those given are set."""
    ours: dict[str, str | None] = {name: None for name in os.environ if name.startswith("RAGDOCS_")}
    with chdir(folder):
        done = CliRunner(env={**ours, **environ}).invoke(main, arguments, catch_exceptions=False)
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def run(*words: str, code: int = 0) -> Result:
    """In the folder and the surroundings of this process; it must end with this code."""
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done
