"""`index_status`: how the index is, what failed, and which settings are in force."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ragdocs.diagnosis.status import Status
from ragdocs.mcp_server.backend import Backend
from ragdocs.mcp_server.tools.answering import Given, fitted, plain
from ragdocs.mcp_server.tools.fields import DEFAULT_TOKENS
from ragdocs.mcp_server.tools.index_notes import IndexNote, index_note
from ragdocs.mcp_server.tools.library_arguments import StatusArguments
from ragdocs.mcp_server.tools.quoting import one_line, without_places
from ragdocs.mcp_server.visible import Cleaner
from ragdocs.wording import number_of

TOKENS_EACH = 50
"""What a failed file or a setting costs, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer(Status):
    """The status, with the state as every answer has it; of failures the first."""

    index: IndexNote
    failures_total: int
    settings: Mapping[str, str]


def index_status(backend: Backend, _arguments: StatusArguments) -> Given:
    status = backend.status()
    index = index_note(backend.index_state(), backend.activity())
    settings = backend.changed_settings()

    def ask(room: int) -> Given:
        most = max(1, room // (2 * TOKENS_EACH))
        shown = replace(status, failures=status.failures[:most], warnings=status.warnings[:most])
        return _given(
            shown, index, dict(list(settings.items())[:most]), status.holdings.files_failed
        )

    return fitted(DEFAULT_TOKENS, ask)


def _given(status: Status, index: IndexNote, settings: Mapping[str, str], failures: int) -> Given:
    cleaner = _Elsewhere(status)
    shown = {name: cleaner.clean(value) for name, value in settings.items()}
    structured = plain(status, cleaner)
    structured |= {"index": plain(index), "failures_total": failures, "settings": shown}
    lines = _lines(status, index, settings, failures)
    return Given(structured, "\n".join(map(cleaner.clean, lines)))


class _Elsewhere(Cleaner):
    """Places outside the documents are named from the home folder on, or by their ends."""

    def __init__(self, status: Status) -> None:
        super().__init__()
        self._roots = [tree.root for tree in status.trees]
        self._known = [
            status.index_directory,
            *status.config_files,
            *(variant.path for variant in status.variants),
            *(one.file for one in status.ignored),
            *(one.folder for one in (status.model, status.reranker) if one.folder),
        ]

    def clean(self, text: str) -> str:
        return without_places(super().clean(text), self._roots, self._known)


def _lines(
    status: Status, index: IndexNote, settings: Mapping[str, str], failures: int
) -> Iterator[str]:
    yield index.line()
    yield one_line(status.summary)
    yield from map(one_line, status.notes)
    holdings, disk = status.holdings, status.disk
    unused = holdings.unused_vector_bytes
    kept = f" ({unused:,} bytes of unused ones)" if unused else ""
    yield (
        f"{holdings.documents:,} documents, {holdings.passages:,} passages, {holdings.vectors:,} "
        f"vectors{kept}, {holdings.links_unresolved:,} broken links; "
        f"{disk.total:,} bytes in {one_line(status.index_directory)}"
    )
    if communities := holdings.communities_text():
        yield communities
    for tree in status.trees:
        problem = f"; {one_line(tree.problem)}" if tree.problem else ""
        yield f"- tree {one_line(tree.name)} ({one_line(tree.root)}): {tree.documents:,}{problem}"
    yield from _parts(status)
    if failures:
        yield f"files that could not be indexed: {len(status.failures):,} of {failures:,}"
    for failure in status.failures:
        yield f"- {one_line(failure.tree)}:{one_line(failure.path)}: {one_line(failure.reason)}"
    if status.holdings.files_with_loss:
        lossy = number_of(status.holdings.files_with_loss, "file")
        yield f"indexed, but not all that they hold can be found: {lossy}"
    for warning in status.warnings:
        yield f"- {one_line(warning.tree)}:{one_line(warning.path)}: {one_line(warning.text)}"
    yield f"settings other than the defaults: {len(settings)}"
    yield from (f"- {name} = {one_line(value)}" for name, value in settings.items())


def _parts(status: Status) -> Iterator[str]:
    watcher, model = status.watcher, status.model
    if watcher is not None:
        said = (watcher.mode, watcher.activity, watcher.reason, watcher.trouble)
        yield f"watching: {'; '.join(one_line(each) for each in said if each)}"
    for name, each in (("model", model), ("re-ranking", status.reranker)):
        found = each.problem or each.place or "ready"
        yield f"{name}: {one_line(each.name)}, {one_line(found) if each.is_on else 'off'}"
    keyword = status.keyword
    yield f"keywords: {keyword.engine}, {keyword.state}"
    yield f"version {status.version}"
