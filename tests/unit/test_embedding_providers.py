"""Which embedder the settings name, without any extra: what is missing is said when it is used."""

from importlib.util import find_spec

import pytest

from ragdocs.config.loading import load_config, read_config
from ragdocs.config.settings import EmbeddingConfig
from ragdocs.embedding.base import Pieces, combine, cut_to_fit
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.embedding.providers import make_embedder
from ragdocs.errors import ConfigError, ModelMissing
from tests.support.machine import trust_files

without = pytest.mark.skipif(
    find_spec("sentence_transformers") is not None, reason="the extras are installed here"
)


def test_the_built_in_one_is_the_default():
    assert isinstance(make_embedder(EmbeddingConfig()), BuiltinEmbedder)
    with pytest.raises(ConfigError, match="huggingface"):
        make_embedder(EmbeddingConfig(model="BAAI/bge-small-en-v1.5"))


@without
@pytest.mark.parametrize(
    ("settings", "extra"),
    [
        ({"provider": "huggingface", "model": "BAAI/bge-small-en-v1.5"}, "huggingface"),
        ({"provider": "huggingface", "model": "/nowhere"}, "huggingface"),
        ({"provider": "llama-index", "class_name": "some:Thing"}, "llama-index"),
    ],
)
def test_a_missing_extra_is_named_and_does_not_stop_the_rest(settings, extra, tmp_path):
    made = make_embedder(EmbeddingConfig(**settings, cache_folder=tmp_path))
    assert made.identity
    assert made.dimension == 0
    with pytest.raises(ModelMissing, match=rf"mcp-markdown-ragdocs\[{extra}\]"):
        made.load()


def test_a_class_and_its_arguments_in_a_file(tmp_path):
    (tmp_path / ".ragdocs.toml").write_text(
        '[embedding]\nprovider = "llama-index"\nclass = "some.module:Thing"\n'
        '[embedding.arguments]\nname = "x"\nsize = 3\nmore = { deep = true }\n',
        encoding="utf-8",
    )
    trust_files(tmp_path, {"HOME": str(tmp_path)})
    reading = read_config(cwd=tmp_path, environ={"HOME": str(tmp_path)})
    assert reading.config is not None, reading.problems
    assert reading.config.embedding.class_name == "some.module:Thing"
    assert reading.config.embedding.arguments == {"name": "x", "size": 3, "more": {"deep": True}}
    environ = {"HOME": str(tmp_path), "RAGDOCS_EMBEDDING__ARGUMENTS": '{ name = "y" }'}
    config = load_config(cwd=tmp_path, environ=environ)
    assert config.embedding.arguments["name"] == "y"
    assert [one.key for one in config.in_force() if "arguments" in one.key]


def test_a_text_within_the_window_is_one_piece():
    assert cut_to_fit("ab cd", [2, 5], 2) == Pieces(("ab cd",))


def test_a_longer_one_is_cut_where_tokens_end_and_loses_nothing():
    text = "one two three four five"
    pieces = cut_to_fit(text, [3, 7, 13, 18, 23], 2)
    assert "".join(pieces.texts) == text
    assert all(len(piece.split()) <= 2 for piece in pieces.texts)
    assert (pieces.counts.split_texts, pieces.counts.cut_texts) == (1, 0)


def test_what_is_beyond_the_last_window_is_counted():
    text = "ab " * 100
    pieces = cut_to_fit(text, [3 * at + 2 for at in range(100)], 2)
    assert len(pieces.texts) == 16
    assert pieces.cut_characters == len(text[32 * 3 - 1 :].strip())


def test_a_texts_vector_is_the_mean_of_its_pieces_by_their_length():
    import numpy as np

    vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    rows = combine(vectors, [Pieces(("a",)), Pieces(("abc", "d"))])
    assert np.allclose(rows, [[1, 0], [3 / 10**0.5, 1 / 10**0.5]])
