"""Vectors from an OpenAI-compatible endpoint: Ollama, LM Studio, llama.cpp and others.

Texts are sent to one address only: no proxy, no redirect, by default only on this machine.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from ragdocs.embedding.base import PROBE, ProbedEmbedder, unit
from ragdocs.errors import ConfigError, EmbeddingError

if TYPE_CHECKING:
    from ragdocs.embedding.base import Prefixes, Vectors


MAX_ANSWER_BYTES = 64_000_000
FIRST_PAUSE_SECONDS = 0.2
"""The pause before the first retry; it doubles each time."""
_WORTH_RETRYING = frozenset({429, 500, 502, 503, 504})
_SHOWN_CHARS = 200


class _Failed(Exception):
    """An attempt failed, and another might succeed."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address with its timeout and retries. Raises ConfigError for a bad address."""

    url: str
    allow_remote: bool = False
    timeout: float = 20.0
    retries: int = 2

    def __post_init__(self) -> None:
        scheme, host = self._parts[:2]
        if scheme not in ("http", "https") or not host:
            raise ConfigError(
                f'embedding.url = "{self.url}" is not an HTTP address: provider = "http" needs the '
                'address of a local server, such as "http://127.0.0.1:11434/v1" (Ollama) or '
                '"http://127.0.0.1:1234/v1" (LM Studio)'
            )
        if not self.allow_remote and not _is_loopback(host):
            raise ConfigError(
                f'embedding.url = "{self.url}" is not on this machine, and passages and queries '
                "would be sent there. To allow this, set embedding.allow_remote = true in your "
                "own configuration file, or RAGDOCS_EMBEDDING__ALLOW_REMOTE=true"
            )

    @property
    def _parts(self) -> tuple[str, str, int | None, str]:
        try:
            parts = urlsplit(self.url)
            if parts.username is not None or parts.query or parts.fragment:
                return "", "", None, ""
            return parts.scheme, parts.hostname or "", parts.port, parts.path.rstrip("/")
        except ValueError:
            return "", "", None, ""

    def post(self, path: str, body: dict[str, object]) -> object:
        """The answer's JSON, after as many attempts as are allowed. Raises EmbeddingError."""
        for attempt in range(self.retries + 1):
            try:
                return self._attempt(path, json.dumps(body).encode())
            except _Failed as error:
                if attempt == self.retries:
                    raise EmbeddingError(
                        f"the embedding endpoint {self.url} {error}, {attempt + 1} times. Start "
                        'its server, correct embedding.url, or set provider = "builtin"'
                    ) from error
                time.sleep(FIRST_PAUSE_SECONDS * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, path: str, body: bytes) -> object:
        _, _, _, base = self._parts
        connection = self._connection()
        try:
            connection.connect()
            self._check_peer(connection)
            headers = {"Content-Type": "application/json", "Accept": "application/json"}
            connection.request("POST", base + path, body, headers)
            answer = connection.getresponse()
            text = answer.read(MAX_ANSWER_BYTES + 1)
        except TimeoutError as error:
            raise _Failed(f"did not answer within {self.timeout:g} s") from error
        except (OSError, http.client.HTTPException) as error:
            raise _Failed(f"cannot be reached ({error or type(error).__name__})") from error
        finally:
            connection.close()
        return self._read(answer.status, text)

    def _connection(self) -> http.client.HTTPConnection:
        scheme, host, port, _ = self._parts
        kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
        return kind(host, port, timeout=self.timeout)

    def _check_peer(self, connection: http.client.HTTPConnection) -> None:
        """Called before anything is sent: this machine's files decide what `localhost` means."""
        peer = str(connection.sock.getpeername()[0])
        if not self.allow_remote and not _is_loopback(peer):
            raise EmbeddingError(f"{self.url} leads to {peer}, which is not this machine")

    def _read(self, status: int, text: bytes) -> object:
        said = " ".join(text[:_SHOWN_CHARS].decode("utf-8", "replace").split())
        if status in _WORTH_RETRYING:
            raise _Failed(f"answered with status {status} ({said})")
        if status != 200:
            raise EmbeddingError(
                f"the embedding endpoint {self.url} answered with status {status} ({said}). "
                "Check embedding.url and embedding.model: is that model loaded there?"
            )
        if len(text) > MAX_ANSWER_BYTES:
            raise EmbeddingError(f"{self.url} answered with more than {MAX_ANSWER_BYTES} bytes")
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise EmbeddingError(f"{self.url} answered with something other than JSON") from error


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


