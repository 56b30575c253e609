import pytest

from ragdocs.indices.scopes import Scopes, few_left_out
from ragdocs.search.requests import Filters, to_filter
from ragdocs.store.reader import Reader
from tests.support.stores import Corpus

TEXTS = {
    "guide/a.md": "# A\n\n```python\nx = 1\n```\n",
    "guide/b.md": "# B\n\nWords.\n",
    "other/c.md": "# C\n\n```py\ny = 2\n```\n",
}


@pytest.fixture
def corpus(tmp_path):
    return Corpus(tmp_path, TEXTS)


def found(corpus, scopes, **filters):
    with Reader.open(corpus.folder) as reader, reader.snapshot() as snapshot:
        scope = scopes.of(snapshot, to_filter(Filters(**filters)))
    return None if scope is None else {doc_id.removeprefix("docs:") for doc_id in scope}


def test_no_filter_is_every_document(corpus):
    assert found(corpus, Scopes()) is None
    assert found(corpus, Scopes(), language=" ") is None


def test_filters_and_language_narrow_together(corpus):
    scopes = Scopes()
    assert found(corpus, scopes, paths=("guide",)) == {"guide/a.md", "guide/b.md"}
    assert found(corpus, scopes, language="python") == {"guide/a.md", "other/c.md"}
    assert found(corpus, scopes, paths=("guide",), language="py") == {"guide/a.md"}


def test_edits_are_followed(corpus):
    scopes = Scopes()
    assert found(corpus, scopes, paths=("other",)) == {"other/c.md"}
    corpus.update({"other/d.md": "# D\n"}, removed=("other/c.md",))
    assert found(corpus, scopes, paths=("other",)) == {"other/d.md"}
    assert found(corpus, scopes, paths=("guide",)) == {"guide/a.md", "guide/b.md"}


def test_what_few_filters_leave_out_is_known_and_follows_edits_too(corpus):
    scopes, filters = Scopes(), to_filter(Filters(excluded_files=("c.md",)))

    def left_out():
        with Reader.open(corpus.folder) as reader, reader.snapshot() as snapshot:
            return few_left_out(scopes.of(snapshot, filters))

    assert left_out() == {"docs:other/c.md"}
    corpus.update({"c.md": "# Another\n", "d.md": "# D\n"})
    assert left_out() == {"docs:other/c.md", "docs:c.md"}
    with Reader.open(corpus.folder) as reader, reader.snapshot() as snapshot:
        assert few_left_out(scopes.of(snapshot, to_filter(Filters(paths=("other",))))) is None
