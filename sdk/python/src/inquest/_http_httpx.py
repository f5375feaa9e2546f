"""Phases for httpx, from the ``trace`` events of httpcore.

httpcore reports name resolution and connecting as one step; a network backend
in front of its own one tells them apart.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator
from typing import Any, Callable, Optional

import anyio
import httpcore
import httpx
from opentelemetry.trace import Tracer

from ._http_phases import CURRENT, PhaseRecorder, begin

__all__ = ["AsyncPhasedTransport", "PhasedTransport", "instrument_client"]

_HAPPY_EYEBALLS_SECONDS = 0.25  # RFC 8305

_PHASE_OF = {
    "connect_tcp": "connect",
    "connect_unix_socket": "connect",
    "start_tls": "tls",
    "send_request_headers": "send",
    "send_request_body": "send",
    "receive_response_headers": "first_byte",
}


def _observe(recorder: PhaseRecorder, name: str, info: dict[str, Any]) -> None:
    """Translate one event of httpcore, such as ``http11.send_request_headers.started``."""
    _, _, rest = name.partition(".")
    step, _, state = rest.partition(".")
    phase = _PHASE_OF.get(step)
    if phase is None:
        return
    if phase in ("send", "first_byte") and getattr(info.get("request"), "method", b"") == b"CONNECT":
        if step == "send_request_headers" and state == "started":
            recorder.start("proxy")
        return
    if state == "failed":
        error = info.get("exception")
        failing = next((p for p in (phase, "dns", "connect", "proxy") if recorder.is_open(p)), None)
        if isinstance(error, BaseException) and failing is not None:
            recorder.fail(failing, error)
    elif state == "started":
        recorder.end("proxy")
        if not recorder.is_open(phase):  # headers and body of a request are one phase
            recorder.start(phase)
    elif step != "send_request_headers":
        recorder.end(phase)


class _Backend(httpcore.NetworkBackend):
    def __init__(self, inner: httpcore.NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Optional[float] = None,
        local_address: Optional[str] = None,
        socket_options: Optional[Iterable[Any]] = None,
    ) -> httpcore.NetworkStream:
        recorder = CURRENT.get()
        if recorder is None or _is_address(host):
            return self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        recorder.discard("connect")
        recorder.start("dns", {"dns.question.name": host})
        try:
            addresses = _addresses(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except OSError as err:
            recorder.fail("dns", err)
            raise httpcore.ConnectError(str(err)) from err
        recorder.end("dns")
        failure: Optional[BaseException] = None
        for address in addresses:
            recorder.start("connect", {"network.peer.address": address})
            try:
                return self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as err:
                failure = err
                recorder.fail("connect", err)
        raise failure or httpcore.ConnectError(f"{host} has no address")

    def connect_unix_socket(
        self, path: str, timeout: Optional[float] = None, socket_options: Optional[Iterable[Any]] = None
    ) -> httpcore.NetworkStream:
        return self._inner.connect_unix_socket(path, timeout, socket_options)

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class _AsyncBackend(httpcore.AsyncNetworkBackend):
    def __init__(self, inner: httpcore.AsyncNetworkBackend) -> None:
        self._inner = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Optional[float] = None,
        local_address: Optional[str] = None,
        socket_options: Optional[Iterable[Any]] = None,
    ) -> httpcore.AsyncNetworkStream:
        recorder = CURRENT.get()
        if recorder is None or _is_address(host):
            return await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        recorder.discard("connect")
        recorder.start("dns", {"dns.question.name": host})
        try:
            with anyio.fail_after(timeout):  # one limit for both steps, as without the split
                try:
                    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                except OSError as err:
                    recorder.fail("dns", err)
                    raise httpcore.ConnectError(str(err)) from err
                recorder.end("dns")
                addresses = _addresses(found)
                recorder.start("connect")

                async def attempt(address: str) -> httpcore.AsyncNetworkStream:
                    return await self._inner.connect_tcp(address, port, None, local_address, socket_options)

                return await _first_connected(attempt, addresses)
        except TimeoutError as err:
            recorder.fail(None, err)
            raise httpcore.ConnectTimeout(str(err)) from err

    async def connect_unix_socket(
        self, path: str, timeout: Optional[float] = None, socket_options: Optional[Iterable[Any]] = None
    ) -> httpcore.AsyncNetworkStream:
        return await self._inner.connect_unix_socket(path, timeout, socket_options)

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


async def _first_connected(
    attempt: Callable[[str], Awaitable[httpcore.AsyncNetworkStream]], addresses: list[str]
) -> httpcore.AsyncNetworkStream:
    """Try the addresses, each a little after the one before it (RFC 8305), and keep the first stream."""
    if len(addresses) == 1:
        return await attempt(addresses[0])
    winners: list[httpcore.AsyncNetworkStream] = []
    failures: list[Exception] = []

    async def run(address: str, settled: anyio.Event) -> None:
        try:
            stream = await attempt(address)
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as err:
            failures.append(err)
        else:
            winners.append(stream)
            group.cancel_scope.cancel()
        finally:
            settled.set()

    async with anyio.create_task_group() as group:
        for address in addresses:
            settled = anyio.Event()
            group.start_soon(run, address, settled)
            with anyio.move_on_after(_HAPPY_EYEBALLS_SECONDS):
                await settled.wait()
    for loser in winners[1:]:
        await loser.aclose()
    if winners:
        return winners[0]
    raise failures[0] if failures else httpcore.ConnectError("the host has no address")


def _is_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host.partition("%")[0])
        except OSError:
            continue
        return True
    return False


def _addresses(found: Iterable[Any]) -> list[str]:
    """Addresses in the resolver's order, with the scope of a link-local one, each once."""
    result: dict[str, None] = {}
    for *_, sockaddr in found:
        address = str(sockaddr[0])
        if len(sockaddr) == 4 and sockaddr[3] and "%" not in address:
            address = f"{address}%{sockaddr[3]}"
        result[address] = None
    return list(result)


