"""Sends batches of spooled records to an OTLP/HTTP receiver, standard library only.

The watchdog must start fast and outlive a broken application, so it needs
neither the OpenTelemetry SDK nor protobuf: OTLP/HTTP takes JSON as well.
"""

from __future__ import annotations

import enum
import gzip
import http.client
import json
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Optional

_MAX_ANSWER = 1 << 20  # bytes of an answer that are read


class Outcome(enum.Enum):
    """What the receiver did with a batch."""

    TAKEN = "taken"
    RETRY = "retry"  # away, overloaded or not configured: the batch is good, send it again
    TOO_LARGE = "too large"  # send less at once
    REFUSED = "refused"  # the content is wrong: sending it again does not help


@dataclass(frozen=True)
class Answer:
    """The receiver's answer: rejected is the number of records it took none of, wait_s its Retry-After."""

    outcome: Outcome
    detail: str = ""
    rejected: int = 0
    wait_s: float = 0.0


def logs_url(endpoint: str) -> str:
    """Return the address of logs for a receiver's base address; a full one is kept."""
    parts = urllib.parse.urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(
            f"cannot use endpoint {endpoint!r}: want http://HOST:PORT of an OTLP/HTTP receiver, "
            "such as http://localhost:4318"
        )
    return endpoint if parts.path.endswith("/v1/logs") else endpoint.rstrip("/") + "/v1/logs"


def headers_from_environment() -> dict[str, str]:
    """Return the headers that OTEL_EXPORTER_OTLP_HEADERS and …_LOGS_HEADERS ask for."""
    headers: dict[str, str] = {}
    for name in ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_LOGS_HEADERS"):
        for item in os.environ.get(name, "").split(","):
            key, separator, value = item.partition("=")
            if separator:
                headers[urllib.parse.unquote(key.strip())] = urllib.parse.unquote(value.strip())
    return headers


@dataclass
class Shipper:
    """Posts batches to one address. Not for several threads at once."""

    url: str
    timeout_s: float = 10.0
    headers: Mapping[str, str] = field(default_factory=headers_from_environment)

    def __post_init__(self) -> None:
        context: Optional[ssl.SSLContext] = None
        if self.url.startswith("https:"):
            certificate = os.environ.get("OTEL_EXPORTER_OTLP_CERTIFICATE")
            context = ssl.create_default_context(cafile=certificate or None)
            client = os.environ.get("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE")
            if client:
                context.load_cert_chain(client, os.environ.get("OTEL_EXPORTER_OTLP_CLIENT_KEY"))
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if context is not None:
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def send(self, header: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> Answer:
        """Post records under the resource and scope of header, and tell what became of them."""
        body = json.dumps(
            {
                "resourceLogs": [
                    {
                        "resource": header.get("resource", {}),
                        "scopeLogs": [{"scope": header.get("scope", {}), "logRecords": list(records)}],
                    }
                ]
            },
            ensure_ascii=False,
            separators=(",", ":"),
        ).encode("utf-8", "replace")
        request = urllib.request.Request(
            self.url,
            data=gzip.compress(body, 1),
            headers={
                "Content-Type": "application/json",
                "Content-Encoding": "gzip",
                "User-Agent": "inquest-python",
                **self.headers,
            },
        )
        try:
            with self._opener.open(request, timeout=self.timeout_s) as response:
                return _taken(response.read(_MAX_ANSWER))
        except urllib.error.HTTPError as error:
            with error:
                return _refused(error)
        except (OSError, http.client.HTTPException) as error:
            return Answer(Outcome.RETRY, f"{self.url}: {getattr(error, 'reason', None) or error}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would become a GET and lose its batch."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _taken(body: bytes) -> Answer:
    try:
        partial = json.loads(body or b"{}").get("partialSuccess") or {}
        rejected = int(partial.get("rejectedLogRecords") or 0)
        return Answer(Outcome.TAKEN, str(partial.get("errorMessage") or ""), rejected)
    except (ValueError, AttributeError, TypeError):
        # The status alone says that it was taken.
        return Answer(Outcome.TAKEN)


def _refused(error: urllib.error.HTTPError) -> Answer:
    try:
        text = error.read(500).decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException):
        text = ""
    detail = f"HTTP {error.code} {text}".strip()
    if error.code == 413:
        return Answer(Outcome.TOO_LARGE, detail)
    if error.code in (400, 422):
        return Answer(Outcome.REFUSED, detail)
    # All others speak of the receiver or its configuration, not of these records.
    return Answer(Outcome.RETRY, detail, wait_s=_retry_after(error.headers.get("Retry-After")))


def _retry_after(value: Optional[str]) -> float:
    if not value:
        return 0.0
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        import datetime

        until = parsedate_to_datetime(value)
        return max(0.0, (until - datetime.datetime.now(datetime.timezone.utc)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
