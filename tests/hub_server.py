"""A small Hub on a loopback port: one model, its files served as the real one serves them."""

import json
import threading
from hashlib import sha256
from pathlib import Path

from tests.loopback_server import LoopbackServer

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
