"""Each way in which a process hangs, one at a time: the end within two seconds, as promised."""

import signal
import time

import pytest

from ragdocs.store.lock import watching, writing
from tests.support.children import PROMISED_SECONDS
from tests.support.processes import read_line
from tests.unit.test_lifecycle import CASES, DEADLINE, started

LOCKS = "writes, watches = try_write_lock(directory), try_watch_lock(directory)\n"


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{where}, {signal.Signals(number).name}" for where, _, number, _ in CASES]
)
def test_the_end_comes_when_promised(tmp_path, measured, case):
    where, body, number, code = case
    usual = "lifecycle.ALARM_SECONDS = usual\n"
    with started(f"{LOCKS}{usual}with Ending() as ending:\n{body}", tmp_path) as process:
        assert read_line(process) == "ready"
        began = time.monotonic()
        process.send_signal(number)
        ended = process.wait(timeout=DEADLINE)
        seconds = time.monotonic() - began
    measured(f"end, hanging in {where}", seconds=round(seconds, 2), code=ended)
    assert seconds < PROMISED_SECONDS
    assert ended == code
    assert (writing(tmp_path), watching(tmp_path)) == (None, None)
