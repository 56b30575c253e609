"""An endpoint's vectors: asked as the settings say, believed only when they can be vectors."""

import socket
import threading
import time

import numpy as np
import pytest

from ragdocs.config.settings import EmbeddingConfig
from ragdocs.embedding.base import Prefixes
from ragdocs.embedding.http import Endpoint, HttpEmbedder
from ragdocs.embedding.providers import make_embedder
from ragdocs.errors import ConfigError, EmbeddingError
from tests.support.http_servers import EmbeddingServer
from tests.support.models import WordModel


@pytest.fixture
def server():
    with EmbeddingServer() as running:
        yield running


def embedder(server, model="words", **options):
    prefixes = options.pop("prefixes", Prefixes())
    batch_size = options.pop("batch_size", 32)
    return HttpEmbedder(Endpoint(server.url, **options), model, prefixes, batch_size)


def texts_sent(server):
    return [text for body in server.requests[1:] for text in body["input"]]  # after the probe


def test_vectors_are_the_models_in_order_and_of_unit_length(server):
    made = embedder(server, batch_size=3)
    texts = [f"text number {number}" for number in range(8)]
    vectors = made.embed_documents(texts)
    assert np.allclose(vectors, np.stack([WordModel("words").embed(text) for text in texts]))
    assert made.dimension == vectors.shape[1] == 16
    assert [len(body["input"]) for body in server.requests] == [1, 3, 3, 2]
    assert {body["model"] for body in server.requests} == {"words"}
    assert set(server.paths) == {"/v1/embeddings"}
    assert made.counts.texts == 8
    assert made.embed_documents([]).shape == (0, 16)


def test_prefixes_come_before_what_they_are_for(server):
    made = embedder(server, prefixes=Prefixes("find: ", "note: "))
    made.embed_documents(["a"])
    made.embed_query("b")
    assert texts_sent(server) == ["note: a", "find: b"]


def test_the_identity_tells_models_addresses_prefixes_and_dimensions_apart(server):
    with EmbeddingServer(dimension=8) as small:
        made = [
            embedder(server),
            embedder(server, model="others"),
            embedder(server, prefixes=Prefixes(query="find: ")),
            embedder(small),
        ]
        identities = [one.identity for one in made]
        again = embedder(server).identity
    assert len(set(identities)) == 4
    assert again == identities[0]


def test_a_failing_server_is_asked_again_and_then_given_up(server):
    server.failures = [503, 500]
    assert embedder(server, retries=2).embed_query("a").shape == (16,)
    server.failures = [503, 503, 503]
    with pytest.raises(EmbeddingError, match=r"status 503.*3 times.*builtin"):
        embedder(server, retries=2).load()


def test_a_request_that_is_wrong_is_not_repeated(server):
    server.failures = [404]
    with pytest.raises(EmbeddingError, match=r"404.*embedding\.model"):
        embedder(server).load()
    assert len(server.requests) == 1


def test_a_redirect_is_not_followed(server):
    server.failures = [307]
    with pytest.raises(EmbeddingError, match="307"):
        embedder(server).load()
    assert server.paths == ["/v1/embeddings"]


def test_no_server_is_one_error_in_good_time():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = Endpoint(f"http://127.0.0.1:{unused.getsockname()[1]}/v1", retries=1)
        made = HttpEmbedder(endpoint, "words", Prefixes())
        began = time.monotonic()
        with pytest.raises(EmbeddingError, match=r"cannot be reached.*2 times"):
            made.load()
        assert made.dimension == 0
        assert time.monotonic() - began < 10


def test_a_server_that_hangs_is_left_after_the_timeout(server):
    server.hold = threading.Event()
    with pytest.raises(EmbeddingError, match=r"within 0\.2 s"):
        embedder(server, timeout=0.2, retries=0).load()


def test_a_server_that_comes_later_is_used(server):
    made = embedder(server, retries=0)
    server.failures = [503]
    with pytest.raises(EmbeddingError):
        made.load()
    made.load()
    assert made.dimension == 16


def test_another_model_under_the_same_name_is_noticed(server):
    made = embedder(server)
    before = made.identity
    server.dimension = 8
    with pytest.raises(EmbeddingError, match="another model"):
        made.embed_documents(["a"])
    assert made.embed_documents(["a"]).shape == (1, 8)
    assert made.identity != before


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        b"[" * 100_000,
        [],
        {"data": []},
        {"data": [{"index": 1, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": "text"}]},
        {"data": [{"index": 0, "embedding": [0.0, 0.0]}]},
        {"data": [{"index": 0, "embedding": [None, 1.0]}]},
        b'{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}',
        {"data": [{"index": 0, "embedding": [[1.0], [2.0]]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]},
        {"data": 3},
    ],
)
def test_what_is_no_vector_is_not_taken_for_one(server, answer):
    server.answer = answer
    with pytest.raises(EmbeddingError):
        embedder(server).load()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:11434",
        "ftp://127.0.0.1/v1",
        "http://",
        "http://a:b@127.0.0.1/",
        "http://[::1",
    ],
)
def test_what_is_no_address_is_refused(url):
    with pytest.raises(ConfigError, match=r"embedding\.url"):
        Endpoint(url)


@pytest.mark.parametrize(
    "url", ["http://10.0.0.5:11434/v1", "https://api.example.com/v1", "http://localhost.example/v1"]
)
def test_another_machine_is_refused_unless_the_user_says_so(url):
    with pytest.raises(ConfigError, match="allow_remote"):
        Endpoint(url)
    Endpoint(url, allow_remote=True)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"])
def test_this_machine_is_allowed_by_any_of_its_names(host):
    assert not Endpoint(f"http://{host}:1234/v1").allow_remote


def test_a_local_name_that_leads_elsewhere_is_sent_nothing(server, monkeypatch):
    connect = socket.create_connection

    class Elsewhere(socket.socket):
        def getpeername(self):
            return ("192.0.2.1", 80)

    def resolved(*arguments, **options):
        found = connect(*arguments, **options)
        return Elsewhere(fileno=found.detach())

    monkeypatch.setattr(socket, "create_connection", resolved)
    with pytest.raises(EmbeddingError, match="not this machine"):
        embedder(server).load()
    assert server.requests == []


def test_the_settings_make_it(server):
    made = make_embedder(
        EmbeddingConfig(provider="http", url=server.url, model="nomic-embed-text", batch_size=2)
    )
    made.embed_documents(["a", "b", "c"])
    made.embed_query("d")
    assert texts_sent(server) == [
        *(f"search_document: {text}" for text in "abc"),
        "search_query: d",
    ]
