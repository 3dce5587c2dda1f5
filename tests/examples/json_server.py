"""Servers of the tests that answer in JSON."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

Server = TypeVar("Server", bound=ThreadingHTTPServer)


class JsonAnswers(BaseHTTPRequestHandler):
    """Handler that sends objects as JSON, reads them, and writes no log."""

    protocol_version = "HTTP/1.1"

    def answer(self, code: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self) -> bytes:
        """Return what was sent with the request."""
        return self.rfile.read(int(self.headers["Content-Length"]))

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Serve in a thread until the block ends."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
