"""Streams of a model, bound to their trace: every chunk counted, every end told.

``wrap_stream(iterator)`` and ``wrap_async_stream(iterator)`` return an iterator
over the same chunks, unchanged, and record one span:

* ``stream.chunks``, ``stream.characters``: exact, whatever the length.
* Span events ``stream.chunk`` for the first ``detail`` chunks (index,
  milliseconds since the start, characters, tokens where told), then
  ``stream.chunks`` events that cover twice as many chunks each. Their counts
  add up to the totals, and their number stays far below the span's limit.
  With ``log_chunks=True`` each chunk is also a log record of its own.
* ``stream.time_to_first_chunk_ms`` (any chunk), ``stream.time_to_first_text_ms``
  (the first with text), ``stream.gap_ms.{p50,p95,max}`` between chunks
  (quantiles within 1 %, the maximum exact).
* ``stream.outcome``: ``completed``, ``partial`` (closed early, or ended without
  the protocol's end mark), ``cancelled`` (task cancelled, peer gone) or
  ``error``; ``stream.end_reason`` says how.
* ``stream.tokens.client`` (sum over the chunks), ``stream.tokens.server`` (the
  server's usage) and ``stream.tokens.mismatch`` = server − client.

The span is current only while the source produces a chunk, never across a
yield, so an abandoned stream cannot leave a context behind. A stream that
nobody closes is recorded as partial when it is collected.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, Optional, TypeVar

from opentelemetry import context as otel_context

from ._stream_recorder import StreamRecorder

__all__ = ["AsyncStream", "Stream", "StreamRecorder", "wrap_async_stream", "wrap_stream"]

T = TypeVar("T")


class Stream(Generic[T]):
    """An iterator over the chunks of a source; see ``wrap_stream``."""

    def __init__(self, source: Iterable[T], recorder: StreamRecorder) -> None:
        self.recorder = recorder
        self._source = source
        token = otel_context.attach(recorder.context)
        try:
            self._iterator: Iterator[T] = iter(source)
        except BaseException as err:
            recorder.failed(err)
            raise
        finally:
            otel_context.detach(token)

    def __iter__(self) -> Stream[T]:
        return self

    def __next__(self) -> T:
        token = otel_context.attach(self.recorder.context)
        try:
            chunk = next(self._iterator)
        except StopIteration:
            self.recorder.exhausted()
            raise
        except BaseException as err:
            self.recorder.failed(err)
            raise
        finally:
            otel_context.detach(token)
        self.recorder.chunk(chunk)
        return chunk

    def throw(self, error: BaseException) -> T:
        """Pass an exception of a delegating generator on to the source."""
        self.recorder.failed(error, by_consumer=True)
        self._close_source()
        raise error

    def close(self) -> None:
        """Stop reading; closes the source where it can be closed."""
        self.recorder.closed()
        self._close_source()

    def disconnected(self) -> None:
        """Tell that the peer who reads this stream is gone, and close it."""
        self.recorder.finish("cancelled", "disconnected")
        self._close_source()

    def _close_source(self) -> None:
        for source in (self._iterator, self._source):
            close = getattr(source, "close", None)
            if callable(close):
                close()
                return

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], tb: Optional[TracebackType]
    ) -> None:
        if error is not None:
            self.recorder.failed(error, by_consumer=True)
        self.close()

    def __getattr__(self, name: str) -> Any:
        # The client library's own members (.response, .get_final_message …).
        if name.startswith("_") or name == "recorder":
            raise AttributeError(name)
        return getattr(self._source, name)

    def __del__(self) -> None:
        recorder = self.__dict__.get("recorder")
        if recorder is not None and recorder.outcome is None:
            with contextlib.suppress(Exception):  # the interpreter may be half gone
                recorder.closed("collected")


class AsyncStream(Generic[T]):
    """An asynchronous iterator over the chunks of a source; see ``wrap_async_stream``."""

    def __init__(self, source: AsyncIterable[T], recorder: StreamRecorder) -> None:
        self.recorder = recorder
        self._source = source
        self._iterator: AsyncIterator[T] = source.__aiter__()

    def __aiter__(self) -> AsyncStream[T]:
        return self

    async def __anext__(self) -> T:
        token = otel_context.attach(self.recorder.context)
        try:
            chunk = await self._iterator.__anext__()
        except StopAsyncIteration:
            self.recorder.exhausted()
            raise
        except BaseException as err:
            self.recorder.failed(err)
            raise
        finally:
            otel_context.detach(token)
        self.recorder.chunk(chunk)
        return chunk

    async def aclose(self) -> None:
        """Stop reading; closes the source where it can be closed."""
        self.recorder.closed()
        await self._close_source()

    async def close(self) -> None:
        """Stop reading: the name that client libraries use for ``aclose``."""
        await self.aclose()

    async def disconnected(self) -> None:
        """Tell that the peer who reads this stream is gone, and close it."""
        self.recorder.finish("cancelled", "disconnected")
        await self._close_source()

    async def _close_source(self) -> None:
        for source in (self._iterator, self._source):
            for name in ("aclose", "close"):
                close = getattr(source, name, None)
                if callable(close):
                    closing = close()
                    if hasattr(closing, "__await__"):
                        await closing
                    return

    async def __aenter__(self) -> AsyncStream[T]:
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], tb: Optional[TracebackType]
    ) -> None:
        if error is not None:
            self.recorder.failed(error, by_consumer=True)
        await self.aclose()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "recorder":
            raise AttributeError(name)
        return getattr(self._source, name)

    def __del__(self) -> None:
        recorder = self.__dict__.get("recorder")
        if recorder is not None and recorder.outcome is None:
            with contextlib.suppress(Exception):  # the interpreter may be half gone
                recorder.closed("collected")


def wrap_stream(source: Iterable[T], name: str = "stream", **options: Any) -> Stream[T]:
    """Wrap an iterator of chunks; ``options`` are those of ``StreamRecorder``."""
    return Stream(source, StreamRecorder(name, **options))


def wrap_async_stream(source: AsyncIterable[T], name: str = "stream", **options: Any) -> AsyncStream[T]:
    """Wrap an asynchronous iterator of chunks; ``options`` are those of ``StreamRecorder``."""
    return AsyncStream(source, StreamRecorder(name, **options))
