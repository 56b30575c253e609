"""From a folder to the store and back: discover, read, parse, chunk, put, and ask."""

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from ragdocs.errors import SourceBinary, SourceTooLarge
from ragdocs.indexing.discovery import Scan, discover
from ragdocs.indexing.reading import Ingestion
from ragdocs.models import DocId, LinkKind, TreeName
from ragdocs.store.reader import Reader
from ragdocs.store.writer import StoreWriter
from tests.support.documents import SEED_SIZES
from tests.support.machine import takes_less_than

NASTY = Path(__file__).parents[2] / ".." / "shared" / "nasty"


@dataclass(frozen=True)
class Folder:
    root: Path
    include: tuple[str, ...] = ("**/*.md", "**/*.markdown", "**/*.txt")
    exclude: tuple[str, ...] = ()
    within: Path | None = None


def ingestion(root: Path, max_bytes: int = 10_000_000) -> Ingestion:
    return Ingestion(TreeName("docs"), root, max_bytes, SEED_SIZES)


def store_all(root: Path, index: Path) -> Scan:
    scan = discover(Folder(root))
    assert isinstance(scan, Scan)
    with StoreWriter.open(index, "test") as writer, writer.transaction() as transaction:
        for file in scan.files:
            transaction.put(ingestion(root).take(file.path), time.time_ns())
    return scan


def write(root: Path, **files: str) -> None:
    root.mkdir(exist_ok=True)
    for name, text in files.items():
        (root / f"{name}.md").write_text(text, encoding="utf-8")


def test_a_folder_goes_in_and_comes_out_with_its_links(tmp_path):
    root, index = tmp_path / "notes", tmp_path / "index"
    write(
        root,
        home="---\nrelated: [setup]\n---\n# Home\n\nSee [[Setup Guide#Linux]] and ![[gone]].\n",
        setup="# Setup Guide\n\nBack to [home](home.md).\n\n## Linux\n\n```sh\nmake\n```\n",
    )
    store_all(root, index)
    with Reader.open(index) as reader, reader.snapshot() as snapshot:
        links = snapshot.links(DocId("docs:home.md"))
        assert [(found.link.kind, found.target, found.slug) for found in links] == [
            (LinkKind.RELATED, "docs:setup.md", None),
            (LinkKind.LINKS_TO, "docs:setup.md", "linux"),
            (LinkKind.EMBEDS, None, None),
        ]
        assert [found.source for found in snapshot.backlinks(DocId("docs:home.md"))] == [
            "docs:setup.md"
        ]
        (block,) = snapshot.code_blocks()
        assert (block.block.language, block.chunk_id) == ("sh", "docs:setup.md#setup-guide")


def test_what_is_stored_is_the_files_text_at_its_span(tmp_path):
    root, index = tmp_path / "notes", tmp_path / "index"
    text = "".join(f"# Häding {n}\r\n\r\n{'Wörter hier. ' * 40}\r\n\r\n" for n in range(9))
    write(root, a=text)
    store_all(root, index)
    data = (root / "a.md").read_bytes()
    with Reader.open(index) as reader, reader.snapshot() as snapshot:
        stored = [found.chunk for found in snapshot.leaves()]
    assert len(stored) >= 9
    for chunk in stored:
        raw = data[chunk.span.byte_start : chunk.span.byte_end].decode()
        assert raw.replace("\r\n", "\n") == chunk.text
    assert b"".join(data[c.span.byte_start : c.span.byte_end] for c in stored) == data


def test_a_link_resolves_once_its_target_is_there(tmp_path):
    root, index = tmp_path / "notes", tmp_path / "index"
    write(root, a="[[b]]\n")
    store_all(root, index)
    write(root, b="# B\n")
    store_all(root, index)
    with Reader.open(index) as reader, reader.snapshot() as snapshot:
        assert snapshot.links(DocId("docs:a.md"))[0].target == "docs:b.md"
        assert snapshot.unresolved_links() == ()


def test_one_bad_file_is_an_error_of_that_file(tmp_path):
    (tmp_path / "picture.md").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    (tmp_path / "big.md").write_bytes(b"x" * 11)
    with pytest.raises(SourceBinary, match=r"^picture\.md: not text"):
        ingestion(tmp_path).take("picture.md")
    with pytest.raises(SourceTooLarge, match=r"^big\.md: 11 bytes, over max_file_bytes"):
        ingestion(tmp_path, max_bytes=10).take("big.md")


def test_a_sparse_gigabyte_is_refused_without_reading(tmp_path):
    with (tmp_path / "sparse.md").open("wb") as file:
        file.truncate(1 << 30)

    def take():
        with pytest.raises(SourceTooLarge):
            ingestion(tmp_path).take("sparse.md")

    assert takes_less_than(0.5, take)


@pytest.mark.skipif(
    not NASTY.is_dir(), reason="the collection of awkward Markdown (../shared/nasty) is not here"
)
def test_all_awkward_markdown_is_stored(tmp_path):
    folder = NASTY.resolve()
    scan = store_all(folder, tmp_path / "index")
    with Reader.open(tmp_path / "index") as reader, reader.snapshot() as snapshot:
        assert snapshot.ledger.count("documents") == len(scan.files) > 1000
        snapshot.verify(deep=True)
