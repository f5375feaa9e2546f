"""Phases of HTTP requests, against real servers on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from opentelemetry import baggage, trace
from opentelemetry import context as otel_context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from inquest.http_client import (
    aiohttp_ssl_context,
    aiohttp_trace_config,
    async_httpx_transport,
    httpx_transport,
    instrument,
    requests_adapter,
)

aiohttp = pytest.importorskip("aiohttp")
httpx = pytest.importorskip("httpx")
requests = pytest.importorskip("requests")
trustme = pytest.importorskip("trustme")


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


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    yield from serve()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str]:
    ca = trustme.CA()
    path: Path = tmp_path_factory.mktemp("ca") / "ca.pem"
    ca.cert_pem.write_to_path(str(path))
    return ca, str(path)


@pytest.fixture(scope="module")
def secure(authority: tuple[Any, str]) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority[0].issue_cert("localhost").configure_cert(context)
    yield from serve(context)


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


@pytest.fixture(params=["httpx", "httpx_async", "requests", "aiohttp"])
def driver(request: pytest.FixtureRequest) -> Driver:
    return Driver(request.param)


def test_plain(driver: Driver, plain: str) -> None:
    result, answers = driver.run([plain + "/slow"])
    assert answers == [(200, b"late")]
    assert result.phases() == ["dns", "connect", "send", "first_byte", "body"]
    assert 0.05 <= result.seconds("first_byte") < 2
    a = result.attributes()
    assert (a["http.request.method"], a["http.response.status_code"], a["server.address"]) == (
        "GET",
        200,
        "localhost",
    )
    assert (a["http.connection.reused"], a["http.response.body.size"], a["url.full"]) == (
        False,
        4,
        plain + "/slow",
    )
    assert a["network.protocol.version"] == "1.1"
    assert a["http.phase.first_byte.seconds"] == pytest.approx(result.seconds("first_byte"), abs=1e-6)
    assert result.failed() == []
    assert "http.failed_phase" not in a


def test_tls(driver: Driver, secure: str, authority: tuple[Any, str]) -> None:
    result, answers = driver.run([secure + "/ok"], ca=authority[1])
    assert answers[0][0] == 200
    assert result.phases() == ["dns", "connect", "tls", "send", "first_byte", "body"]
    assert result.seconds("tls") > 0


def test_pooled_connection_has_no_connect_span(
    driver: Driver, secure: str, authority: tuple[Any, str]
) -> None:
    result, _ = driver.run([secure + "/ok"] * 3, ca=authority[1])
    assert result.phases(0)[:3] == ["dns", "connect", "tls"]
    for later in (1, 2):
        assert result.phases(later) == ["send", "first_byte", "body"]
        assert result.attributes(later)["http.connection.reused"] is True


def test_request_with_a_body(driver: Driver, plain: str) -> None:
    result, answers = driver.run([plain + "/ok"], data=b"x" * 300_000)
    assert json.loads(answers[0][1])["content-length"] == "300000"
    assert result.phases() == ["dns", "connect", "send", "first_byte", "body"]


def test_slow_body(driver: Driver, plain: str) -> None:
    result, answers = driver.run([plain + "/trickle"])
    assert answers == [(200, b"x" * 30)]
    assert result.seconds("body") >= 0.05
    assert result.seconds("first_byte") < 0.09
    assert "http.body.complete" not in result.attributes()


def test_body_not_read_to_its_end(driver: Driver, plain: str) -> None:
    result, answers = driver.run([plain + "/trickle"], stop_early=True)
    assert answers[0][1] == b"x" * 10
    assert result.attributes()["http.body.complete"] is False
    assert result.failed() == []


def test_status_of_failure(driver: Driver, plain: str) -> None:
    result, _ = driver.run([plain + "/503"])
    assert result.clients[0].status.status_code is trace.StatusCode.ERROR
    assert result.attributes()["error.type"] == "503"
    assert result.failed() == []


def test_redirect(driver: Driver, plain: str) -> None:
    result, answers = driver.run([plain + "/redirect"])
    assert answers[0][0] == 200
    if driver.name == "aiohttp":  # one request for the library, so one span
        assert result.attributes()["http.request.redirects"] == 1
        assert result.phases().count("first_byte") == 2
    else:
        assert [result.attributes(i)["http.response.status_code"] for i in range(2)] == [302, 200]


def check_failure(driver: Driver, result: Result, phase: str) -> None:
    assert result.failed() == [phase]
    a = result.attributes()
    assert a["http.failed_phase"] == phase
    assert a["error.type"]
    assert result.clients[0].status.status_code is trace.StatusCode.ERROR


def test_unknown_host(driver: Driver) -> None:
    result, _ = driver.run(["http://nowhere.invalid/"], fails=True)
    assert result.phases() == ["dns"]
    check_failure(driver, result, "dns")
    assert "http.connection.reused" not in result.attributes()


def test_refused(driver: Driver) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    result, _ = driver.run([f"http://localhost:{port}/"], fails=True)
    assert result.phases()[0] == "dns"
    assert set(result.phases()[1:]) == {"connect"}
    assert set(result.failed()) == {"connect"}
    assert result.attributes()["http.failed_phase"] == "connect"


def test_connect_timeout(driver: Driver) -> None:
    with socket.socket() as full, contextlib.ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # nobody accepts, so the queue fills and further SYNs are dropped
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        time.sleep(0.05)
        result, _ = driver.run([f"http://localhost:{full.getsockname()[1]}/"], timeout=0.3, fails=True)
    check_failure(driver, result, "connect")
    assert 0.1 < result.seconds("connect") < 2


def test_untrusted_certificate(driver: Driver, secure: str) -> None:
    result, _ = driver.run([secure + "/ok"], fails=True)
    assert result.phases() == ["dns", "connect", "tls"]
    check_failure(driver, result, "tls")


def test_tls_handshake_hangs(driver: Driver, authority: tuple[Any, str]) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        url = f"https://localhost:{silent.getsockname()[1]}/"
        result, _ = driver.run([url], ca=authority[1], timeout=0.3, fails=True)
    assert result.phases() == ["dns", "connect", "tls"]
    check_failure(driver, result, "tls")
    assert result.seconds("tls") > 0.1


def test_no_answer(driver: Driver, plain: str) -> None:
    result, _ = driver.run([plain + "/hang"], timeout=0.2, fails=True)
    check_failure(driver, result, "first_byte")
    assert result.seconds("first_byte") > 0.1


def test_answer_breaks_off(driver: Driver, plain: str) -> None:
    result, _ = driver.run([plain + "/cut"], fails=True)
    check_failure(driver, result, "body")
    assert result.attributes()["http.response.status_code"] == 200


def test_headers(driver: Driver, plain: str) -> None:
    result, answers = driver.run([plain + "/ok"])
    sent = json.loads(answers[0][1])
    context = result.clients[0].context
    assert context is not None
    assert sent["traceparent"][:-2] == f"00-{context.trace_id:032x}-{context.span_id:016x}-"
    assert len(sent["x-request-id"]) == 32
    assert result.attributes()["request.id"] == sent["x-request-id"]


def test_request_id_is_never_rewritten(driver: Driver, plain: str) -> None:
    result, answers = driver.run([plain + "/ok"], headers={"X-Request-Id": "mine"})
    assert json.loads(answers[0][1])["x-request-id"] == "mine"
    assert result.attributes()["request.id"] == "mine"


def test_request_id_from_baggage(driver: Driver, plain: str) -> None:
    @contextlib.contextmanager
    def with_baggage() -> Iterator[None]:
        token = otel_context.attach(baggage.set_baggage("request.id", "r-9"))
        try:
            yield
        finally:
            otel_context.detach(token)

    _, answers = driver.run([plain + "/ok"], inside=with_baggage)
    sent = json.loads(answers[0][1])
    assert sent["x-request-id"] == "r-9"
    assert "request.id=r-9" in sent["baggage"]


def test_span_of_another_instrumentation_is_used(plain: str) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("other")
    with (
        httpx.Client(transport=httpx_transport(tracer=tracer)) as client,
        tracer.start_as_current_span(
            "GET", kind=trace.SpanKind.CLIENT, attributes={"http.request.method": "GET"}
        ) as outer,
    ):
        client.get(plain + "/ok")
        assert outer.is_recording()
    assert [s.name for s in exporter.get_finished_spans()][-1] == "GET"
    assert all(s.parent == outer.get_span_context() for s in exporter.get_finished_spans()[:-1])


def test_secrets_stay_out_of_the_url(plain: str) -> None:
    result, _ = Driver("requests").run([plain.replace("://", "://me:pw@") + "/ok?a=1&sig=abc"])
    assert result.attributes()["url.full"] == plain + "/ok?a=1&sig=REDACTED"


def test_instrument_existing_clients(plain: str) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    seen: list[str] = []

    session = requests.Session()
    client = httpx.Client()
    asynchronous = httpx.AsyncClient()
    for c in (session, client, asynchronous, client):
        instrument(c, tracer=tracer)
    assert session.get(plain + "/ok").status_code == 200
    assert (
        client.get(plain + "/ok", extensions={"trace": lambda name, info: seen.append(name)}).status_code
        == 200
    )

    async def main() -> None:
        async with asynchronous:
            assert (await asynchronous.get(plain + "/ok")).status_code == 200

    asyncio.run(main())
    session.close()
    client.close()
    result = Result(list(exporter.get_finished_spans()))
    assert [result.phases(i) for i in range(3)] == [["dns", "connect", "send", "first_byte", "body"]] * 3
    assert "connection.connect_tcp.started" in seen
    with pytest.raises(TypeError, match="cannot instrument"):
        instrument(object())


def test_address_has_no_dns_phase(driver: Driver, plain: str) -> None:
    if driver.name == "requests":
        pytest.skip("urllib3 resolves addresses too; it takes no time")
    result, _ = driver.run([plain.replace("localhost", "127.0.0.1") + "/ok"])
    assert result.phases() == ["connect", "send", "first_byte", "body"]


def test_second_address_is_tried(plain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = socket.getaddrinfo

    def two(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        found = resolve("127.0.0.1", port, *args, **kwargs)
        if host != "localhost":
            return resolve(host, port, *args, **kwargs)
        return [(*f[:4], ("127.0.0.9", f[4][1])) for f in found] + found

    monkeypatch.setattr(socket, "getaddrinfo", two)
    for name in ("httpx", "httpx_async", "requests"):
        result, answers = Driver(name).run([plain + "/ok"])
        assert answers[0][0] == 200
        assert "http.failed_phase" not in result.attributes()
        if name != "httpx_async":  # its attempts overlap, and are one phase
            assert result.failed() == ["connect"]
            assert result.phases().count("connect") == 2


def test_wait_for_the_pool_is_a_phase(plain: str) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    transport = httpx.HTTPTransport(limits=httpx.Limits(max_connections=1))
    with httpx.Client(
        transport=httpx_transport(transport, tracer=provider.get_tracer("t")), timeout=5
    ) as client:
        threads = [threading.Thread(target=client.get, args=(plain + "/slow",)) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        holder = client.send(client.build_request("GET", plain + "/trickle"), stream=True)
        with pytest.raises(httpx.PoolTimeout):
            client.get(plain + "/ok", timeout=httpx.Timeout(5, pool=0.05))
        holder.close()
    spans = exporter.get_finished_spans()
    waits = [s for s in spans if s.name == "http.pool"]
    assert any(((s.end_time or 0) - (s.start_time or 0)) / 1e9 > 0.05 for s in waits)
    failed = [s for s in spans if (s.attributes or {}).get("http.failed_phase")]
    assert [(s.attributes or {})["http.failed_phase"] for s in failed] == ["pool"]


def test_cancelled_request(plain: str) -> None:
    async def with_httpx(tracer: Any) -> None:
        async with httpx.AsyncClient(transport=async_httpx_transport(tracer=tracer)) as client:
            await client.get(plain + "/hang")

    async def with_aiohttp(tracer: Any) -> None:
        async with aiohttp.ClientSession(trace_configs=[aiohttp_trace_config(tracer=tracer)]) as session:
            await session.get(plain + "/hang")

    for use in (with_httpx, with_aiohttp):
        exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))

        async def main(use: Any = use, provider: Any = provider) -> None:
            task = asyncio.create_task(use(provider.get_tracer("t")))
            await asyncio.sleep(0.15)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        result = Result(list(exporter.get_finished_spans()))
        assert result.attributes()["http.failed_phase"] == "first_byte"
        assert "CancelledError" in result.attributes()["error.type"]
