"""tensor_stats on NumPy arrays, PyTorch tensors, lists and numbers."""

from __future__ import annotations

import json
import math
import tracemalloc
from typing import Any

import pytest

from inquest.tensors import tensor_stats

np = pytest.importorskip("numpy", reason="the tests of arrays need NumPy")

NAN, INF = math.nan, math.inf


def check(x: Any, want: dict[str, Any], **options: Any) -> None:
    got = tensor_stats(x, **options)
    assert got == want
    json.dumps(got, allow_nan=False)


def stats(shape: Any, dtype: str, has_nan: bool, low: Any, high: Any, **more: Any) -> dict[str, Any]:
    return {"shape": shape, "dtype": dtype, "has_nan": has_nan, "min_val": low, "max_val": high, **more}


@pytest.mark.parametrize(
    ("x", "want"),
    [
        (np.array([[1.5, -2.0], [0.0, 3.0]]), stats([2, 2], "float64", False, -2.0, 3.0)),
        (np.array([1, NAN, 3], dtype=np.float32), stats([3], "float32", True, 1.0, 3.0)),
        (np.array([-INF, 2, INF], dtype=np.float32), stats([3], "float32", False, 2.0, 2.0)),
        (np.array([NAN, INF, -INF]), stats([3], "float64", True, None, None)),
        (np.array([], dtype=np.float32), stats([0], "float32", False, None, None)),
        (np.zeros((3, 0, 2)), stats([3, 0, 2], "float64", False, None, None)),
        (np.array(7.0), stats([], "float64", False, 7.0, 7.0)),
        (np.float16(1.5), stats([], "float16", False, 1.5, 1.5)),
        (np.array([1.5, -2.5, 0], dtype=np.float16), stats([3], "float16", False, -2.5, 1.5)),
        (np.array([-1, -4, NAN, INF, -INF], dtype=np.float16), stats([5], "float16", True, -4.0, -1.0)),
        (np.array([INF, -INF], dtype=np.float16), stats([2], "float16", False, None, None)),
        (np.array([-0.0, 65504], dtype=np.float16), stats([2], "float16", False, 0.0, 65504.0)),
        (np.array([True, False]), stats([2], "bool", False, 0, 1)),
        (np.array([-128, 127], dtype=np.int8), stats([2], "int8", False, -128, 127)),
        (np.array([2**64 - 1], dtype=np.uint64), stats([1], "uint64", False, 2**64 - 1, 2**64 - 1)),
        (np.array([1 + 2j, complex(NAN, 0)]), stats([2], "complex128", True, None, None)),
        (np.array(["a", "b"]), stats([2], "<U1", False, None, None)),
        (np.arange(12.0).reshape(3, 4).T, stats([4, 3], "float64", False, 0.0, 11.0)),
        (np.arange(12.0).reshape(3, 4)[::2, 1:3], stats([2, 2], "float64", False, 1.0, 10.0)),
        (
            np.arange(12.0, dtype=np.float16).reshape(3, 4)[::2, 1:3],
            stats([2, 2], "float16", False, 1.0, 10.0),
        ),
        (np.ma.array([1.0, 99.0], mask=[False, True]), stats([2], "float64", False, 1.0, 1.0)),
        ([1, 2, 3], stats([3], "int", False, 1, 3)),
        ([[1.0, NAN], [INF, -5.0]], stats([2, 2], "float", True, -5.0, 1.0)),
        ([1, 2.5], stats([2], "mixed", False, 1, 2.5)),
        ([True, False], stats([2], "bool", False, 0, 1)),
        ([], stats([0], "none", False, None, None)),
        ([np.float32(2), np.float32(NAN)], stats([2], "float32", True, 2.0, 2.0)),
        ((3,), stats([1], "int", False, 3, 3)),
        (3.5, stats([], "float", False, 3.5, 3.5)),
        (None, stats([], "NoneType", False, None, None)),
    ],
)
def test_exact(x: Any, want: dict[str, Any]) -> None:
    check(x, want)


def test_all_half_values_agree_with_numpy() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    every = bits.view(np.float16)
    finite = every[np.isfinite(every)]
    rng = np.random.default_rng(1)
    for _ in range(200):
        x = rng.choice(every, size=5)
        got, ok = tensor_stats(x), x[np.isfinite(x)]
        assert got["has_nan"] == bool(np.isnan(x).any())
        assert got["min_val"] == (float(ok.min()) if ok.size else None)
        assert got["max_val"] == (float(ok.max()) if ok.size else None)
    check(finite, stats([finite.size], "float16", False, -65504.0, 65504.0))


def test_sample_is_told_and_nan_stays_exact() -> None:
    x = np.random.default_rng(2).random((1000, 64), dtype=np.float32)
    x[777, 5] = NAN  # not in the sample
    got = tensor_stats(x, max_elements=6400)
    assert (got["has_nan"], got["sampled"], got["sample_size"]) == (True, True, 6400)
    assert got["min_val"] == float(x[::10].min())
    for dtype in (np.float16, np.float64):
        got = tensor_stats(x.astype(dtype), max_elements=6400)
        assert got["has_nan"]
        assert got["sampled"]
    assert "sampled" not in tensor_stats(x, max_elements=64_000)


