"""Numerical statistics of tensors in the form that an AI event carries.

``tensor_stats(x)`` answers with ``shape``, ``dtype``, ``has_nan``, ``min_val``
and ``max_val``. The answer is safe for JSON: ``min_val`` and ``max_val`` are
taken over the finite values and are ``None`` where there is none (empty,
all NaN or infinite, complex, text).

Cost: every element is read once for the NaN check, which is always exact.
Minimum and maximum are exact up to ``max_elements``; above it they are taken
from whole slices spread over the longest axes, and the answer has
``sampled: True`` with ``sample_size``. No full copy of the data is made, on no
device: what needs scratch memory works in blocks.

NumPy and PyTorch are used when the value comes from them and never imported
for any other reason.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional, TypedDict, Union

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DEFAULT_MAX_ELEMENTS", "TensorStats", "tensor_stats"]

DEFAULT_MAX_ELEMENTS = 1 << 24
"""Up to this many elements minimum and maximum are exact."""

_BLOCK = 1 << 16  # NumPy elements handled at once; their scratch memory stays in the cache
_TORCH_BLOCK = 1 << 22  # elements of scratch memory on the tensor's own device
_MAX_NESTING = 64

Number = Union[int, float]


class _Required(TypedDict):
    shape: list[int]
    dtype: str
    has_nan: bool
    min_val: Optional[Number]
    max_val: Optional[Number]


class TensorStats(_Required, total=False):
    """Statistics of one tensor; the optional members are present only when they apply."""

    sampled: bool
    """True when ``min_val`` and ``max_val`` come from a sample."""
    sample_size: int
    """Elements in that sample."""
    unavailable: str
    """Why the values could not be examined; ``has_nan`` then says nothing."""


def tensor_stats(x: Any, *, max_elements: int = DEFAULT_MAX_ELEMENTS) -> TensorStats:
    """Return the statistics of ``x``: a NumPy array, a PyTorch tensor on any device, a list or a number.

    A tensor on a GPU costs one synchronisation with its stream, to fetch two
    numbers. While a CUDA graph is being captured nothing is computed and the
    answer says so. Never raises because of the data: what cannot be examined
    is told in ``unavailable``.

    Raises:
        ValueError: ``max_elements`` is not positive.
    """
    if max_elements < 1:
        raise ValueError("cannot compute statistics: max_elements must be at least 1")
    try:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(x, torch.Tensor):
            return _torch_stats(torch, x, max_elements)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(x, (numpy.ndarray, numpy.generic)):
            return _numpy_stats(numpy, numpy.asanyarray(x), max_elements)
        if isinstance(x, (list, tuple, int, float, complex, type(None))):
            return _sequence_stats(x)
        if numpy is not None and hasattr(x, "__array__"):
            return _numpy_stats(numpy, numpy.asanyarray(x), max_elements)
    except Exception as err:
        return _unexamined(x, f"{type(err).__name__}: {err}"[:200])
    return _unexamined(x, f"values of type {type(x).__name__} cannot be read")


def _unexamined(x: Any, why: str) -> TensorStats:
    try:
        shape = [int(n) for n in x.shape]
    except Exception:
        shape = []
    dtype = str(getattr(x, "dtype", type(x).__name__)).replace("torch.", "")
    return {
        "shape": shape,
        "dtype": dtype,
        "has_nan": False,
        "min_val": None,
        "max_val": None,
        "unavailable": why,
    }


def _number(value: Any) -> Optional[Number]:
    """Turn a scalar into a number that JSON can hold, or None."""
    if isinstance(value, (bool, int)):
        return int(value)
    value = float(value)
    return value if math.isfinite(value) else None


def _sample_slices(shape: Sequence[int], limit: int) -> tuple[slice, ...]:
    """Slices with steps on the longest axes so that at most about ``limit`` elements stay.

    Whole slices are taken instead of every k-th element: a step that divides
    the row length would look at one column only.
    """
    steps = [1] * len(shape)
    size = math.prod(shape)
    for axis in sorted(range(len(shape)), key=lambda a: -shape[a]):
        if size <= limit:
            break
        steps[axis] = min(shape[axis], -(-size // limit))
        size = size // shape[axis] * -(-shape[axis] // steps[axis])
    return tuple(slice(None, None, s) for s in steps)


# NumPy


def _numpy_stats(np: Any, x: Any, max_elements: int) -> TensorStats:
    shape, dtype = [int(n) for n in x.shape], str(x.dtype)
    if isinstance(x, np.ma.MaskedArray):
        x = x.compressed()
    has_nan, low, high = False, None, None
    sample = x
    half = _HALF_INFINITY.get(dtype)
    if x.size and (half is not None or x.dtype.kind in "fiub"):
        if x.size > max_elements:
            sample = x[_sample_slices(x.shape, max_elements)]
        with np.errstate(all="ignore"):
            if half is not None:
                has_nan = sample is not x and _half_has_nan(np, x, half)
                nan_in_sample, low, high = _half_min_max(np, sample, half, dtype)
                has_nan = has_nan or nan_in_sample
            else:
                has_nan, low, high = _float_min_max(np, x, sample)
    elif x.size and x.dtype.kind == "c":
        has_nan = any(bool(np.isnan(block).any()) for block in _numpy_blocks(np, x))
    stats: TensorStats = {"shape": shape, "dtype": dtype, "has_nan": has_nan, "min_val": low, "max_val": high}
    if sample is not x:
        stats["sampled"], stats["sample_size"] = True, int(sample.size)
    return stats


def _numpy_blocks(np: Any, x: Any) -> Iterator[Any]:
    """One-dimensional blocks of ``x``, in memory order; views where the layout allows it."""
    if x.ndim == 0 or x.flags.forc:
        flat = x.reshape(-1) if x.ndim == 0 or x.flags.c_contiguous else x.T.reshape(-1)
        for start in range(0, flat.size, _BLOCK):
            yield flat[start : start + _BLOCK]
        return
    yield from np.nditer(x, flags=["external_loop", "buffered"], buffersize=_BLOCK, order="K")


def _float_min_max(np: Any, x: Any, sample: Any) -> tuple[bool, Optional[Number], Optional[Number]]:
    low = x.min()  # a NaN anywhere makes this NaN: the exact check, without scratch memory
    has_nan = bool(low != low)
    if sample is not x:
        low = sample.min()
    high = sample.max()
    if sample.dtype.kind != "f" or (np.isfinite(low) and np.isfinite(high)):
        return has_nan, _number(low.item()), _number(high.item())
    lows, highs = [], []
    for block in _numpy_blocks(np, sample):
        finite = block[np.isfinite(block)]
        if finite.size:
            lows.append(finite.min())
            highs.append(finite.max())
    if not lows:
        return has_nan, None, None
    return has_nan, _number(min(lows).item()), _number(max(highs).item())


# Half precision has no fast minimum in NumPy, but its bits, read as integers,
# are ordered: 10 times faster, and it serves bfloat16 too.
_HALF_INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80}


def _half_has_nan(np: Any, x: Any, infinity: int) -> bool:
    return any(
        bool(((block.view(np.uint16) & np.uint16(0x7FFF)) > np.uint16(infinity)).any())
        for block in _numpy_blocks(np, x)
    )


def _half_min_max(
    np: Any, x: Any, infinity: int, dtype: str
) -> tuple[bool, Optional[Number], Optional[Number]]:
    has_nan, low, high = False, None, None
    for block in _numpy_blocks(np, x):
        bits = block.view(np.int16)
        magnitude = bits & np.int16(0x7FFF)
        # Negative values are ordered downwards by magnitude.
        keys = np.where(bits < 0, -magnitude, magnitude)
        largest = int(magnitude.max())
        if largest >= infinity:
            has_nan = has_nan or largest > infinity
            keys = keys[magnitude < infinity]
            if not keys.size:
                continue
        first, last = int(keys.min()), int(keys.max())
        low = first if low is None else min(low, first)
        high = last if high is None else max(high, last)
    if low is None or high is None:
        return has_nan, None, None
    return has_nan, _half_value(np, low, dtype), _half_value(np, high, dtype)


def _half_value(np: Any, key: int, dtype: str) -> Number:
    if dtype == "float16":
        value = float(np.array([abs(key)], dtype=np.uint16).view(np.float16)[0])
    else:
        value = float(np.array([abs(key) << 16], dtype=np.uint32).view(np.float32)[0])
    return -value if key < 0 else value


# PyTorch


def _torch_stats(torch: Any, x: Any, max_elements: int) -> TensorStats:
    dtype = str(x.dtype).replace("torch.", "")
    shape = [int(n) for n in x.shape]
    stats: TensorStats = {"shape": shape, "dtype": dtype, "has_nan": False, "min_val": None, "max_val": None}
    if x.device.type == "meta":
        stats["unavailable"] = "a tensor on the meta device has no values"
        return stats
    if x.device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        stats["unavailable"] = "a CUDA graph is being captured"
        return stats
    with torch.no_grad():
        x = x.detach()
        if x.layout != torch.strided:
            # What a sparse tensor does not store is zero, and counts for the range.
            values = x.coalesce().values() if x.layout == torch.sparse_coo else x.values()
            zeros = values.numel() < x.numel()
            x = torch.cat([values.reshape(-1), values.new_zeros(1)]) if zeros else values
        if x.is_quantized:
            x = x.dequantize()
        if x.numel() == 0:
            return stats
        if x.is_complex():
            stats["has_nan"] = any(bool(torch.isnan(b).any()) for b in _torch_blocks(x))
            return stats
        _torch_min_max(torch, x, max_elements, stats)
    return stats


def _torch_min_max(torch: Any, x: Any, max_elements: int, stats: TensorStats) -> None:
    low, high = _torch_aminmax(torch, x)  # NaN when there is one: exact, one pass, no scratch memory
    if math.isfinite(low) and math.isfinite(high):
        stats["min_val"], stats["max_val"] = _number(low), _number(high)
        return
    stats["has_nan"] = low != low
    if x.numel() > max_elements:
        x = x[_sample_slices(x.shape, max_elements)]
        stats["sampled"], stats["sample_size"] = True, int(x.numel())
    lows, highs = [], []
    for block in _torch_blocks(x):
        wide = block.to(torch.float32) if block.element_size() < 4 else block
        finite = torch.isfinite(wide)
        lows.append(wide.masked_fill(~finite, math.inf).amin())
        highs.append(wide.masked_fill(~finite, -math.inf).amax())
    low, high = torch.stack([torch.stack(lows).amin(), torch.stack(highs).amax()]).tolist()
    stats["min_val"], stats["max_val"] = _number(low), _number(high)


def _torch_aminmax(torch: Any, x: Any) -> tuple[Number, Number]:
    """Minimum and maximum as Python numbers, fetched from the device in one transfer."""
    try:
        low, high = torch.aminmax(x)
    except (RuntimeError, NotImplementedError):
        # Types without a minimum of their own (float8, unsigned integers) are
        # widened block by block.
        wide = (
            torch.float32
            if x.is_floating_point()
            else torch.float64
            if x.element_size() == 8
            else torch.int64
        )
        pairs = [torch.aminmax(block.to(wide)) for block in _torch_blocks(x)]
        low = torch.stack([pair[0] for pair in pairs]).amin()
        high = torch.stack([pair[1] for pair in pairs]).amax()
    values = torch.stack([low, high]).tolist()
    return values[0], values[1]


def _torch_blocks(x: Any) -> Iterator[Any]:
    """Views of at most ``_TORCH_BLOCK`` elements; nothing is copied."""
    if x.numel() <= _TORCH_BLOCK:
        yield x
    elif x.is_contiguous():
        yield from x.view(-1).split(_TORCH_BLOCK)
    elif x.dim() > 1 and x.numel() // x.shape[0] > _TORCH_BLOCK:
        for row in x:
            yield from _torch_blocks(row)
    else:
        yield from x.split(max(1, _TORCH_BLOCK * x.shape[0] // x.numel()))


# Lists and plain numbers


def _sequence_stats(x: Any) -> TensorStats:
    shape: list[int] = []
    level = x
    while isinstance(level, (list, tuple)) and len(shape) < _MAX_NESTING:
        shape.append(len(level))
        if not level:
            break
        level = level[0]
    kinds: dict[type, None] = {}
    has_nan, low, high = False, None, None
    for value in _leaves(x, 0):
        kinds[type(value)] = None
        if isinstance(value, (int, float)):
            if value != value:
                has_nan = True
            elif isinstance(value, int) or math.isfinite(value):
                low = value if low is None or value < low else low
                high = value if high is None or value > high else high
        elif isinstance(value, complex) and value != value:
            has_nan = True
        elif hasattr(value, "item"):  # a list of 0-d tensors or NumPy scalars
            one = tensor_stats(value)
            has_nan = has_nan or one["has_nan"]
            for number in (one["min_val"], one["max_val"]):
                if number is not None:
                    low = number if low is None or number < low else low
                    high = number if high is None or number > high else high
    dtype = next(iter(kinds)).__name__ if len(kinds) == 1 else "mixed" if kinds else "none"
    return {
        "shape": shape,
        "dtype": dtype,
        "has_nan": has_nan,
        "min_val": None if low is None else _number(low),
        "max_val": None if high is None else _number(high),
    }


def _leaves(x: Any, depth: int) -> Iterator[Any]:
    if not isinstance(x, (list, tuple)):
        yield x
        return
    if depth >= _MAX_NESTING:
        raise ValueError(f"lists nested deeper than {_MAX_NESTING}")
    for value in x:
        if isinstance(value, (list, tuple)):
            yield from _leaves(value, depth + 1)
        else:
            yield value
