"""Phases for requests, through connection classes of urllib3."""

from __future__ import annotations

import functools
import socket
from collections.abc import Iterator
from typing import Any, Optional

import requests
import urllib3
from opentelemetry.trace import Tracer
from requests.adapters import HTTPAdapter
from urllib3.util import connection as urllib3_connection

from ._http_phases import CURRENT, PhaseRecorder, begin

__all__ = ["PhasedAdapter", "instrument_session"]


class _Phases:
    """What the connection classes of both schemes add; the rest is urllib3's."""

    _sending = False
    sock: Any
    host: str
    port: int
    _dns_host: str

    def _new_conn(self) -> Any:
        recorder = CURRENT.get()
        if recorder is None:
            return super()._new_conn()  # type: ignore[misc]
        if self._sending:  # a plain connection is made by the first write
            recorder.discard("send")
        name = self._dns_host
        recorder.start("dns", {"dns.question.name": name})
        family = urllib3_connection.allowed_gai_family()
        try:
            found = socket.getaddrinfo(name.strip("[]"), self.port, family, socket.SOCK_STREAM)
        except OSError as err:
            recorder.fail("dns", err)
            raise _resolution_error(self, name, err) from err
        recorder.end("dns")
        failure: Optional[Exception] = None
        for *_, sockaddr in found:
            self._dns_host = str(sockaddr[0])
            recorder.start("connect", {"network.peer.address": self._dns_host})
            try:
                sock = super()._new_conn()  # type: ignore[misc]
            except Exception as err:
                failure = err
                recorder.fail("connect", err)
            else:
                recorder.end("connect")
                return sock
            finally:
                self._dns_host = name
        raise failure or _resolution_error(self, name, OSError("the host has no address"))

    def request(self, *args: Any, **kwargs: Any) -> Any:
        recorder = CURRENT.get()
        if recorder is None:
            return super().request(*args, **kwargs)  # type: ignore[misc]
        self._sending = True
        recorder.start("send")
        try:
            result = super().request(*args, **kwargs)  # type: ignore[misc]
        except BaseException as err:
            recorder.fail("send", err)
            raise
        finally:
            self._sending = False
        recorder.end("send")
        return result

    def getresponse(self) -> Any:
        recorder = CURRENT.get()
        if recorder is None:
            return super().getresponse()  # type: ignore[misc]
        recorder.start("first_byte")
        try:
            response = super().getresponse()  # type: ignore[misc]
        except BaseException as err:
            recorder.fail("first_byte", err)
            raise
        recorder.end("first_byte")
        return response


def _resolution_error(connection: Any, host: str, error: OSError) -> Exception:
    kind = getattr(urllib3.exceptions, "NameResolutionError", None)  # urllib3 2
    if kind is not None and isinstance(error, socket.gaierror):
        result: Exception = kind(host, connection, error)
        return result
    return urllib3.exceptions.NewConnectionError(connection, f"Failed to resolve {host!r}: {error}")


class _Connection(_Phases, urllib3.connection.HTTPConnection):
    def connect(self) -> None:
        super().connect()
        recorder = CURRENT.get()
        if recorder is not None and self._sending:
            recorder.start("send")


class _SecureConnection(_Phases, urllib3.connection.HTTPSConnection):
    def _new_conn(self) -> Any:
        sock = super()._new_conn()
        recorder = CURRENT.get()
        if recorder is not None:
            # Through a proxy this phase begins with the request for the tunnel.
            tunnel = {"http.proxy.tunnel": True} if getattr(self, "_tunnel_host", None) else None
            recorder.start("tls", tunnel)
        return sock

    def connect(self) -> None:
        recorder = CURRENT.get()
        try:
            super().connect()
        except BaseException as err:
            if recorder is not None:
                recorder.fail("tls", err)
            raise
        if recorder is not None:
            recorder.end("tls")
            if self._sending:
                recorder.start("send")


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


_POOLS = {"http": _Pool, "https": _SecurePool}


