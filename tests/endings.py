"""How long an end may take beside other tests, and children that end in one way only.

Two seconds are promised where threads get their turns. On a busy machine one may wait for its turn
longer than the whole end is meant to take; then the next means of ending would come first, and
what a test is about would not be seen. Without any, a process would hang for ever.
"""

from ragdocs import shutdown

PROMISED_SECONDS = 2.0
ALLOWED_SECONDS = 5 * PROMISED_SECONDS
LATE_SECONDS = 60.0
"""Later than any test waits."""


def by_itself() -> None:
    """This process is ended by force only much later: it has to come to its end in order."""
    shutdown.Ending.__init__.__kwdefaults__["limit"] = LATE_SECONDS


def by_its_thread() -> None:
    """The kernel ends this process only much later: the thread that does it has to."""
    shutdown.ALARM_SECONDS = LATE_SECONDS
