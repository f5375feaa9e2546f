"""Process pool whose calls carry the request and whose children log as their parent does."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent import futures
from typing import Any, Callable, Optional, TypeVar

from inquest import context as ctx
from inquest import runtime

T = TypeVar("T")


class ProcessPoolExecutor(futures.ProcessPoolExecutor):
    """A process pool for any start method. Call init() before making it.

    A plain one under ``instrument()`` carries the request too, but its spawned
    children log only if they call init() themselves.
    """

    def __init__(
        self,
        max_workers: Optional[int] = None,
        mp_context: Any = None,
        initializer: Optional[Callable[..., object]] = None,
        initargs: Sequence[Any] = (),
        **options: Any,
    ) -> None:
        """Make a pool; the arguments are those of the standard library's."""
        process = runtime.configured()
        config = process.config if process else None
        super().__init__(
            max_workers, mp_context, _enter_child, (config, initializer, tuple(initargs)), **options
        )

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> futures.Future[T]:
        """Submit a call in the present context. fn must be one that can be pickled."""
        call = fn if isinstance(fn, ctx.Carried) else ctx.carried(fn)
        return super().submit(call, *args, **kwargs)


def _enter_child(
    config: Optional[runtime.Config],
    initializer: Optional[Callable[..., object]],
    initargs: tuple[Any, ...],
) -> None:
    if config is not None and runtime.configured() is None:
        ctx.instrument()
        runtime.start(config)
    if initializer is not None:
        initializer(*initargs)