def _split_dns(transport: Any) -> None:
    """Put our backend in front of the pool's, where the pool has the place for it."""
    pool = getattr(transport, "_pool", None)
    backend = getattr(pool, "_network_backend", None)
    if isinstance(backend, httpcore.NetworkBackend) and not isinstance(backend, _Backend):
        pool._network_backend = _Backend(backend)  # type: ignore[union-attr]
    elif isinstance(backend, httpcore.AsyncNetworkBackend) and not isinstance(backend, _AsyncBackend):
        pool._network_backend = _AsyncBackend(backend)  # type: ignore[union-attr]


def _version(response: httpx.Response) -> str:
    return str(response.http_version).rpartition("/")[2]


class PhasedTransport(httpx.BaseTransport):
    """A transport that records the phases of each request; wraps any other."""

    def __init__(
        self, transport: Optional[httpx.BaseTransport] = None, *, tracer: Optional[Tracer] = None
    ) -> None:
        self._transport = transport or httpx.HTTPTransport()
        self._tracer = tracer
        _split_dns(self._transport)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request."""
        recorder = begin(request.method, str(request.url), request.headers, tracer=self._tracer)
        users: Optional[Callable[[str, dict[str, Any]], None]] = request.extensions.get("trace")

        def observe(name: str, info: dict[str, Any]) -> None:
            _observe(recorder, name, info)
            if users is not None:
                users(name, info)

        given = request.extensions
        request.extensions = {**given, "trace": observe}
        token = CURRENT.set(recorder)
        try:
            response = self._transport.handle_request(request)
        except BaseException as err:
            recorder.finish(err)
            raise
        finally:
            CURRENT.reset(token)
            request.extensions = given  # a redirected request takes them over
        recorder.response(response.status_code, _version(response))
        response.stream = _Body(response.stream, recorder)
        return response

    def close(self) -> None:
        """Close the wrapped transport."""
        self._transport.close()


class AsyncPhasedTransport(httpx.AsyncBaseTransport):
    """The asynchronous form of ``PhasedTransport``."""

    def __init__(
        self, transport: Optional[httpx.AsyncBaseTransport] = None, *, tracer: Optional[Tracer] = None
    ) -> None:
        self._transport = transport or httpx.AsyncHTTPTransport()
        self._tracer = tracer
        _split_dns(self._transport)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request."""
        recorder = begin(request.method, str(request.url), request.headers, tracer=self._tracer)
        users: Optional[Callable[[str, dict[str, Any]], Awaitable[None]]] = request.extensions.get("trace")

        async def observe(name: str, info: dict[str, Any]) -> None:
            _observe(recorder, name, info)
            if users is not None:
                await users(name, info)

        given = request.extensions
        request.extensions = {**given, "trace": observe}
        token = CURRENT.set(recorder)
        try:
            response = await self._transport.handle_async_request(request)
        except BaseException as err:
            recorder.finish(err)
            raise
        finally:
            CURRENT.reset(token)
            request.extensions = given  # a redirected request takes them over
        recorder.response(response.status_code, _version(response))
        response.stream = _AsyncBody(response.stream, recorder)
        return response

    async def aclose(self) -> None:
        """Close the wrapped transport."""
        await self._transport.aclose()


class _BodyState:
    def __init__(self, stream: Any, recorder: PhaseRecorder) -> None:
        self._stream = stream
        self._recorder = recorder
        self._size = 0
        self._complete = False

    def _ended(self) -> None:
        self._complete = True
        self._recorder.end("body", **{"http.response.body.size": self._size})

    def _failed(self, error: BaseException) -> None:
        if not isinstance(error, GeneratorExit):
            self._recorder.fail("body", error)
            self._recorder.finish(error, size=self._size)

    def _closed(self) -> None:
        self._recorder.finish(complete=self._complete, size=self._size)

    def __del__(self) -> None:
        # A response that nobody closed.
        if not self._recorder.finished:
            self._closed()


class _Body(_BodyState, httpx.SyncByteStream):
    def __iter__(self) -> Iterator[bytes]:
        self._recorder.start("body")
        try:
            for part in self._stream:
                self._size += len(part)
                yield part
        except BaseException as err:
            self._failed(err)
            raise
        self._ended()

    def close(self) -> None:
        self._stream.close()
        self._closed()


class _AsyncBody(_BodyState, httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._recorder.start("body")
        try:
            async for part in self._stream:
                self._size += len(part)
                yield part
        except BaseException as err:
            self._failed(err)
            raise
        self._ended()

    async def aclose(self) -> None:
        await self._stream.aclose()
        self._closed()


def instrument_client(client: Any, tracer: Optional[Tracer] = None) -> None:
    """Wrap the transports of an existing ``httpx.Client`` or ``httpx.AsyncClient``, proxies' included."""

    asynchronous = isinstance(client, httpx.AsyncClient)

    def wrap(transport: Any) -> Any:
        if transport is None or isinstance(transport, (PhasedTransport, AsyncPhasedTransport)):
            return transport
        kind = AsyncPhasedTransport if asynchronous else PhasedTransport
        return kind(transport, tracer=tracer)

    client._transport = wrap(client._transport)
    client._mounts = {pattern: wrap(transport) for pattern, transport in client._mounts.items()}
