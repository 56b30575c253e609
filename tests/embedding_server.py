"""A real HTTP server that embeds as OpenAI's endpoint does, with the tiny word model."""

import json

from tests.loopback_server import LoopbackServer
from tests.word_vectors import WordModel


class EmbeddingServer(LoopbackServer):
    """`requests` are the bodies that came in. `failures` are statuses to answer with first, one for
    each request. `answer` replaces the answer; `hold` keeps it back until it is set.
    """

    def __init__(self, dimension=16):
        super().__init__()
        self.requests = []
        self.paths = []
        self.failures = []
        self.answer = None
        self.dimension = dimension
        self.hold = None

    @property
    def url(self):
        return f"{super().url}/v1"

    def respond(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        self.requests.append(body)
        self.paths.append(handler.path)
        if self.hold is not None:
            self.hold.wait(30)
        status = self.failures.pop(0) if self.failures else 200
        found = self.embedded(body) if self.answer is None else self.answer
        text = found if isinstance(found, bytes) else json.dumps(found).encode()
        handler.send_response(status)
        if 300 <= status < 400:
            handler.send_header("Location", f"{self.url}/elsewhere")
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def embedded(self, body):
        model = WordModel(body["model"])
        vectors = [model.embed(text).tolist()[: self.dimension] for text in body["input"]]
        entries = [
            # Not of unit length and in another order, as the standard allows.
            {"object": "embedding", "index": at, "embedding": [3 * number for number in vector]}
            for at, vector in enumerate(vectors)
        ]
        return {"object": "list", "data": entries[::-1], "model": body["model"]}

    def let_go(self):
        if self.hold is not None:
            self.hold.set()
