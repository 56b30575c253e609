"""Files that people or other programs own too: changed whole or not at all, with their mode kept.

What was there is put aside first when that is asked for, and nothing is replaced that has changed
since it was read.
"""

import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ragdocs.cli.output import shown
from ragdocs.errors import FileKept
from ragdocs.files import open_file, replace, set_mode

MAX_BYTES = 20_000_000
_MAX_BACKUPS = 1000


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file as it was read: its real path, whatever links led there; no data when there is none.

    Every method raises FileKept when it cannot be done.
    """

    path: Path
    data: bytes | None
    status: os.stat_result | None = None

    def text(self) -> str:
        """Without the mark some editors begin a file with; empty when there is no file."""
        try:
            return (self.data or b"").decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise FileKept(f"{_at(self.path)} is not UTF-8 text: it was left as it is") from error

    def put_aside(self) -> Path:
        """A copy beside it, whose path is returned; an earlier copy of the same will do."""
        assert self.data is not None
        for number in range(1, _MAX_BACKUPS):
            ending = ".bak" if number == 1 else f".bak{number}"
            copy = self.path.with_name(self.path.name + ending)
            try:
                if _made(copy, self.data, self.status) or copy.read_bytes() == self.data:
                    return copy
            except OSError as error:
                raise _not_done(copy, error) from error
        raise FileKept(f"{_at(self.path)} has {_MAX_BACKUPS} copies already: delete some")

    def replace(self, text: str) -> None:
        mark = b"\xef\xbb\xbf" if (self.data or b"").startswith(b"\xef\xbb\xbf") else b""
        new = self.path.with_name(f".{self.path.name}.{secrets.token_hex(6)}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                _made(new, mark + text.encode("utf-8"), self.status)
                if read_kept(self.path).data != self.data:
                    raise FileKept(f"{_at(self.path)} changed at this moment: try again")
                replace(new, self.path)
            finally:
                new.unlink(missing_ok=True)
        except OSError as error:
            raise _not_done(self.path, error) from error
        except UnicodeEncodeError as error:
            raise FileKept(f"{_at(self.path)} takes UTF-8 only; a name in it is not") from error


def read_kept(path: Path, within: Path | None = None) -> KeptFile:
    """`within`: a folder that may be a stranger's, whose links must not lead out of it.

    Raises FileKept for what is no file, or cannot be read; or leads elsewhere.
    """
    real = Path(os.path.realpath(path))
    if within is not None and not real.is_relative_to(os.path.realpath(within)):
        raise FileKept(
            f"{_at(path)} is a link to {_at(real)}, which was left as it is: whoever made the link "
            "would choose which of your files is written. Delete the link, or change that file "
            "itself"
        )
    try:
        status = real.stat()
        if not stat.S_ISREG(status.st_mode):
            raise FileKept(f"{_at(path)} is not a regular file: it was left as it is")
        if status.st_size > MAX_BYTES:
            raise FileKept(f"{_at(path)} has more than {MAX_BYTES:,} bytes: it was left as it is")
        return KeptFile(real, real.read_bytes(), status)
    except FileNotFoundError:
        return KeptFile(real, None)
    except OSError as error:
        raise _not_done(path, error) from error


def _made(path: Path, data: bytes, like: os.stat_result | None) -> bool:
    """Whether it was made; not when there is something already."""
    try:
        # A copy may hold secrets, so that nobody else may look into it before its mode is known.
        mode = 0o600 if like else 0o666
        descriptor = open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "wb") as file:
        if like:
            with suppress(PermissionError, AttributeError):  # Windows has no owners' numbers
                os.fchown(descriptor, like.st_uid, like.st_gid)
            set_mode(descriptor, stat.S_IMODE(like.st_mode))
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    return True


def _not_done(path: Path, error: OSError) -> FileKept:
    return FileKept(f"{_at(path)} could not be read or written: {error.strerror or error}")


def _at(path: Path) -> str:
    return shown(os.fspath(path))