def test_sample_sees_every_column() -> None:
    x = np.tile(np.arange(4096.0), (64, 1))
    got = tensor_stats(x, max_elements=4096 * 8)
    assert (got["min_val"], got["max_val"]) != (0.0, 0.0)
    assert got["sample_size"] <= 4096 * 8


def test_no_copy_of_the_array() -> None:
    x = np.random.default_rng(3).random((2048, 1024), dtype=np.float32)
    x[5, 5] = INF
    for view in (x, x.T, x[:, ::2], x.astype(np.float16), x.astype(np.float16)[:, ::2]):
        tensor_stats(view[:1])
        tracemalloc.start()
        tensor_stats(view)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2 << 20, f"{peak} bytes of scratch memory for {view.nbytes}"


def test_what_cannot_be_read_is_told() -> None:
    got = tensor_stats(object())
    assert got["unavailable"]
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    assert "nested" in tensor_stats(deep)["unavailable"]
    with pytest.raises(ValueError, match="max_elements"):
        tensor_stats([1], max_elements=0)


class TestTorch:
    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        self.torch = pytest.importorskip("torch", reason="the tests of tensors need PyTorch")

    def test_types(self) -> None:
        t = self.torch
        check(t.tensor([[1.0, -2.0]]), stats([1, 2], "float32", False, -2.0, 1.0))
        check(t.tensor([1.0, NAN, INF]), stats([3], "float32", True, 1.0, 1.0))
        check(t.tensor([NAN, INF]), stats([2], "float32", True, None, None))
        check(t.tensor([-1.5, 2.0], dtype=t.bfloat16), stats([2], "bfloat16", False, -1.5, 2.0))
        check(t.tensor([-1.5, NAN], dtype=t.bfloat16), stats([2], "bfloat16", True, -1.5, -1.5))
        check(t.tensor([-1.5, INF], dtype=t.float16), stats([2], "float16", False, -1.5, -1.5))
        check(t.tensor([1, 5]), stats([2], "int64", False, 1, 5))
        check(t.tensor([True, False]), stats([2], "bool", False, 0, 1))
        check(t.tensor([]), stats([0], "float32", False, None, None))
        check(t.tensor(4.0), stats([], "float32", False, 4.0, 4.0))
        check(t.tensor([1j]), stats([1], "complex64", False, None, None))
        if hasattr(t, "float8_e4m3fn"):
            check(t.tensor([1.0, -2.0]).to(t.float8_e4m3fn), stats([2], "float8_e4m3fn", False, -2.0, 1.0))
        if hasattr(t, "uint16"):
            check(t.tensor([1, 9], dtype=t.uint16), stats([2], "uint16", False, 1, 9))

    def test_gradients_and_layouts(self) -> None:
        t = self.torch
        with_grad = t.tensor([1.0, 2.0], requires_grad=True) * 2
        check(with_grad, stats([2], "float32", False, 2.0, 4.0))
        with t.inference_mode():
            check(t.tensor([3.0]), stats([1], "float32", False, 3.0, 3.0))
        check(t.arange(6.0).reshape(2, 3).T[::2], stats([2, 2], "float32", False, 0.0, 5.0))
        sparse = t.sparse_coo_tensor(t.tensor([[0], [1]]), t.tensor([5.0]), (2, 2))
        check(sparse, stats([2, 2], "float32", False, 0.0, 5.0))
        assert "meta" in tensor_stats(t.empty(3, device="meta"))["unavailable"]

    def test_large(self) -> None:
        t = self.torch
        x = t.rand(3000, 3000)
        x[2999, 1] = NAN
        for view in (x, x.T, x[:, 1:]):
            got = tensor_stats(view)
            ok = view[t.isfinite(view)]
            assert (got["has_nan"], got["min_val"], got["max_val"]) == (
                True,
                float(ok.min()),
                float(ok.max()),
            )
        assert tensor_stats(x, max_elements=90_000)["sampled"] is True

    def test_gpu(self) -> None:
        t = self.torch
        if not t.cuda.is_available():
            pytest.skip("no CUDA device")
        x = t.rand(4096, 4096, device="cuda", dtype=t.bfloat16)
        x[1, 1] = NAN
        before = t.cuda.memory_allocated()
        t.cuda.reset_peak_memory_stats()
        got = tensor_stats(x)
        assert got["has_nan"] is True
        assert 0 <= got["min_val"] < got["max_val"] < 1.01
        # 4 M elements of scratch in float32 with their mask, not the tensor's 32 MiB again on the host.
        assert t.cuda.max_memory_allocated() - before < 96 << 20
        check(t.tensor([2.0, -INF], device="cuda", dtype=t.float16), stats([2], "float16", False, 2.0, 2.0))
