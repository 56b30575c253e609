"""One heavy file: what it costs is bounded, and what is beyond a limit is said and still found."""

import json
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest
from benchmarks.heavy_texts import KINDS, of_size

from ragdocs.app import App
from ragdocs.config.choices import Stemmer
from ragdocs.config.loading import load_config
from ragdocs.errors import IndexCorrupt
from ragdocs.indexing import update
from ragdocs.indexing.update import PreparedFile
from ragdocs.indices import vocabulary
from ragdocs.indices.fts5 import Fts5Index
from ragdocs.indices.vocabulary import MAX_WORDS, WordList
from ragdocs.models import DocId, FileState, WarningKind
from ragdocs.parsers.inline import MAX_LINKS, MAX_TAG_CHARS, MAX_TAGS
from ragdocs.parsers.markdown import MAX_CODE_BLOCKS, MAX_HEADINGS, MAX_LINES, MAX_REFERENCES
from ragdocs.search.candidates import ChunkTree
from ragdocs.search.requests import QueryRequest
from ragdocs.store import links
from ragdocs.store.reader import Reader
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.writer import StoreWriter
from tests.support.documents import chunk, parse
from tests.support.indexes import Place
from tests.support.machine import record_calls
from tests.support.models import CountingEmbedder
from tests.support.processes import run_code
from tests.support.stores import run_sql

MEGABYTE = 1_000_000
INDEXED = """
import json, sys
from pathlib import Path
from tests.support.indexes import setup, tree
from tests.support.models import CountingEmbedder
from ragdocs.indexing.manager import IndexManager
folder = Path(sys.argv[1])
with IndexManager(setup(folder / "index", tree(folder / "notes")), CountingEmbedder()) as manager:
    outcome = manager.update()
lines = Path("/proc/self/status").read_text().splitlines()
peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
print(json.dumps([peak, outcome.documents, len(outcome.failed)]))
"""


def indexing_peak(folder: Path) -> int:
    """Bytes of a process that indexes the notes of a folder, at most."""
    peak, documents, failed = json.loads(run_code(INDEXED, folder))
    assert (documents > 0, failed) == (True, 0)
    return peak


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read there")
@pytest.mark.parametrize(
    ("kind", "size", "most"),
    [
        # Before: 455, 559 and 516 MB, for a tenth of what a file may have.
        ("headings", 1.0, 350),
        ("lists, short", 1.0, 350),
        ("tables", 1.0, 350),
    ],
)
def test_memory_does_not_follow_the_number_of_blocks(tmp_path, kind: str, size: float, most: int):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text(of_size(kind, int(size * MEGABYTE)))
    assert indexing_peak(tmp_path) < most * MEGABYTE


# Limits: the rest is text


LIMITS = {
    "headings": ("# a\n", MAX_HEADINGS, WarningKind.TOO_MANY_HEADINGS),
    "links": ("[[n{n}]] ", MAX_LINKS, WarningKind.TOO_MANY_LINKS),
    "markdown links": ("[a](b{n}.md) ", MAX_LINKS, WarningKind.TOO_MANY_LINKS),
    "tags": ("#t{n} ", MAX_TAGS, WarningKind.TOO_MANY_TAGS),
    "code blocks": ("```\n```\n", MAX_CODE_BLOCKS, WarningKind.TOO_MANY_CODE_BLOCKS),
    "references": ("[r{n}]: x.md\n", MAX_REFERENCES, WarningKind.TOO_MANY_REFERENCES),
}


@pytest.mark.parametrize("name", LIMITS)
def test_what_is_beyond_a_limit_is_counted_and_still_text(name: str):
    part, limit, kind = LIMITS[name]
    text = "".join(part.format(n=n) for n in range(limit + 7)) + "\n\nlastword\n"
    document = parse(text)
    (warning,) = document.warnings
    assert (warning.kind, warning.count, warning.is_loss) == (kind, 7, True)
    assert f"{limit:,}" in warning.text
    kept = (document.headings, document.links, document.tags, document.code_blocks)
    assert max(map(len, kept)) in (limit, 0)
    assert "lastword" in chunk(text)[-1].text


def test_a_file_within_the_limits_causes_no_warning():
    assert parse("# a\n" * MAX_HEADINGS).warnings == ()
    assert len(parse("".join(f"[[n{n}]] " for n in range(MAX_LINKS))).links) == MAX_LINKS


def test_lines_beyond_the_limit_are_plain_text_and_found():
    lines = ["# First\n", *("\n" * (MAX_LINES - 1)), "# lastword [[x]] #tag\n", "```\n", "more\n"]
    text = "".join(lines)
    document = parse(text)
    assert [heading.text for heading in document.headings] == ["First"]
    assert (document.links, document.tags, document.code_blocks) == ((), (), ())
    (warning,) = document.warnings
    assert (warning.kind, warning.count) == (WarningKind.TOO_MANY_LINES, 4)
    leaves = [node for node in chunk(text) if node.text is not None]
    assert "".join(leaf.text for leaf in leaves) == text  # every character stands in one leaf
    assert "# lastword [[x]] #tag\n```\nmore\n" in leaves[-1].text