class PhasedAdapter(HTTPAdapter):
    """A transport adapter that records the phases of each request."""

    def __init__(self, *args: Any, tracer: Optional[Tracer] = None, **kwargs: Any) -> None:
        self._tracer = tracer
        super().__init__(*args, **kwargs)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make the pools; with our connections in them."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = dict(_POOLS)

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        """Return the proxy's manager; with our connections in it."""
        manager: Any = super().proxy_manager_for(*args, **kwargs)
        if isinstance(manager, urllib3.ProxyManager) and type(manager) is urllib3.ProxyManager:
            manager.pool_classes_by_scheme = dict(_POOLS)
        return manager

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """Send the request."""
        recorder = begin(request.method or "GET", request.url or "", request.headers, tracer=self._tracer)
        token = CURRENT.set(recorder)
        try:
            response = super().send(request, *args, **kwargs)
        except BaseException as err:
            recorder.finish(err)
            raise
        finally:
            CURRENT.reset(token)
        version = {10: "1.0", 11: "1.1", 20: "2"}.get(getattr(response.raw, "version", 0) or 0)
        recorder.response(response.status_code, version)
        _watch_body(response.raw, recorder)
        return response


class _BodyWatch:
    """Follows the reading of one body through the methods that every way of reading ends in."""

    def __init__(self, raw: Any, recorder: PhaseRecorder) -> None:
        self._raw = raw
        self._recorder = recorder
        self._depth = 0
        self._released = False

    def begin(self) -> None:
        if not self._recorder.finished and not self._recorder.is_open("body"):
            self._recorder.start("body")
        self._depth += 1

    def end(self, error: Optional[BaseException]) -> None:
        self._depth -= 1
        if error is not None and not isinstance(error, GeneratorExit):
            self._recorder.fail("body", error)
            self._recorder.finish(error, size=self._size())
        elif self._depth == 0 and self._released:
            self.finish(complete=True)

    def release(self) -> None:
        """The connection went back to its pool: the body was read, or there is none."""
        self._released = True
        if self._depth == 0:
            self.finish(complete=True)

    def finish(self, complete: bool) -> None:
        self._recorder.end("body")
        self._recorder.finish(complete=complete, size=self._size())

    def _size(self) -> int:
        tell = getattr(self._raw, "tell", None)
        return int(tell()) if callable(tell) else -1


def _watch_body(raw: Any, recorder: PhaseRecorder) -> None:
    """Replace methods on this one response: its class, which callers may test for, stays."""
    watch = _BodyWatch(raw, recorder)
    if getattr(raw, "_connection", None) is None:  # already read: it had no body
        watch.finish(complete=True)
        return

    def reading(method: Any) -> Any:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            watch.begin()
            error: Optional[BaseException] = None
            try:
                return method(*args, **kwargs)
            except BaseException as err:
                error = err
                raise
            finally:
                watch.end(error)

        return call

    def generating(method: Any) -> Any:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Iterator[Any]:
            watch.begin()
            error: Optional[BaseException] = None
            try:
                yield from method(*args, **kwargs)
            except BaseException as err:
                error = err
                raise
            finally:
                watch.end(error)

        return call

    release, close = raw.release_conn, raw.close

    def release_conn() -> Any:
        held = getattr(raw, "_connection", None) is not None
        result = release()
        if held and getattr(raw, "_connection", None) is None:
            watch.release()
        return result

    def close_early() -> Any:
        result = close()
        if watch._depth == 0:
            watch.finish(complete=watch._released)
        return result

    for name in ("read", "read1", "readinto", "read_chunked", "stream"):
        method = getattr(raw, name, None)
        if method is not None:
            setattr(raw, name, (generating if name in ("read_chunked", "stream") else reading)(method))
    raw.release_conn, raw.close = release_conn, close_early


def instrument_session(session: requests.Session, tracer: Optional[Tracer] = None) -> None:
    """Replace the plain adapters of an existing session by ``PhasedAdapter``, with their settings."""
    for prefix, adapter in list(session.adapters.items()):
        if type(adapter) is not HTTPAdapter:
            continue  # an adapter of the user's own stays
        settings = {
            name: getattr(adapter, f"_{name}") for name in ("pool_connections", "pool_maxsize", "pool_block")
        }
        session.mount(prefix, PhasedAdapter(max_retries=adapter.max_retries, tracer=tracer, **settings))
