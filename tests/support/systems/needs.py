"""What tests need of the system they run on, and why they are skipped elsewhere.

On Linux nothing is skipped, but in the processes that tests/integration/test_other_systems.py takes
the calls away from. On Windows a test is skipped by what it names in its own text: a signal that is
sent, a named pipe, a mode. tests/conftest.py asks `missing` for that, and only there.
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

try:
    import resource as _resource
except ImportError:  # Windows
    _resource = None
try:
    import pty as _pty
except ImportError:
    _pty = None
resource: Any = _resource
pty: Any = _pty
"""Modules of POSIX, for tests that are skipped where there are none."""


def _needs(is_there: bool, why: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not is_there, reason=why)


fork = _needs(hasattr(os, "fork"), "this system has no fork")
modes = _needs(hasattr(os, "geteuid"), "files have no modes and owners on this system")
posix = _needs(os.name == "posix", "paths as POSIX writes them")
linux = _needs(sys.platform.startswith("linux"), "asks /proc, or a tool of Linux")

_BY_WORD = (
    (r"mkfifo|AF_UNIX|make_fifo|make_socket", "no named pipes or sockets in folders"),
    (r"\bos\.fork\b", "no fork"),
    (r"\bpty\.", "no terminals as POSIX has"),
    (r"SIGKILL|SIGSTOP|SIGCONT|SIGTERM|SIGINT|send_signal|os\.kill\b", "no signals as POSIX has"),
    (r"S_IMODE|chmod|0o[0-7]{3}\b|geteuid|permissions\.|without_rights", "no modes and owners"),
    (r"\bresource\.|prlimit|ulimit", "no limits of a process that could be set"),
    (r"/proc\b|/dev/|LD_PRELOAD|CDLL\(None\)", "no /proc, no /dev and no C library to preload"),
    (r"symlink_to|os\.symlink|make_link|make_loop|make_dangling", "links as POSIX has them"),
    (r"/etc/passwd|\"/home|'/home|Path\(\"/", "paths as POSIX writes them"),
    (r"\\\\udc|\\udcff|fsencode", "names that are not Unicode"),
    (r"pass_fds|\['cat'\]|\[\"echo\"|/bin/sh|bash", "no programs and descriptors of a POSIX shell"),
)
WHOLE_FILES = {
    "integration/test_faults_nth.py": "fails calls by a preloaded C library",
    "integration/test_faults_damage.py": "replaces files that are open, which Windows refuses",
    "integration/test_faults_resources.py": "sets limits of running processes",
    "integration/test_faults_rebuild.py": "kills by signals, and replaces files that are open",
    "integration/test_faults_clock.py": "preloads another clock",
    "integration/test_storms.py": "kills by signals",
    "integration/test_interrupted_commands.py": "sends Ctrl-C as a terminal of POSIX does",
    "unit/test_trodden_store.py": "replaces files that are open, which Windows refuses",
    "unit/test_store_damage.py": "replaces files that are open, which Windows refuses",
    "unit/test_store_side_files.py": "replaces files that are open, which Windows refuses",
    "unit/test_seal.py": "replaces files that are open, which Windows refuses",
    "unit/test_lifecycle.py": "sends signals",
}
"""Whole files that have no meaning on Windows, and why."""


def missing(path: Path, text: str) -> str:
    """Why a test with this text cannot run on Windows; empty when nothing in it says so."""
    whole = WHOLE_FILES.get(f"{path.parent.name}/{path.name}")
    if whole:
        return whole
    return next((why for words, why in _BY_WORD if re.search(words, text)), "")