def test_blank_lines_beyond_the_limit_are_no_loss():
    assert parse("# First\n" + "\n" * (MAX_LINES + 10)).warnings == ()


def test_a_block_that_reaches_over_the_limit_ends_there():
    text = "```\n" + "code\n" * (MAX_LINES + 10) + "```\n"
    document = parse(text)
    (block,) = document.code_blocks
    assert block.code.count("\n") in (MAX_LINES - 1, MAX_LINES)
    assert [one.kind for one in document.warnings] == [WarningKind.TOO_MANY_LINES]


def test_a_word_behind_a_hash_as_long_as_a_page_is_no_tag():
    assert parse(f"#{'a' * MAX_TAG_CHARS} #{'b' * (MAX_TAG_CHARS + 1)}\n").tags == (
        "a" * MAX_TAG_CHARS,
    )


def test_the_first_of_two_definitions_counts():
    document = parse("[a]: one.md\n[a]: two.md\n\n[a]\n")
    assert [link.target for link in document.links] == ["one.md"]


# Linear


def test_runs_of_backticks_of_every_length_are_looked_for_once():
    """Seconds of one text beside those of one four times as long; it was over seven times."""

    def seconds(size: int) -> float:
        text = of_size("ticks, growing", size)
        began = time.process_time()
        parse(f"{text}[[x]]\n")
        return time.process_time() - began

    seconds(100_000)
    assert seconds(4 * MEGABYTE) < 6 * max(seconds(MEGABYTE), 0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_heavy_text_is_indexed_whole(kind: str):
    text = of_size(kind, 20_000)
    document = parse(text)
    leaves = [node.text for node in chunk(text) if node.text is not None]
    body = document.source.text[document.body_start :]
    assert "".join(leaves) == (body if body.strip() else "")


# Questions


SECTIONS = "".join(
    f"{'#' * (n % 6 + 1)} Part {n}\n\n{f'Some words of part {n} stand here. ' * (1 + n % 40)}\n\n"
    for n in range(120)
)


@pytest.mark.parametrize("inside", [0, 300, 4_000, 10**9])
def test_a_part_of_a_tree_has_all_that_is_in_and_above_it(tmp_path, inside: int):
    place = Place(tmp_path)
    with place.manager:
        place.write("a.md", SECTIONS)
        place.update()
        with Reader.open(place.index) as reader, reader.snapshot() as snapshot:
            whole = ChunkTree(snapshot.chunks(DocId("docs:a.md")))
            for found in whole.nodes:
                part = ChunkTree(
                    snapshot.chunks_near(DocId("docs:a.md"), [found.key], inside=inside)
                )
                own = found.chunk.id
                assert [*part.ancestors(own)] == [*whole.ancestors(own)]
                for node in (found, *whole.ancestors(own)):
                    span = node.chunk.span
                    if span.byte_end - span.byte_start <= inside:
                        assert part.leaves(node.chunk.id) == whole.leaves(node.chunk.id)


@pytest.mark.parametrize("beside", [1, 700, 10**9])
def test_a_part_of_a_tree_has_what_is_beside_it(tmp_path, beside: int):
    place = Place(tmp_path)
    with place.manager:
        place.write("a.md", SECTIONS)
        place.update()
        with Reader.open(place.index) as reader, reader.snapshot() as snapshot:
            leaves = [*snapshot.leaves(DocId("docs:a.md"))]
            for found in leaves:
                part = snapshot.chunks_near(DocId("docs:a.md"), [found.key], beside=beside)
                first = found.chunk.span.byte_start - beside
                last = found.chunk.span.byte_end + beside
                assert [node for node in part if node.chunk.text is not None] == [
                    leaf
                    for leaf in leaves
                    if leaf.chunk.span.byte_end > first and leaf.chunk.span.byte_start < last
                ]


def test_a_leaf_that_is_lost_is_noticed(tmp_path):
    place = Place(tmp_path)
    with place.manager:
        place.write("a.md", SECTIONS)
        place.update()
        with Reader.open(place.index) as reader, reader.snapshot() as snapshot:
            one, lost, *_ = snapshot.leaves(DocId("docs:a.md"))
        run_sql(place.index, f"DELETE FROM chunks WHERE key = {lost.key}")
        with (
            Reader.open(place.index) as reader,
            reader.snapshot() as snapshot,
            pytest.raises(IndexCorrupt),
        ):
            snapshot.chunks_near(DocId("docs:a.md"), [one.key], beside=10_000)


def test_a_question_reads_few_chunks_of_a_heavy_document(tmp_path, monkeypatch):
    """Merging read every node of each document that it found something in."""
    read = []
    near = Snapshot.chunks_near

    def noted(*args, **reach):
        part = near(*args, **reach)
        read.append(len(part))
        return part

    monkeypatch.setattr(Snapshot, "chunks_near", noted)
    monkeypatch.setattr(Snapshot, "chunks", None)  # the whole tree is not asked for
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text(of_size("sections", MEGABYTE))
    place = {"documents_path": str(folder), "index_path": str(tmp_path / "index")}
    config = load_config(cwd=tmp_path, environ={"HOME": str(tmp_path)}, flags={"indexing": place})
    with App(config, CountingEmbedder()) as app:
        with app.manager() as manager:
            manager.update()
        app.search(QueryRequest(queries=("part 77",), top_n=10))
    assert read
    assert max(read) < 1_000  # of 5,400


# In the store


def test_a_document_gives_the_vocabulary_its_first_words():
    names = (f"w{''.join(chr(97 + int(digit)) for digit in str(n))}" for n in count())
    words = [next(names) for _ in range(MAX_WORDS + 10)]
    texts = [" ".join(words[start : start + 100]) for start in range(0, len(words), 100)]
    found = {word for word, _, _ in WordList(Stemmer("english")).of(texts)}
    assert found == set(words[:MAX_WORDS])


def test_words_beyond_the_limit_leave_with_their_document(tmp_path, monkeypatch):
    monkeypatch.setattr(vocabulary, "MAX_WORDS", 12)
    place = Place(tmp_path)
    with place.manager:
        place.write("a.md", "one two three four five six seven eight nine ten eleven twelve more")
        place.write("b.md", "seven eight nine more and more and yet others than those before them")
        place.update()
        assert place.is_as_new()
        (place.root / "a.md").unlink()
        place.update()
        assert place.is_as_new()


def test_texts_are_analysed_before_the_lock_is_taken(tmp_path, monkeypatch):
    """Of 1 MB of names that are all different, the lock was held for 9 s, most of them for this."""
    under_lock, analysed = [], {True: set(), False: set()}
    column, transaction = Fts5Index._column, StoreWriter.transaction

    @contextmanager
    def noted(writer):
        with transaction(writer) as opened:
            under_lock.append(opened)
            yield opened
            under_lock.pop()

    def analyse(table, text):
        analysed[bool(under_lock)].add(text)
        return column(table, text)

    monkeypatch.setattr(StoreWriter, "transaction", noted)
    monkeypatch.setattr(Fts5Index, "_column", analyse)
    place = Place(tmp_path)
    with place.manager:
        place.write("a.md", SECTIONS)
        place.update()
        with Reader.open(place.index) as reader, reader.snapshot() as snapshot:
            texts = {leaf.chunk.text for leaf in snapshot.leaves()}
        assert texts <= analysed[False]
        assert not texts & analysed[True]
        assert analysed[True]  # titles and paths: what was noted is what is analysed there
        assert place.is_as_new()


def test_what_belongs_to_a_document_is_analysed_once_for_all_of_its_leaves(tmp_path, monkeypatch):
    calls = record_calls(monkeypatch, Fts5Index, "_column")
    place = Place(tmp_path)
    with place.manager:
        place.write("a.md", f"---\ntags: [one, two, three]\n---\n{SECTIONS}")
        place.update()
    assert [text for _, text in calls].count("one\ntwo\nthree") == 1


def test_links_are_resolved_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(links, "LINKS_AT_ONCE", 3)
    place = Place(tmp_path)
    with place.manager:
        place.write("hub.md", " ".join(f"[[n{n}#Part]]" for n in range(10)))
        for number in range(0, 10, 2):
            place.write(f"n{number}.md", "# Part\n\n[[hub]]\n")
        place.update()
        for number in range(1, 10, 2):
            place.write(f"n{number}.md", "# Part\n\n[[hub]]\n")
        place.update()
        assert place.is_as_new()


def test_a_batch_is_full_by_what_it_will_store(monkeypatch):
    monkeypatch.setattr(update, "ROWS_PER_BATCH", 100)
    monkeypatch.setattr(update, "SECONDS_PER_BATCH", 600.0)
    state = FileState(1, 1, "")

    def prepare(file):
        document = SimpleNamespace(headings=(0,) * 30, links=(0,) * 10, code_blocks=())
        return PreparedFile(file, state, 0, SimpleNamespace(document=document, chunks=(0,) * 10))

    files = [SimpleNamespace(found=SimpleNamespace(size=10)) for _ in range(7)]
    found = [len(batch) for batch in update.batches(files, prepare, Event())]
    assert found == [2, 2, 2, 1]
