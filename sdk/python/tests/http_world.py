"""Servers and clients for the tests of HTTP phases."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Optional

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from inquest.http_client import (
    aiohttp_ssl_context,
    aiohttp_trace_config,
    async_httpx_transport,
    httpx_transport,
    requests_adapter,
)

aiohttp = pytest.importorskip("aiohttp")
httpx = pytest.importorskip("httpx")
requests = pytest.importorskip("requests")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _send(self, body: bytes, status: int = 200, length: Optional[int] = None, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def do_GET(self) -> None:
        if self.path == "/slow":
            time.sleep(0.08)
            self._send(b"late")
        elif self.path == "/hang":
            time.sleep(1.0)
        elif self.path == "/cut":
            self._send(b"only this", length=100)
            self.close_connection = True
        elif self.path == "/redirect":
            self._send(b"", status=302, Location="/ok")
        elif self.path == "/503":
            self._send(b"busy", status=503)
        elif self.path == "/trickle":
            self.send_response(200)
            self.send_header("Content-Length", "30")
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(3):
                    self.wfile.write(b"x" * 10)
                    self.wfile.flush()
                    time.sleep(0.05)
        else:
            self._send(json.dumps({k.lower(): v for k, v in self.headers.items()}).encode())


class QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients that break off are what is tested


def serve(context: Optional[ssl.SSLContext] = None) -> Iterator[str]:
    server = QuietServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"{'https' if context else 'http'}://localhost:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


class Result:
    """What the requests of a test left: client spans in order, each with its phases in order."""

    def __init__(self, spans: list[ReadableSpan]) -> None:
        phase_names = [s for s in spans if s.name.startswith("http.")]
        self.clients = sorted((s for s in spans if s not in phase_names), key=lambda s: s.start_time or 0)
        self.children = {
            s.context.span_id: sorted(
                (p for p in phase_names if p.parent and s.context and p.parent.span_id == s.context.span_id),
                key=lambda p: (p.start_time or 0, p.end_time or 0),
            )
            for s in self.clients
            if s.context
        }
        assert sum(len(c) for c in self.children.values()) == len(phase_names), "a phase without a request"
        for s in self.clients:
            assert s.kind is trace.SpanKind.CLIENT
            for p in self._phases(s):
                assert p.start_time is not None and p.end_time is not None and s.end_time is not None
                assert (s.start_time or 0) <= p.start_time <= p.end_time <= s.end_time

    def _phases(self, client: ReadableSpan) -> list[ReadableSpan]:
        assert client.context is not None
        return self.children[client.context.span_id]

    def phases(self, request: int = 0) -> list[str]:
        return [p.name[5:] for p in self._phases(self.clients[request]) if p.name != "http.pool"]

    def seconds(self, phase: str, request: int = 0) -> float:
        found = [p for p in self._phases(self.clients[request]) if p.name == f"http.{phase}"]
        return sum(((p.end_time or 0) - (p.start_time or 0)) / 1e9 for p in found)

    def attributes(self, request: int = 0) -> dict[str, Any]:
        return dict(self.clients[request].attributes or {})

    def failed(self, request: int = 0) -> list[str]:
        """Phases whose own span has the error."""
        bad = [
            p for p in self._phases(self.clients[request]) if p.status.status_code is trace.StatusCode.ERROR
        ]
        assert all((p.attributes or {}).get("error.type") for p in bad)
        return [p.name[5:] for p in bad]


Answer = tuple[int, bytes]


class Driver:
    """Does requests one after the other in one client; ``stop_after`` bytes it stops reading."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(
        self,
        urls: list[str],
        *,
        ca: Optional[str] = None,
        timeout: float = 5,
        headers: Optional[dict[str, str]] = None,
        data: Optional[bytes] = None,
        stop_early: bool = False,
        fails: bool = False,
        inside: Callable[[], Any] = contextlib.nullcontext,
    ) -> tuple[Result, list[Answer]]:
        exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        self.tracer = provider.get_tracer("test")
        options = {
            "ca": ca,
            "timeout": timeout,
            "headers": headers or {},
            "data": data,
            "stop_early": stop_early,
        }
        answers: list[Answer] = []
        call = getattr(self, "_" + self.name)
        with inside():
            if fails:
                with pytest.raises((OSError, httpx.HTTPError, aiohttp.ClientError)) as caught:
                    call(urls, answers, **options)
                self.error = caught.value
            else:
                call(urls, answers, **options)
        return Result(list(exporter.get_finished_spans())), answers

    def _httpx(self, urls: list[str], answers: list[Answer], **o: Any) -> None:
        verify = ssl.create_default_context(cafile=o["ca"]) if o["ca"] else True
        transport = httpx_transport(httpx.HTTPTransport(verify=verify), tracer=self.tracer)
        with httpx.Client(transport=transport, timeout=o["timeout"], follow_redirects=True) as client:
            for url in urls:
                method = "POST" if o["data"] else "GET"
                with client.stream(method, url, headers=o["headers"], content=o["data"]) as r:
                    body = next(r.iter_raw()) if o["stop_early"] else r.read()
                answers.append((r.status_code, body))

    def _httpx_async(self, urls: list[str], answers: list[Answer], **o: Any) -> None:
        async def main() -> None:
            verify = ssl.create_default_context(cafile=o["ca"]) if o["ca"] else True
            transport = async_httpx_transport(httpx.AsyncHTTPTransport(verify=verify), tracer=self.tracer)
            client = httpx.AsyncClient(transport=transport, timeout=o["timeout"], follow_redirects=True)
            async with client:
                for url in urls:
                    method = "POST" if o["data"] else "GET"
                    async with client.stream(method, url, headers=o["headers"], content=o["data"]) as r:
                        body = await r.aiter_raw().__anext__() if o["stop_early"] else await r.aread()
                    answers.append((r.status_code, body))

        asyncio.run(main())

    def _requests(self, urls: list[str], answers: list[Answer], **o: Any) -> None:
        with requests.Session() as session:
            for scheme in ("http://", "https://"):
                session.mount(scheme, requests_adapter(tracer=self.tracer))
            session.trust_env = False
            for url in urls:
                r = session.request(
                    "POST" if o["data"] else "GET",
                    url,
                    headers=o["headers"],
                    data=o["data"],
                    timeout=o["timeout"],
                    verify=o["ca"] or True,
                    stream=True,
                )
                with r:
                    answers.append(
                        (r.status_code, next(r.iter_content(10)) if o["stop_early"] else r.content)
                    )

    def _aiohttp(self, urls: list[str], answers: list[Answer], **o: Any) -> None:
        async def main() -> None:
            connector = aiohttp.TCPConnector(ssl=aiohttp_ssl_context(o["ca"]), ttl_dns_cache=0)
            async with aiohttp.ClientSession(
                trace_configs=[aiohttp_trace_config(tracer=self.tracer)],
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=o["timeout"]),
            ) as session:
                for url in urls:
                    method = "POST" if o["data"] else "GET"
                    async with session.request(method, url, headers=o["headers"], data=o["data"]) as r:
                        body = await r.content.read(10) if o["stop_early"] else await r.read()
                        answers.append((r.status, body))

        asyncio.run(main())
