from __future__ import annotations

import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from inquest._session import ForkSafeSession, exporter_session


def test_a_forked_child_opens_its_own_connection() -> None:
    seen: list[tuple[str, int]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            seen.append((self.path, self.client_address[1]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    session = ForkSafeSession()
    session.get(url + "/parent")
    pid = os.fork()
    if pid == 0:
        try:
            session.get(url + "/child")
            session.get(url + "/child")
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    session.get(url + "/parent")
    server.shutdown()
    server.server_close()
    ports = {path: {port for at, port in seen if at == path} for path in ("/parent", "/child")}
    assert len(ports["/parent"]) == len(ports["/child"]) == 1, "connections are not kept"
    assert ports["/parent"] != ports["/child"]


def test_provider_of_credentials_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(exporter_session(), ForkSafeSession)
    monkeypatch.setenv("OTEL_PYTHON_EXPORTER_OTLP_HTTP_TRACES_CREDENTIAL_PROVIDER", "own")
    assert exporter_session() is None
