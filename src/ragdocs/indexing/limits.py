"""What this process cannot do at the moment: that says nothing of the files, and passes."""

import errno

from ragdocs.errors import SourceUnreadable

_LIMITS = {errno.EMFILE, errno.ENFILE}


def is_our_limit(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno in _LIMITS


def too_many_open() -> SourceUnreadable:
    return SourceUnreadable(
        "files cannot be opened, because too many are open already: it is tried again; "
        "allow more of them (ulimit -n), or end what holds them"
    )
