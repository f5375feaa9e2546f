"""A small OTLP/HTTP receiver that keeps what it gets, for tests."""

from __future__ import annotations

import base64
import gzip
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def plain(value: dict[str, Any]) -> Any:
    if "arrayValue" in value:
        return [plain(item) for item in value["arrayValue"].get("values", [])]
    if "intValue" in value:
        return int(value["intValue"])
    return next(iter(value.values()), None)


def named(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    return {item["key"]: plain(item["value"]) for item in attributes}


class Capture:
    """Collects log records and spans as flat dicts; answer(path, n) may refuse the nth request."""

    def __init__(self) -> None:
        self.logs: list[dict[str, Any]] = []
        self.spans: list[dict[str, Any]] = []
        self.requests = 0
        self.answer: Callable[[int, list[dict[str, Any]]], tuple[int, bytes]] = lambda n, records: (
            200,
            b"{}",
        )
        self._lock = threading.Lock()
        capture = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                status, answer = capture.take(self.path, self.headers["Content-Type"], body)
                self.send_response(status)
                self.send_header("Content-Type", self.headers["Content-Type"])
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *args: Any) -> None:
                """Stay silent about senders that were killed."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()

    def take(self, path: str, kind: str, body: bytes) -> tuple[int, bytes]:
        spans = path == "/v1/traces"
        if kind == "application/json":
            message = json.loads(body)
        else:
            proto = ExportTraceServiceRequest() if spans else ExportLogsServiceRequest()
            proto.ParseFromString(body)
            message = MessageToDict(proto)
            # protobuf's own JSON writes ids in base64.
            for outer in ("resourceLogs", "resourceSpans"):
                for resource in message.get(outer, []):
                    for scope in resource.get("scopeLogs", resource.get("scopeSpans", [])):
                        for record in scope.get("logRecords", scope.get("spans", [])):
                            for name in ("traceId", "spanId", "parentSpanId"):
                                if name in record:
                                    record[name] = base64.b64decode(record[name]).hex()
        records = list(flat(message))
        with self._lock:
            self.requests += 1
            status, answer = self.answer(self.requests, records)
            if status == 200:
                (self.spans if spans else self.logs).extend(records)
        return status, b"" if kind != "application/json" else answer

    def wait(self, done: Callable[[Capture], bool], timeout: float = 15.0) -> None:
        until = time.monotonic() + timeout
        while not done(self):
            assert time.monotonic() < until, f"{len(self.logs)} logs, {len(self.spans)} spans"
            time.sleep(0.02)

    def events(self) -> list[dict[str, Any]]:
        return [
            json.loads(log["body"]) for log in self.logs if str(log.get("eventName", "")).startswith("ai.")
        ]


def flat(message: dict[str, Any]) -> Any:
    for resource in message.get("resourceLogs", message.get("resourceSpans", [])):
        of_resource = named(resource.get("resource", {}).get("attributes", []))
        for scope in resource.get("scopeLogs", resource.get("scopeSpans", [])):
            for record in scope.get("logRecords", scope.get("spans", [])):
                body = record.get("body")
                yield {
                    **record,
                    "resource": of_resource,
                    "attributes": named(record.get("attributes", [])),
                    "body": plain(body) if body else None,
                }
