"""The public face of the language: a kernel is called with arrays and gives golden arrays."""

from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from hw.numeric.formats import bf16, fp32
from sim.operands import random_operand
from sim.oracle import product
from sw.kernels.matmul import matmul

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize("out", ["bf16", "fp32"])
def test_a_called_matmul_is_the_reference_by_bytes(out, seed):
    rng = np.random.default_rng(seed)
    a = random_operand(rng, (300, 70), bf16, special_share=0.01)
    b = random_operand(rng, (70, 90), bf16, special_share=0.01)
    answer = matmul(a, b, out=getattr(tw, out))
    expected = product(a, b, (bf16 if out == "bf16" else fp32).dtype)
    assert answer.tobytes() == expected.tobytes()


def test_the_face_has_the_language_and_nothing_else():
    assert tw.metapipe is not None and tw.inf > 0
    with pytest.raises(AttributeError, match="has no `metapip`; did you mean 'metapipe'"):
        _ = tw.metapip