# The embedder. It knows only the model's name and dimension, which it reads from the first answer.

FORGET_FAILURE_SECONDS = 5.0
"""After a failure the dimension is not requested again for this long."""


class HttpEmbedder(ProbedEmbedder):
    """A model behind an endpoint; each call opens its own connection."""

    def __init__(
        self, endpoint: Endpoint, model: str, prefixes: Prefixes, batch_size: int = 32
    ) -> None:
        super().__init__(prefixes)
        self._endpoint = endpoint
        self._model = model
        self._batch_size = batch_size
        self._failed_at = float("-inf")

    @property
    def name(self) -> str:
        return f"{self._model} at {self._endpoint.url}"

    @property
    def identity(self) -> str:
        """With the dimension: a server may serve another model under the same name."""
        return (
            f"http:{self._endpoint.url.rstrip('/')}:{self._model}:{self.dimension}:"
            f"{self._prefixes.identity}"
        )

    def load(self) -> None:
        with self._lock:
            self._probe()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        self.load()
        prefixed = [self._prefixes.passage + text for text in texts]
        rows = [
            self._embed(prefixed[start : start + self._batch_size])
            for start in range(0, len(prefixed), self._batch_size)
        ]
        self._count(len(texts))
        empty = np.empty((0, self._dimension), dtype=np.float32)
        return np.concatenate([empty, *rows])

    def embed_query(self, text: str) -> Vectors:
        self.load()
        return self._embed([self._prefixes.query + text])[0]

    def _learn(self) -> None:
        with self._lock:
            has_failed = time.monotonic() - self._failed_at < FORGET_FAILURE_SECONDS
            if has_failed and not self._dimension:
                raise EmbeddingError(
                    f"{self._endpoint.url} did not answer a moment ago, and is not tried again yet"
                )
            self._probe()

    def _probe(self) -> None:
        if not self._dimension:
            try:
                self._dimension = self._ask([PROBE]).shape[1]
            except EmbeddingError:
                self._failed_at = time.monotonic()
                raise

    def _embed(self, texts: Sequence[str]) -> Vectors:
        vectors = self._ask(texts)
        if vectors.shape[1] != self._dimension:
            was, self._dimension = self._dimension, 0
            raise EmbeddingError(
                f"{self.name} now returns vectors of {vectors.shape[1]} numbers instead of {was}: "
                "it is another model, so all texts are embedded again"
            )
        return vectors

    def _ask(self, texts: Sequence[str]) -> Vectors:
        answer = self._endpoint.post("/embeddings", {"model": self._model, "input": list(texts)})
        try:
            return _vectors(answer, len(texts))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise EmbeddingError(
                f"{self.name} did not return one vector for each text ({error}). Is it an "
                "OpenAI-compatible endpoint with an embedding model?"
            ) from error


def _vectors(answer: object, count: int) -> Vectors:
    """Unit vectors in the order of the texts. Raises for any other answer."""
    import numpy as np

    entries = cast("list[dict[str, object]]", cast("dict[str, object]", answer)["data"])
    ordered = {int(cast("int", one["index"])): one["embedding"] for one in entries}
    if len(entries) != count or set(ordered) != set(range(count)):
        raise ValueError(f"{len(entries)} vectors for {count} texts")
    vectors = np.array([ordered[at] for at in range(count)], dtype=np.float32)
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise ValueError("a vector must be a list of numbers")
    if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
        raise ValueError("a vector is all zeros or has values that are not finite")
    return unit(vectors)
