"""The user's word on project files, given without the command: for tests of what comes after it."""

import os
from collections.abc import Mapping
from pathlib import Path

from ragdocs.config.loading import read_project_files
from ragdocs.config.locations import trust_file
from ragdocs.config.problems import Findings
from ragdocs.config.trust import change_grants


def trust_files(start: Path, environ: Mapping[str, str] | None = None) -> None:
    """All that are in force in `start`, with all that they ask for."""
    environ = os.environ if environ is None else environ
    path = trust_file(environ)
    assert path is not None
    found = read_project_files(start, environ, Findings())
    asked = {os.fspath(one.request.file): one.request.grant() for one in found if one.request.asks}
    assert asked, "nothing asks for trust"
    change_grants(path, lambda known: {**known, **asked})
