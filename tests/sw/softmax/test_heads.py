"""Several heads of a softmax between two products: repeated launches of one image."""

import ml_dtypes
import numpy as np
import pytest

import tilewright
from sw.kernels.flash_attention import flash_attention

assert tilewright.__version__


def drawn(rng, most):
    m, s, d = (int(np.exp(rng.uniform(0, np.log(each)))) for each in (most, most, 40))
    g, each = (int(rng.integers(1, 4)) for _ in range(2))
    options = ({}, {"causal": True}, {"window": int(rng.integers(1, 60))})[rng.integers(3)]
    return {"H": g * each, "G": g, "M": m, "S": s, "D": d}, options


def ran(rng, config, most, **how):
    sizes, options = drawn(rng, most)
    h, g, m, s, d = sizes.values()
    spread = rng.choice([0.01, 1, 8])
    arrays = [
        (rng.standard_normal(shape) * spread).astype(ml_dtypes.bfloat16)
        for shape in ((h, m, d), (g, s, d), (g, s, d))
    ]
    with np.errstate(invalid="ignore"):
        return sizes, options, flash_attention.run(*arrays, config=config, **options, **how)


@pytest.mark.few(2)
@pytest.mark.parametrize(("config", "most"), [("tiny", 24), ("small", 90), ("large", 90)])
def test_random_heads_equal_golden_on_the_emulator(config, most, seed, draws):
    rng = np.random.default_rng(seed)
    for _ in range(draws(2, 4)):
        sizes, options, result = ran(rng, config, most, backend="emulator")
        assert result.verified, (sizes, options, result.problems)


@pytest.mark.slow
@pytest.mark.parametrize(("config", "most"), [("tiny", 24), ("small", 90)])
def test_random_heads_equal_golden_on_the_rtl(config, most, seed):
    rng = np.random.default_rng(seed)
    for _ in range(4):
        sizes, options, result = ran(rng, config, most)
        assert result.verified, (sizes, options, result.problems)
