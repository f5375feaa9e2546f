from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI, WebSocket
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from opentelemetry import trace

import inquest
import inquest.fastapi
from capture import Capture
from inquest import context as ctx


@pytest.fixture
def client(receiver: Capture, process: None) -> TestClient:
    inquest.init("web", receiver.endpoint)
    # FastAPI 0.165 and later start spans of their own: that is another test.
    app = FastAPI(telemetry={"tracing": False})

    @app.get("/id/{name}")
    async def async_id(name: str) -> dict[str, Any]:
        return {"id": ctx.request_id(), "span": trace.get_current_span().get_span_context().span_id}

    @app.get("/sync")
    def sync_id() -> Any:
        return ctx.request_id()

    @app.get("/fail")
    def fail() -> None:
        raise RuntimeError("no")

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        async def chunks() -> Any:
            for _ in range(3):
                await asyncio.sleep(0)
                yield f"{ctx.request_id()};"

        return StreamingResponse(chunks())

    @app.websocket("/ws")
    async def ws(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text(str(ctx.request_id()))
        await socket.close()

    inquest.fastapi.instrument(app)
    return TestClient(app, raise_server_exceptions=False)


def test_id_is_kept_or_made(client: TestClient) -> None:
    for path in ("/id/x", "/sync", "/stream", "/fail", "/nowhere"):
        assert client.get(path, headers={"X-Request-Id": "R-1;a=b"}).headers["x-request-id"] == "R-1;a=b"
        made = client.get(path).headers["x-request-id"]
        assert made.startswith("r-") and made != client.get(path).headers["x-request-id"]
    assert client.get("/id/x", headers={"x-request-id": "abc"}).json()["id"] == "abc"
    assert client.get("/sync", headers={"x-request-id": "abc"}).json() == "abc"
    assert client.get("/stream", headers={"x-request-id": "abc"}).text == "abc;abc;abc;"
    with client.websocket_connect("/ws", headers={"x-request-id": "abc"}) as socket:
        assert socket.receive_text() == "abc"


def test_spans(client: TestClient, receiver: Capture) -> None:
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    client.get("/id/x", headers={"traceparent": parent, "baggage": "request.id=from-baggage"})
    client.get("/fail", headers={"x-request-id": "r-f"})
    client.get("/sync", headers={"x-request-id": "bad id"})
    inquest.runtime.current().flush()  # type: ignore[attr-defined]
    ok, failed, refused = receiver.spans
    assert (ok["traceId"], ok["parentSpanId"]) == ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
    assert (ok["name"], ok["attributes"]["http.route"]) == ("GET /id/{name}", "/id/{name}")
    assert ok["attributes"]["request.id"] == "from-baggage"
    assert ok["attributes"]["http.response.status_code"] == 200
    assert (failed["attributes"]["request.id"], failed["status"]["code"]) == ("r-f", "STATUS_CODE_ERROR")
    assert failed["events"][0]["name"] == "exception"
    assert refused["attributes"]["request.id.refused"] == "bad id"


def test_span_of_another_instrumentation_is_used(receiver: Capture, process: None) -> None:
    from inquest.asgi import RequestMiddleware

    running = inquest.init("web", receiver.endpoint)
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204})

    async def send(message: Any) -> None:
        sent.append(message)

    async def main() -> None:
        with running.tracer.start_as_current_span("outer"):
            scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"x-request-id", b"r-o")]}
            await RequestMiddleware(app)(scope, None, send)  # type: ignore[arg-type]

    asyncio.run(main())
    running.flush()
    assert [(span["name"], span["attributes"]["request.id"]) for span in receiver.spans] == [("outer", "r-o")]
    assert sent[0]["headers"] == [(b"x-request-id", b"r-o")]
    assert ctx.request_id() is None
