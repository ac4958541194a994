"""Products of computed tiles in one image: golden equals chips by bytes; what becomes parts."""

import dataclasses
import random
import re

import pytest

import tilewright as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16
from sw.array_spec import arrays_of
from sw.compiler import compile_kernel
from sw.kernels.gda import gda
from sw.passes.accumulate import accumulate
from sw.passes.simplify import simplify
from sw.prologue.computed_product import ComputedProduct
from sw.stages.recognised import recognised
from sw.stages.refusal import Refusals
from tests.sw.prologue.computed_programs import (
    KERNELS,
    activated,
    both,
    covariance,
    gram,
    looked_up,
    result_of,
    scaled,
    served,
    shifted_weights,
)

#: Shapes that one image serves: kernel, chip, sizes.
SERVED = [
    (gda, "small", {"M": 64, "N": 40, "C": 5}),
    (gda, "small", {"M": 192, "N": 64, "C": 16}),
    (gda, "large", {"M": 128, "N": 100, "C": 9}),
    (activated, "small", {"M": 33, "K": 64, "N": 37}),
    (activated, "large", {"M": 100, "K": 64, "N": 96}),
    (scaled, "small", {"M": 33, "K": 48, "N": 37}),
    (scaled, "small", {"M": 300, "K": 48, "N": 40}),
    (both, "small", {"M": 70, "K": 64, "N": 37}),
    (gram, "small", {"M": 512, "N": 64}),
    (covariance, "small", {"M": 128, "N": 32}),
    (covariance, "large", {"M": 96, "N": 48}),
    (looked_up, "small", {"M": 64, "N": 37, "K": 64, "V": 10}),
]


def sizes_of(draw, kernel, config, most):
    """Random sizes, of which the sum has whole vectors."""
    terms = config.width_bits // bf16.bits
    found = {name: draw.randint(1, most) for name in kernel.signature.dims}
    whole = KERNELS[kernel]
    return found | {whole: -(-found[whole] // terms) * terms}


@pytest.mark.few(2)
@pytest.mark.parametrize(("kernel", "chip", "sizes"), SERVED, ids=lambda each: str(each)[:40])
def test_one_image_computes_operand_and_product(kernel, chip, sizes, seed):
    compiled, _ = result_of(kernel, named[chip], sizes, seed)
    assert served(compiled), [part.choice for part in compiled.parts]


@pytest.mark.few(4)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
def test_random_shapes_equal_golden(kernel, seed, draws):
    draw = random.Random(seed)
    for _ in range(draws(1, 12)):
        chip = draw.choice(("tiny", "small", "large"))
        most = 20 if chip == "tiny" else 150
        result_of(kernel, named[chip], sizes_of(draw, kernel, named[chip], most), seed)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("kernel", "sizes"), [(kernel, sizes) for kernel, chip, sizes in SERVED if chip == "small"]
)
def test_the_rtl_equals_golden(kernel, sizes, seed, heavy):
    _, report = result_of(kernel, named["small"], sizes, seed, backend="rtl")
    assert abs(report["predicted_cycles"] / report["cycles"] - 1) < 0.05


@pytest.mark.parametrize("kernel", [gda, both, activated], ids=lambda each: each.name)
def test_the_complete_schedule_gives_the_same_image(kernel):
    sizes = next(each for name, _, each in SERVED if name is kernel)
    compiled = compile_kernel(kernel, named["small"], dims=sizes, dtype=bf16)
    again = compile_kernel(
        kernel, named["small"], dims=sizes, dtype=bf16, schedule=compiled.schedule
    )
    assert again.parts[0].image == compiled.parts[0].image


@pytest.mark.parametrize("field", ["row_par", "col_par", "slots", "tile"])
def test_a_schedule_chooses_for_the_product(field, seed):
    choice = {"tile": {"i": 32}, "col_par": {"sigma": 2}}.get(field, {"sigma": 1})
    schedule = tw.Schedule(**{field: choice})
    sizes = {"M": 64, "N": 24, "C": 5}
    compiled, _ = result_of(gda, named["small"], sizes, seed, schedule=schedule)
    assert served(compiled) and (field != "tile" or compiled.parts[0].sizes["i"] == 32)


@pytest.mark.parametrize(
    ("field", "count", "message"),
    [("row_par", 2, "must be 1, not 2"), ("col_par", 1, "must be 16 times a number, not 8")],
)
def test_a_choice_that_no_image_has_is_refused(field, count, message):
    schedule = tw.Schedule(**{field: {"sigma": count}})
    sizes = {"M": 64, "N": 24, "C": 5}
    with pytest.raises(BadInputError, match=message):
        compile_kernel(gda, named["small"], dims=sizes, dtype=bf16, schedule=schedule)


@tw.kernel("X[M, K], W[K, N] -> Y[M, N]: fp32")
def normalized(X, W, Y):
    weights = tw.load_tile(W)
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], (x - tw.row_max(x)).to(X.dtype) @ weights)


