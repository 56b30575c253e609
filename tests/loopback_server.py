"""A real HTTP server on a loopback port; what it answers is for those who derive from it."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class LoopbackServer:
    """Serves while it is in a `with`: `respond` is given every request."""

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
        """Ends what an answer waits for."""

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.let_go()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
