"""A server on a hostile folder: every file's fate, by questions and by what the store holds."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from ragdocs.places import shown_path
from ragdocs.store.reader import Reader
from ragdocs.store.records import StoredDocument
from ragdocs.store.snapshot import Snapshot
from tests.support.storms.hostile import Case, Fate, HostileTree
from tests.support.storms.hostile_rows import LINE_ENDS, NOT_LINE_ENDS
from tests.support.storms.oracle import PATIENCE_SECONDS, compare
from tests.support.storms.server import Server
from tests.support.storms.settling import seconds_until


class HostileCheck:
    """What was not as expected is in `wrong`."""

    def __init__(self, tree: HostileTree, index: Path) -> None:
        self.tree = tree
        self.index = index
        self.wrong: list[str] = []
        self.seconds = 0.0

    def run(self, patience: float = PATIENCE_SECONDS) -> None:
        with Server(self.tree.root, self.index) as server:
            self.seconds = seconds_until(
                lambda: server.ask("x")["readiness"] == "ready", time.monotonic(), patience
            )
            self.wrong += self._by_questions(server)
            self.wrong += self._by_store()
            self._change_under_way(server)
            self.wrong += self._by_questions(server)
            self.wrong += compare(self.tree.root, self.index)
            self.wrong += filter(None, [server.complaints()])

    def _by_questions(self, server: Server) -> Iterator[str]:
        for case in self.tree.cases.values():
            if case.word:
                found = server.holders(case.word)
                expected = {shown_path(case.path)} if case.fate is Fate.FOUND else set[str]()
                if found != expected:
                    yield f"{case.path!r}: {case.fate.value}, but {found} has the word"

    def _by_store(self) -> Iterator[str]:
        with Reader.open(self.index) as reader, reader.snapshot() as snapshot:
            yield from self._files(snapshot)
            yield from self._failures(snapshot)
            yield from self._warnings(snapshot)
            yield from _lines(snapshot)

    def _files(self, snapshot: Snapshot) -> Iterator[str]:
        known = {entry.path for entry in snapshot.manifest().values()}
        expected = {case.path for case in self.tree.cases.values() if case.fate is not Fate.ABSENT}
        if known != expected:
            yield f"known are {known - expected!r}, missing {expected - known!r}"

    def _failures(self, snapshot: Snapshot) -> Iterator[str]:
        found = {failure.path: failure.kind for failure in snapshot.failures()}
        expected = {
            case.path: case.kind for case in self.tree.cases.values() if case.fate is Fate.REFUSED
        }
        if found != expected:
            yield f"refused are {found}, and not {expected}"

    def _warnings(self, snapshot: Snapshot) -> Iterator[str]:
        documents = {document.path: document for document in snapshot.documents()}
        for path, case in self.tree.cases.items():
            if path in documents and case.warning not in (said := str(documents[path].warnings)):
                yield f"{path!r}: {case.warning!r} is not in {said}"
            if case.fate is Fate.SILENT and any(
                leaf.chunk.text for leaf in snapshot.leaves(documents[path].id)
            ):
                yield f"{path!r} has something to be found"

    def _change_under_way(self, server: Server) -> None:
        """The row of the list that is about time: whatever the clock says, the files decide."""
        root, cases = self.tree.root, self.tree.cases
        for path, when in (("lines/lf.md", 0), ("lines/cr.md", 4_102_444_800)):
            os.utime(root / path, (when, when))
        self._edit_in_place(cases["lines/crlf.md"])
        self._edit_in_place(cases["texts/rtl.md"])
        root.rename(root.with_name("moved away"))
        root.with_name("moved away").rename(root)
        for case in (cases["lines/crlf.md"], cases["texts/rtl.md"]):
            seconds_until(lambda one=case: server.holders(cases[one.path].word) == {one.path}, 0)

    def _edit_in_place(self, case: Case) -> None:
        """The same size and the same time, by another word."""
        file, word = self.tree.root / case.path, self.tree.words.new()
        status = file.stat()
        file.write_bytes(file.read_bytes().replace(case.word.encode(), word.encode()))
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        self.tree.expect(Case(case.path, case.fate, word))


def _lines(snapshot: Snapshot) -> Iterator[str]:
    """Only line ends end a line, and all of them alike."""
    documents = {document.path: document for document in snapshot.documents()}
    expected = _line_spans(snapshot, documents["lines/lf.md"])
    for name in LINE_ENDS:
        if (found := _line_spans(snapshot, documents[f"lines/{name}.md"])) != expected:
            yield f"{name}: the lines are {found}, and not {expected}"
    for name in NOT_LINE_ENDS:
        spans = _line_spans(snapshot, documents[f"lines/{name}.md"])
        if spans != [(1, 1)]:
            yield f"{name} ends a line: {spans}"


def _line_spans(snapshot: Snapshot, document: StoredDocument) -> list[tuple[int, int]]:
    spans = (leaf.chunk.span for leaf in snapshot.leaves(document.id))
    return [(span.line_start, span.line_end) for span in spans]
