"""Real HTTP servers on a loopback port: an endpoint that embeds, and a small Hub of models."""

import json
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.models import WordModel


class LoopbackServer:
    """Serves inside a `with`; `respond` gets every request."""

    def __init__(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.respond(self)

            do_HEAD = do_POST = do_GET

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}"

    def respond(self, handler):
        raise NotImplementedError

    def let_go(self):
        """Releases every answer that is held back."""

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.let_go()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


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


COMMIT = "0123456789abcdef0123456789abcdef01234567"


class HubServer(LoopbackServer):
    """Serves `folder` as the model `name`; `asked` are the paths.

    Of the file `stops_in` only the first half is sent: then nothing more comes until `goes_on` is
    set, or, when `cuts` is set, the connection ends.
    """

    def __init__(self, name: str, folder: Path):
        super().__init__()
        self.asked = []
        self.commit = COMMIT
        self.stops_in = ""
        self.cuts = False
        self.goes_on = threading.Event()
        self.is_stopped = threading.Event()
        self.name = name
        self.folder = folder

    def files(self):
        found = (file for file in self.folder.rglob("*") if file.is_file())
        return {file.relative_to(self.folder).as_posix(): file for file in sorted(found)}

    def respond(self, handler):
        with_body = handler.command == "GET"
        path = handler.path.partition("?")[0]
        self.asked.append(path)
        status, body, headers = self.answer(path)
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        if with_body and self.stops_in and path.endswith(f"/{self.stops_in}"):
            self.send_half(handler, body)
        elif with_body:
            handler.wfile.write(body)

    def send_half(self, handler, body):
        handler.wfile.write(body[: len(body) // 2])
        handler.wfile.flush()
        self.is_stopped.set()
        if self.cuts:
            handler.connection.close()
        else:
            self.goes_on.wait(60)

    def answer(self, path):
        file = self.files().get(path.partition(f"/{self.name}/resolve/{self.commit}/")[2])
        if file is not None:
            body = file.read_bytes()
            headers = {"ETag": f'"{sha256(body).hexdigest()}"', "X-Repo-Commit": self.commit}
            return 200, body, headers
        if path in (f"/api/models/{self.name}", f"/api/models/{self.name}/revision/main"):
            siblings = [{"rfilename": name} for name in self.files()]
            info = {"id": self.name, "modelId": self.name, "sha": self.commit, "siblings": siblings}
            return 200, json.dumps(info).encode(), {"Content-Type": "application/json"}
        if path == f"/api/models/{self.name}/tree/{self.commit}":
            tree = [
                {"type": "file", "path": name, "size": file.stat().st_size, "oid": self.commit}
                for name, file in self.files().items()
            ]
            return 200, json.dumps(tree).encode(), {"Content-Type": "application/json"}
        return 404, b"{}", {"X-Error-Code": "RepoNotFound"}

    def let_go(self):
        self.goes_on.set()
