"""Tensors of one axis in a product: refused by their axes; with a side of 1 they compile."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from hw.arch.errors import BadInputError


def outer(x, y, Y):
    tw.store_tile(Y, tw.load_tile(x).T @ tw.load_tile(y))


def test_a_vector_in_a_product_is_refused_by_its_axes_and_a_row_compiles(seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.normal(size=n).astype(ml_dtypes.bfloat16) for n in (9, 20))
    vectors = tw.kernel("x[M], y[N] -> Y[M, N]")(outer)
    message = r"test_vectors_of_products.py:\d+: `x` must have two axes .* `x\[1, N\]` has, not 1"
    with pytest.raises(BadInputError, match=message):
        vectors.run(x, y, config="tiny", backend="emulator")
    rows = tw.kernel("x[1, M], y[1, N] -> Y[M, N]")(outer)
    result = rows.run(x[None], y[None], config="tiny", backend="emulator")
    assert (result.Y == np.outer(x.astype(np.float32), y).astype(ml_dtypes.bfloat16)).all()