@tw.kernel("X[M, K], W[K, N] -> Y[M, N]")
def activated_twice(X, W, Y):
    weights = tw.load_tile(W)
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.silu(tw.silu(tw.load_tile(X[i, :])).to(X.dtype) @ weights))


def refused(kernel, config, **sizes):
    program = simplify(accumulate(kernel.trace(dtype=bf16, **sizes)))
    return str(Refusals(config).of(program, arrays_of(program)))


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("kernel", "chip", "sizes", "message"),
    [
        (activated, "small", {"M": 33, "K": 60, "N": 37}, "Terms .* must be 16 times a number"),
        (activated, "tiny", {"M": 8, "K": 8, "N": 8}, "PCUs of a product .* at most 2, not 3"),
        (activated, "small", {"M": 256, "K": 256, "N": 256}, "more cycles than its parts take"),
        (looked_up, "small", {"M": 64, "N": 37, "K": 64, "V": 300}, "at most 256, .* not 300"),
        (normalized, "small", {"M": 32, "K": 32, "N": 32}, "a tile that needs statistics"),
        (activated_twice, "small", {"M": 32, "K": 32, "N": 32}, "on a product of computed tiles"),
    ],
)
def test_what_one_image_does_not_serve_becomes_parts(kernel, chip, sizes, message, seed):
    assert re.search(message, refused(kernel, named[chip], **sizes))
    compiled, _ = result_of(kernel, named[chip], sizes, seed)
    assert len(compiled.parts) > 1


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kernel", "chip", "sizes"),
    [
        (gram, "large", {"M": 16, "N": 174}),  # bound by stores
        (shifted_weights, "small", {"M": 132, "K": 16, "N": 184}),
        (looked_up, "large", {"M": 245, "K": 80, "N": 13, "V": 50}),  # tables for each slab
        (gda, "small", {"M": 16, "N": 363, "C": 50}),
        (both, "small", {"M": 81, "K": 32, "N": 90}),
    ],
)
def test_one_image_is_not_slower_than_its_parts(kernel, chip, sizes, monkeypatch):
    found = compile_kernel(kernel, named[chip], dims=sizes, dtype=bf16)

    def in_parts(program, *others):
        work = recognised(program, *others)
        if isinstance(work, ComputedProduct):
            raise BadInputError("no image", kind="does-not-fit", where="k", value=1, rule="none")
        return work

    monkeypatch.setattr("sw.stages.refusal.recognised", in_parts)
    parts = compile_kernel(kernel, named[chip], dims=sizes, dtype=bf16)
    assert found.predicted_cycles <= 1.05 * parts.predicted_cycles


def test_a_chip_without_lanes_is_refused():
    config = dataclasses.replace(
        named["small"], pcu=dataclasses.replace(named["small"].pcu, lanes=0)
    )
    assert "`pcu.lanes` must be at least 2" in refused(gda, config, M=64, N=40, C=5)
    with pytest.raises(BadInputError, match="lanes"):
        compile_kernel(gda, config, dims={"M": 64, "N": 40, "C": 5}, dtype=bf16)


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["small", "large"])
@pytest.mark.parametrize("rows", [576, 640, 768])
def test_slabs_are_as_short_as_of_other_sums(chip, rows):
    """Of 36, 40 and 48 tiles, too: the five longest slabs have at least two or three tiles."""
    cycles = {
        each: compile_kernel(
            gda, named[chip], dims={"M": each, "N": 64, "C": 16}, dtype=bf16
        ).predicted_cycles
        for each in (512, rows, 1024)
    }
    between = cycles[512] + (cycles[1024] - cycles[512]) * (rows - 512) / 512
    assert cycles[rows] <= 1.005 * between


def test_slabs_that_leave_room_for_two_slots_are_chosen():
    """Lanes take as long whatever the slabs, of which a PMU holds one of 16 tiles."""
    dims = {"M": 768, "N": 90, "C": 16}
    (part,) = compile_kernel(gda, named["large"], dims=dims, dtype=bf16).parts
    assert min(home.slots for home in part.homes.values()) > 1
