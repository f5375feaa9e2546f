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
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import baggage, trace
from opentelemetry import context as otel_context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from inquest.http_client import (
    aiohttp_trace_config,
    async_httpx_transport,
    httpx_transport,
    instrument,
)

aiohttp = pytest.importorskip("aiohttp")
httpx = pytest.importorskip("httpx")
requests = pytest.importorskip("requests")
trustme = pytest.importorskip("trustme")

from http_world import Driver, Result, serve  # noqa: E402  only where its libraries are installed


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
