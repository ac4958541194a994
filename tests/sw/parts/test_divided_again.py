"""A part of which no plan fits is divided further, unless a schedule binds it."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from sim.run.job import Problem
from sw import compiler
from sw.prologue.computed_product import ComputedProduct
from tests.sw.prologue.computed_programs import covariance

SIZES = {"M": 128, "N": 32}
CAUSE = "Kernel must fit the chip, but none of 3 plans fits"


@pytest.fixture
def without_computed_products(monkeypatch):
    """Products of computed tiles are recognised, and then none of their plans fits."""
    compile_part = compiler._compile_part

    def refusing(state):
        found = compile_part(state)
        if isinstance(state.region, ComputedProduct):
            raise BadInputError(
                f"{CAUSE}; for a reason", kind="does-not-fit", where="k", value=3, rule="one"
            )
        return found

    monkeypatch.setattr(compiler, "_compile_part", refusing)


def test_a_part_of_which_no_plan_fits_is_divided(without_computed_products, seed):
    compiled = Problem(covariance, named["small"], SIZES, tw.bf16).compile()
    assert [each.shape for each in compiled.intermediates] == [(128, 32)]
    assert f"divided again: {CAUSE}" in compiled.report() and "reason" not in compiled.report()
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(128, 32)).astype(tw.bf16.dtype)
    found = covariance.run(x, rng.random(32, np.float32), config="small", backend="emulator")
    assert found.verified, found.problems


def test_a_scheduled_part_is_refused(without_computed_products):
    schedule = tw.Schedule(tile={"i": 32})
    with pytest.raises(BadInputError, match=f"^{CAUSE}; for a reason"):
        Problem(covariance, named["small"], SIZES, tw.bf16, schedule=schedule).compile()


def test_the_refusal_is_shown_where_no_division_remains(monkeypatch):
    def refusing(state):
        raise BadInputError(CAUSE, kind="does-not-fit", where="k", value=3, rule="one")

    monkeypatch.setattr(compiler, "_compile_part", refusing)
    with pytest.raises(BadInputError, match=CAUSE):
        Problem(covariance, named["small"], SIZES, tw.bf16).compile()
