"""The folders that a client offers as its roots: the trees of a server to which nothing else names
documents.

Whether they are needed is known only after the configuration was read, which happens in a thread
after the handshake. A client with a handshake is then asked by a request of ours; one without
handshakes is asked in answer to its first call, which it repeats with its roots.
"""

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import InputRequiredResult, ListRootsRequest, ListRootsResult
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ragdocs.errors import ConfigError
from ragdocs.text import advised

MAX_ROOTS = 20
UNHEARD_SECONDS = 2.0
"""How long to wait for the first message that tells whether the client has roots."""
ANSWER_SECONDS = 10.0
"""How long a client may take to list them."""
_LOOK_SECONDS = 0.02
KEY = "roots"
"""The name of our question, in an answer that asks it."""
_log = logging.getLogger(__name__)


def _none_usable() -> str:
    return (
        "nothing is indexed: no root of the client can be used. A root must be a folder of this "
        "machine, and not a whole disk, the home folder or a folder around it. Open a folder of "
        "documents in the client and restart this server, or name one with "
        f"{advised('mcp --docs FOLDER')}"
    )


Context = ServerRequestContext[Any, Any]


class ClientRoots:
    """Asked by the thread that opens the index; told by the handlers of the client's messages."""

    def __init__(self) -> None:
        self._are_needed: bool | None = None
        """None until the configuration was read."""
        self._are_offered = False
        self._is_heard = threading.Event()
        self._is_asking = False
        self._known: Future[tuple[Path, ...]] = Future()
        self._telling = threading.Lock()

    # For the thread that opens the index.

    def folders(self) -> tuple[Path, ...]:
        """Waits for the client. Empty if it offers none.

        Raises ConfigError if the calls that wait now were not asked: an earlier attempt to open the
        index did not get this far; or if it offers folders and none can be used.
        """
        is_late = self._are_needed is False
        self._are_needed = True
        if not self._is_heard.wait(UNHEARD_SECONDS) or not self._are_offered:
            return ()
        if is_late and not self._known.done():
            raise ConfigError("the client's folders are not known yet: ask again")
        return self._known.result()

    def are_not_needed(self) -> None:
        """The documents are named otherwise, or cannot be."""
        if self._are_needed is None:
            self._are_needed = False

    # For the handlers.

    def hear(self, context: Context) -> None:
        """Notes whether the client has roots: any message may be the first that tells it."""
        capabilities = context.session.client_capabilities
        if not self._is_heard.is_set() and capabilities is not None:
            self._are_offered = capabilities.roots is not None
            self._is_heard.set()

    @property
    def may_be_needed(self) -> bool:
        return self._are_offered and self._are_needed is not False

    async def are_awaited(self) -> bool:
        """Whether nothing can be read before the client has listed them."""
        return self._are_offered and await self._find_out() and not self._known.done()

    async def ask(self, context: Context) -> None:
        """Asks a client with a handshake, if they are needed."""
        if is_modern(context) or not await self.are_awaited() or self._is_asking:
            return
        self._is_asking = True
        listed: Sequence[str] = ()
        try:
            with anyio.move_on_after(ANSWER_SECONDS):
                try:
                    answer = await context.session.send_request(ListRootsRequest(), ListRootsResult)
                    listed = [str(root.uri) for root in answer.roots]
                except (MCPError, ValidationError) as error:
                    _log.warning("the client did not list its roots: %s", type(error).__name__)
            await self._tell(listed)
        finally:  # if this was cancelled or failed, the opening thread must not wait for ever
            self._set(())

    async def question(
        self, context: Context, answers: Mapping[str, Any] | None
    ) -> InputRequiredResult | None:
        """What to answer first to a call of a client without handshakes; None once they are known
        or not needed."""
        if not is_modern(context) or not await self.are_awaited():
            return None
        given = (answers or {}).get(KEY)
        if given is None:
            return InputRequiredResult(input_requests={KEY: ListRootsRequest()})
        is_list = isinstance(given, ListRootsResult)
        await self._tell([str(root.uri) for root in given.roots] if is_list else [])
        return None

    def close(self) -> None:
        """Nobody waits any longer."""
        self.are_not_needed()
        self._is_heard.set()
        self._set(())

    async def _find_out(self) -> bool:
        """Waits until it is known whether they are needed."""
        while self._are_needed is None:
            await anyio.sleep(_LOOK_SECONDS)
        return self._are_needed

    async def _tell(self, uris: Sequence[str]) -> None:
        folders = await anyio.to_thread.run_sync(usable_folders, uris)
        self._set(folders, are_refused=bool(uris) and not folders)

    def _set(self, folders: tuple[Path, ...], *, are_refused: bool = False) -> None:
        with self._telling:
            if self._known.done():
                return
            if are_refused:
                self._known.set_exception(ConfigError(_none_usable()))
            else:
                self._known.set_result(folders)


def is_modern(context: Context) -> bool:
    """Without a handshake; then the server may not send requests of its own."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def usable_folders(uris: Iterable[str]) -> tuple[Path, ...]:
    """The folders of this machine that the addresses name: each once, without whole disks,
    the home folder and folders around it, which nobody offers to be indexed, and without folders
    inside another."""
    found: list[Path] = []
    home = _home()
    for uri in list(uris)[:MAX_ROOTS]:
        folder = folder_of(uri)
        if folder is None or folder in (home, Path(folder.anchor), *(home.parents if home else ())):
            _log.warning("a root of the client is not used: it is not a folder of documents")
        else:
            found.append(folder)
    return tuple(
        folder
        for folder in dict.fromkeys(found)
        if not any(other in folder.parents for other in found)
    )


def folder_of(uri: str) -> Path | None:
    """The folder that a `file:` address names, if it is on this machine."""
    from urllib.request import url2pathname

    try:
        parts = urlsplit(uri)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            return None
        path = Path(url2pathname(parts.path))
        return path.resolve(strict=True) if path.is_absolute() and path.is_dir() else None
    except (OSError, ValueError, RuntimeError):
        return None


def _home() -> Path | None:
    try:
        return Path.home().resolve()
    except (OSError, RuntimeError):
        return None
