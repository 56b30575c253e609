"""What is to be read and what forgotten: every reason on its own, then looks at single paths."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from ragdocs.chunking.splitting import embedding_text
from ragdocs.indexing.changes import FoundFile, RootProblem, RootUnavailable, Scan
from ragdocs.indexing.discovery import discover, look
from ragdocs.indexing.manifest import SETTLED_NS, Diff, Moved, SourceFile, diff, moves
from ragdocs.indexing.reading import Ingestion, read_file
from ragdocs.models import DocId, FileState, TreeName
from ragdocs.parsers.ids import document_id
from ragdocs.store.records import ManifestEntry
from tests.support.documents import SEED_SIZES

DOCS = TreeName("docs")
MTIME = 1_700_000_000_000_000_000
READ = MTIME + 3600 * 10**9


@dataclass(frozen=True)
class Tree:
    root: Path
    include: tuple[str, ...] = ("**/*.md",)
    exclude: tuple[str, ...] = ()
    within: Path | None = None


def entry(
    path: str,
    content: str | None = "text",
    size: int = 4,
    mtime_ns: int = MTIME,
    read_ns: int = READ,
) -> ManifestEntry:
    state = None if content is None else FileState(size, mtime_ns, content)
    return ManifestEntry(document_id(DOCS, path), DOCS, path, state, read_ns)


def entry_of(tree: TreeName, path: str) -> ManifestEntry:
    return entry(path)._replace(tree=tree, doc_id=document_id(tree, path))


def found(path: str, size: int = 4, mtime_ns: int = MTIME, ctime_ns: int = MTIME) -> FoundFile:
    return FoundFile(path, size, mtime_ns, ctime_ns)


def scan(*files: FoundFile, unseen: tuple[str, ...] = ()) -> Scan:
    return Scan(tuple(sorted(files)), (), frozenset(unseen))


def compared(entries: list[ManifestEntry], seen: Scan | RootUnavailable) -> Diff:
    return diff(entries, {DOCS: seen}, {DOCS})


def paths(files: tuple[SourceFile | ManifestEntry, ...]) -> list[str]:
    return [file.path for file in files]


def test_nothing_has_changed():
    result = compared([entry("a.md")], scan(found("a.md")))
    assert result == Diff()
    assert not result


def test_a_rebuild_is_the_same_from_an_empty_manifest():
    result = compared([], scan(found("b.md"), found("a#1.md")))
    assert result == Diff(
        added=(
            SourceFile(DocId("docs:a%231.md"), DOCS, found("a#1.md")),
            SourceFile(DocId("docs:b.md"), DOCS, found("b.md")),
        )
    )


@pytest.mark.parametrize(
    ("known", "now"),
    [
        (entry("a.md"), found("a.md", size=5)),
        (entry("a.md"), found("a.md", mtime_ns=MTIME + 1)),
        (entry("a.md"), found("a.md", mtime_ns=MTIME - 1)),
        (entry("a.md", None), found("a.md")),
        # an edit in the same tick of the clock as the reading, with and without mtime set back
        (entry("a.md", read_ns=MTIME + SETTLED_NS - 1), found("a.md")),
        (entry("a.md", read_ns=MTIME - SETTLED_NS + 1), found("a.md", ctime_ns=0)),
        # an edit that kept size and mtime; a change of permissions
        (entry("a.md"), found("a.md", ctime_ns=READ + 1)),
        (entry("a.md"), found("a.md", ctime_ns=READ - SETTLED_NS + 1)),
    ],
)
def test_what_must_be_read_again(known: ManifestEntry, now: FoundFile):
    result = compared([known], scan(now))
    assert result == Diff(modified=(SourceFile(known.doc_id, DOCS, now, known),))


@pytest.mark.parametrize(
    ("known", "now"),
    [
        (entry("a.md", read_ns=MTIME + SETTLED_NS), found("a.md")),
        (entry("a.md"), found("a.md", ctime_ns=READ - SETTLED_NS)),
        # times far from now say nothing by themselves
        (entry("a.md", mtime_ns=0), found("a.md", mtime_ns=0)),
        (entry("a.md", mtime_ns=MTIME * 3), found("a.md", mtime_ns=MTIME * 3)),
        # a failure whose file was looked at, though not read
        (entry("a.md", ""), found("a.md")),
    ],
)
def test_an_entry_that_is_up_to_date_is_unchanged(known: ManifestEntry, now: FoundFile):
    assert compared([known], scan(now)) == Diff()


def test_the_bytes_decide_once_they_are_read():
    (file,) = compared([entry("a.md", "old")], scan(found("a.md", size=5))).modified
    assert file.is_unchanged(FileState(5, MTIME, "old"))
    assert not file.is_unchanged(FileState(5, MTIME, "new"))
    (file,) = compared([entry("a.md", None)], scan(found("a.md"))).modified
    assert not file.is_unchanged(FileState(4, MTIME, "text"))


def test_only_what_is_seen_to_be_gone_is_removed():
    known = [entry("a.md"), entry("locked/b.md"), entry("locked/c/d.md"), entry("locked-not.md")]
    result = compared(known, scan(unseen=("locked",)))
    assert paths(result.removed) == ["a.md", "locked-not.md"]
    assert paths(result.kept) == ["locked/b.md", "locked/c/d.md"]


@pytest.mark.parametrize("problem", RootProblem)
def test_a_root_that_is_away_takes_nothing_with_it(problem: RootProblem):
    away = RootUnavailable(Path("root"), problem)
    result = compared([entry("a.md"), entry("b.md", None)], away)
    assert not result
    assert paths(result.kept) == ["a.md", "b.md"]


def test_trees_that_are_not_configured_any_more():
    old, other = TreeName("old"), TreeName("other")
    known = [entry_of(tree, "a.md") for tree in (old, DOCS, other)]
    result = diff(known, {DOCS: scan(found("a.md"))}, {DOCS, other})
    assert [gone.doc_id for gone in result.removed] == ["old:a.md"]
    assert result.kept == ()


def test_the_order_is_always_the_same():
    names = ["z.md", "a/b.md", "a.md", "é.md"]
    known = [entry(f"old {name}", size=9) for name in names]
    forwards = compared(known, scan(*map(found, names)))
    backwards = compared(known[::-1], scan(*map(found, names[::-1])))
    assert forwards == backwards
    assert paths(forwards.added) == sorted(names)
    assert paths(forwards.removed) == sorted(f"old {name}" for name in names)


# Moves


def test_what_may_have_moved_waits_for_the_file_that_it_may_be():
    known = [entry("old.md", "x", size=7), entry("deleted.md"), entry("edited.md", size=1)]
    now = scan(found("edited.md", size=2), found("added.md", size=3), found("new.md", size=7))
    result = compared(known, now)
    assert paths(result.gone) == ["deleted.md"]
    assert paths(result.missing) == ["old.md"]
    assert paths(result.to_read) == ["new.md", "edited.md", "added.md"]
    assert result.candidates == 1


def test_without_removals_nothing_waits():
    result = compared([entry("a.md", size=1)], scan(found("a.md", size=2), found("b.md")))
    assert (result.candidates, result.gone, result.missing) == (0, (), ())
    assert paths(result.to_read) == ["a.md", "b.md"]


def test_a_document_that_was_never_read_has_not_moved():
    result = compared([entry("a.md", None)], scan(found("b.md", size=0)))
    assert (paths(result.gone), result.missing) == (["a.md"], ())


def state(content: str) -> FileState:
    return FileState(4, MTIME, content)


def test_moves_are_known_by_their_bytes():
    missing = [entry("a.md", "1"), entry("b.md", "2"), entry("c.md", None)]
    read = {DocId("docs:x/a.md"): state("1"), DocId("docs:d.md"): state("3")}
    assert moves(missing, read) == (Moved(DocId("docs:a.md"), DocId("docs:x/a.md")),)


def test_of_several_with_the_same_bytes_those_of_the_same_name_belong_together():
    missing = [entry("one/a.md"), entry("one/b.md"), entry("one/c.md"), entry("one/d.md")]
    read = {DocId(f"docs:two/{name}.md"): state("text") for name in ("b", "c", "e")}
    assert moves(missing, read) == (
        Moved(DocId("docs:one/a.md"), DocId("docs:two/e.md")),
        Moved(DocId("docs:one/b.md"), DocId("docs:two/b.md")),
        Moved(DocId("docs:one/c.md"), DocId("docs:two/c.md")),
    )


def test_very_many_with_the_same_bytes():
    missing = [entry(f"one/{number}.md") for number in range(20_000)]
    read = {DocId(f"docs:two/{number}.md"): state("text") for number in range(20_000)}
    assert all(move.new == move.old.replace("one", "two") for move in moves(missing, read))


def embedded(root: Path, path: str) -> list[str]:
    taken = Ingestion(DOCS, root, 10_000, SEED_SIZES).take(path)
    return [embedding_text(chunk) for chunk in taken.chunks]


def test_what_a_move_embeds_again(tmp_path: Path):
    """Nothing, when it is only the folder that changes, or when the document has a title of its
    own; otherwise its name is its title, and that is part of what is embedded."""
    (tmp_path / "sub").mkdir()
    for name in ("a.md", "sub/a.md", "b.md"):
        (tmp_path / name).write_text("text\n\n## Section\n\nmore\n", encoding="utf-8")
    assert embedded(tmp_path, "a.md") == embedded(tmp_path, "sub/a.md")
    assert embedded(tmp_path, "a.md") != embedded(tmp_path, "b.md")
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("# Title\n\ntext\n", encoding="utf-8")
    assert embedded(tmp_path, "a.md") == embedded(tmp_path, "b.md")


# Real files


def manifest(root: Path, seen: Scan, read_ns: int = READ * 2) -> list[ManifestEntry]:
    """As if each had just been read."""
    return [
        ManifestEntry(
            document_id(DOCS, file.path),
            DOCS,
            file.path,
            read_file(root, file.path, 10_000).state,
            read_ns,
        )
        for file in seen.files
    ]


def whole(root: Path) -> Scan:
    seen = discover(Tree(root))
    assert isinstance(seen, Scan)
    return seen


def test_an_edit_that_keeps_size_and_mtime(tmp_path: Path):
    file = tmp_path / "a.md"
    file.write_text("1234", encoding="utf-8")
    before = after = file.stat()
    # Read so long after the file was written that this alone is no doubt.
    known = manifest(tmp_path, whole(tmp_path), before.st_ctime_ns + SETTLED_NS)
    assert not compared(known, whole(tmp_path))
    while after.st_ctime_ns == before.st_ctime_ns:  # the clock's tick is a few milliseconds
        file.write_text("4321", encoding="utf-8")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        after = file.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert paths(compared(known, whole(tmp_path)).modified) == ["a.md"]


def test_a_look_at_some_paths_changes_nothing_else(tmp_path: Path):
    for name in ("a.md", "b.md", "sub/c.md", "sub/d.md", "sub/deep/e.md", "other/f.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    known = manifest(tmp_path, whole(tmp_path))
    for name in ("b.md", "sub/c.md", "sub/deep/e.md", "other/f.md"):
        (tmp_path / name).unlink()
    (tmp_path / "sub" / "new.md").write_text("new", encoding="utf-8")
    (tmp_path / "other" / "new.md").write_text("new", encoding="utf-8")

    def changed(*hints: str) -> tuple[list[str], list[str]]:
        seen = look(Tree(tmp_path), hints)
        result = compared(known, seen)
        assert result.kept == ()
        return paths(result.added), paths(result.removed)

    assert changed("b.md") == ([], ["b.md"])
    assert changed("a.md") == ([], [])
    assert changed("sub/new.md", "nowhere/at/all.md") == (["sub/new.md"], [])
    assert changed("sub") == (["sub/new.md"], ["sub/c.md", "sub/deep/e.md"])
    assert changed("sub/deep", "sub/deep/e.md") == ([], ["sub/deep/e.md"])
    assert changed("../b.md", "/b.md", "a.md/x.md") == ([], [])
    everything = changed("")
    assert everything == changed(".gitignore")
    assert everything == (
        ["other/new.md", "sub/new.md"],
        ["b.md", "other/f.md", "sub/c.md", "sub/deep/e.md"],
    )


def test_a_look_knows_which_ignore_files_hold_and_that_they_decide(tmp_path: Path):
    for name in ("sub/a.md", "sub/deep/b.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    known = manifest(tmp_path, whole(tmp_path))
    (tmp_path / "sub" / ".gitignore").write_text("deep\n", encoding="utf-8")
    seen = look(Tree(tmp_path), ["sub/deep/b.md"])
    assert paths(compared(known, seen).removed) == ["sub/deep/b.md"]
    seen = look(Tree(tmp_path), ["sub/.gitignore"])
    assert paths(compared(known, seen).removed) == ["sub/deep/b.md"]
    seen = look(Tree(tmp_path), ["sub/deep/b.md"], respect_gitignore=False)
    assert paths(compared(known, seen).removed) == []


def test_a_look_into_a_tree_that_is_away(tmp_path: Path):
    seen = look(Tree(tmp_path / "none"), ["a.md"])
    assert seen == RootUnavailable(tmp_path / "none", RootProblem.MISSING)
    assert not compared([entry("a.md")], seen)
