"""One HTTP address that texts may be sent to, and no other: no proxy, no redirect, by default no
further than this machine.
"""

import http.client
import json
import time
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from ragdocs.errors import ConfigError, EmbeddingError

MAX_ANSWER_BYTES = 64_000_000
FIRST_PAUSE_SECONDS = 0.2
"""Before a batch is sent again; twice as long each time."""
_WORTH_RETRYING = frozenset({429, 500, 502, 503, 504})
_SHOWN_CHARS = 200


class _Failed(Exception):
    """An attempt did not succeed, and another might."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where, how long to wait, how often to try again. Raises ConfigError for a bad address."""

    url: str
    allow_remote: bool = False
    timeout: float = 20.0
    retries: int = 2

    def __post_init__(self) -> None:
        scheme, host = self._parts[:2]
        if scheme not in ("http", "https") or not host:
            raise ConfigError(
                f'embedding.url = "{self.url}" is no HTTP address: provider = "http" needs the one '
                'of a local server, as "http://127.0.0.1:11434/v1" (Ollama) or '
                '"http://127.0.0.1:1234/v1" (LM Studio)'
            )
        if not self.allow_remote and not _is_loopback(host):
            raise ConfigError(
                f'embedding.url = "{self.url}" is not on this machine, and passages and queries '
                "would be sent there. If you want that, set embedding.allow_remote = true in your "
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
        """Before a word is sent: what `localhost` means is decided by this machine's files."""
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
            raise EmbeddingError(f"{self.url} answered with something else than JSON") from error


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
