"""Every kernel of `sw/kernels`, compiled: golden, chip and definition are equal by bytes.

The definition is `kernels_by_definition`, which imports nothing of the project. A run also compares
the memory around the arrays.
"""

import re

import numpy as np
import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16, fp32
from sim.run.driver import compile_job, run
from sim.run.job import Job
from sw.ir.nodes import Loop
from sw.ir.rewrite import walk
from tests.sw.kernels import kernels_by_definition
from tests.sw.kernels.kernels_by_definition import BY_DEFINITION
from tests.sw.kernels.test_golden_kernels import (
    ATTENTION,
    HALVES,
    KERNELS,
    convolution_sizes,
    formats_of,
    operands,
    problem_of,
    require_definition,
)

#: Shapes of the slow tests, by chip: with more row blocks than PCUs, with rows longer than a slot.
SHAPES = {"small": (20, 5, 3), "tiny": (4, 1, 1), "large": (4, 1, 1)}
#: Largest product of all sizes, which the emulator takes seconds for.
MOST_WORK = 3e7
#: Largest size of a decoder layer, whose tokens are one tile (docs/kernels.md).
MOST_TOKENS = 64


def random_sizes(rng, name, most, *, many_rows=False, long_rows=False):
    """Log-uniform sizes, one in eight of them 1; a half of a row that is turned is 16 bytes."""
    if name == "conv2d":
        sizes = convolution_sizes(rng, min(most, 90))
        if many_rows:
            # Wide images.
            sizes |= {"Q": most, "W": most + sizes["S"] - 1}
        return sizes | ({"C": int(rng.integers(90, 180))} if long_rows else {})
    sizes = {}
    if name == "decoder_layer":
        most = min(most, MOST_TOKENS)
    for dim in KERNELS[name].signature.dims:
        size = 1 if rng.random() < 0.125 else int(np.exp(rng.uniform(0, np.log(most))))
        sizes[dim] = size
    if many_rows:
        sizes["M"] = int(rng.integers(most // 2, most + 1))
    if long_rows:
        long = next(dim for dim in ("S", "F", "K", "N") if dim in sizes)
        sizes[long] = int(rng.integers(most * 3 // 4, most + 1))
    if "H" in sizes:
        sizes["G"] = int(rng.integers(1, 4))
        sizes["H"] = sizes["G"] * int(rng.integers(1, 4))
    while np.prod([float(size) for size in sizes.values()]) > MOST_WORK:
        largest = max((dim for dim in sizes if dim not in "GH"), key=sizes.get)
        sizes[largest] = sizes[largest] * 2 // 3
    for turned in sizes.keys() & {dim for kernel, dim in HALVES if kernel == name}:
        sizes[turned] = max(32, sizes[turned] // 32 * 32)
    if name == "decoder_layer":
        sizes["S"] += sizes["M"]
    return {dim: sizes[dim] for dim in KERNELS[name].signature.dims}


def formats(name):
    # A softmax between two products has a result in bf16 (docs/online.md).
    return [(bf16, None)] if name in ATTENTION else formats_of(name)


def blocks_of(name, compiled):
    """The blocks of a softmax over blocks: the part of its result that the compiler chooses."""
    loops = [node for node in walk(compiled.golden_program.nodes) if isinstance(node, Loop)]
    tiles = {loop.index: loop.tile for loop in loops}
    if name == "attention":
        return {"block": tiles["keys"]} if "keys" in tiles else {"exact": True}
    if name in ATTENTION:
        # One for each part of a window, which have further names.
        return {
            noun: [loop.tile for loop in loops if re.fullmatch(rf"{index}(\.\d+)?", loop.index)]
            for noun, index in (("tile", "i"), ("block", r"attend\.j"))
        }
    return {"block": tiles["attend.j"]} if name == "decoder_layer" else {}


def few_keys(name, config, sizes):
    """Sizes of which the only AGCU of `tiny` keeps all keys and values, in a PMU each."""
    if config != "tiny" or name not in ATTENTION:
        return sizes
    return sizes | {"S": min(sizes["S"], 1024 // max(sizes["D"], 8))}


def narrow_rows(name, config, sizes):
    """Sizes of which a PMU holds the columns of an AGCU of a table that is added to."""
    if name not in ("scatter_add", "histogram"):
        return sizes
    chip = named[config]
    lanes = chip.width_bits // 32
    most = chip.pmu.capacity_bytes // 8  # elements of half of it, for rows may take twice as many
    found = sizes | {"V": min(sizes["V"], most // lanes)}
    if "D" in found:
        columns = most // found["V"] // lanes * lanes * chip.agcu.count
        found["D"] = min(found["D"], max(lanes, columns))
    return found


def random_attention(rng, config, *, most, work=MOST_WORK):
    """Sizes and options of `flash_attention`: lengths of 1 to ``most``, depths of 1 to 256."""

    def log_uniform(limit):
        return int(np.exp(rng.uniform(0, np.log(limit + 1))))

    groups = int(rng.integers(1, 4))
    sizes = {"H": groups * int(rng.integers(1, 4)), "G": groups}
    sizes |= {"M": log_uniform(most), "S": log_uniform(most)}
    sizes["D"] = log_uniform(64 if config == "tiny" else 256)
    if rng.random() < 0.25:
        sizes["S"] = sizes["M"]
    sizes["S"] = few_keys("flash_attention", config, sizes)["S"]
    while np.prod([float(sizes[dim]) for dim in "HMSD"]) > work:
        largest = max("MS", key=sizes.get)
        sizes[largest] = sizes[largest] * 2 // 3
    options = {"causal": bool(rng.random() < 0.4)}
    if rng.random() < 0.3:
        options["window"] = log_uniform(sizes["S"])
    return sizes, options


def require_equal(
    rng, name, config, sizes, dtype, out, *, mild=False, backend="emulator", options=None
):
    """Compile and run a kernel; golden, chip and definition must agree."""
    options = options or {}
    sizes = narrow_rows(name, config, sizes)
    problem = problem_of(name, sizes, dtype, out, config=config, options=options)
    inputs = operands(rng, problem, mild=mild)
    told = (name, config, sizes, options, dtype, out)
    job = Job(problem, backend=backend, inputs=inputs, seed=int(rng.integers(1, 1000)))
    compiled, fields = compile_job(job)
    outcome = run(job, compiled, fields)
    assert outcome.report["verified"], (*told, outcome.problems)
    bits = named[config].pcu.function_bits
    how = blocks_of(name, compiled) | options
    require_definition(problem, inputs, outcome.outputs, bits, told, **how)
    return outcome


def test_every_kernel_has_a_definition():
    assert set(BY_DEFINITION) == set(KERNELS)


@pytest.mark.few(7)
@pytest.mark.parametrize(
    "name",
    [
        # Its tokens are compared with the definition by tests/sim/run/test_token_by_token.py.
        pytest.param(name, marks=pytest.mark.slow if name == "decoder_layer" else ())
        for name in KERNELS
    ],
)
def test_a_chip_computes_the_definition(name, seed):
    rng = np.random.default_rng(seed)
    config = rng.choice(["tiny", "small"])
    dtype, out = formats(name)[rng.integers(len(formats(name)))]
    require_equal(rng, name, str(config), random_sizes(rng, name, 40), dtype, out)


def test_a_chip_computes_attention_of_any_shape_and_mask(seed, draws):
    rng = np.random.default_rng(seed)
    for number in range(draws(4, 10)):
        config = ("tiny", "small")[number % 2]
        sizes, options = random_attention(rng, config, most=64, work=3e5)
        require_equal(rng, "flash_attention", config, sizes, bf16, None, options=options)


def test_a_chip_attends_to_keys_of_a_pool_in_any_order(seed):
    """Numbers of rows are drawn, so rows come several times, and keys of a later page first."""
    rng = np.random.default_rng(seed)
    for config in ("tiny", "small"):
        sizes, options = random_attention(rng, config, most=48, work=1e5)
        sizes = {"R": int(rng.integers(1, 90))} | sizes
        require_equal(rng, "paged_attention", config, sizes, bf16, None, options=options)


def require_unfused(sizes, config, reason):
    """Attention that the units of a softmax have no room for: several parts, and the reason."""
    compiled, _ = compile_job(Job(problem_of("flash_attention", sizes, bf16, config=config)))
    assert len(compiled.parts) > 1 and all(part.softmax is None for part in compiled.parts)
    (note,) = (each for each in compiled.notes if each.startswith("a softmax over blocks"))
    assert reason in note


@pytest.mark.slow
def test_keys_that_do_not_fit_are_not_fused():
    sizes = {"H": 2, "G": 1, "M": 6, "S": 425, "D": 16}
    wanted = "Bytes of keys, and of values, must be at most 4096 where one AGCU loads all, not "
    require_unfused(sizes, "tiny", wanted)


@pytest.mark.few(1)
@pytest.mark.parametrize("depth", [257, 268, 322])
def test_keys_longer_than_a_box_may_end_inside_a_tile(depth, seed):
    rng = np.random.default_rng(seed)
    sizes = {"H": 2, "G": 1, "M": 33, "S": 50, "D": depth}
    require_equal(rng, "flash_attention", "small", sizes, bf16, None, options={"causal": True})


def test_every_tile_meets_all_keys_where_the_first_query_sees_none():
    """A value that is not finite shows it: hidden, it makes its column NaN in the blocks met."""
    sizes = {"H": 1, "G": 1, "M": 140, "S": 64, "D": 8}
    options = {"causal": True}
    problem = problem_of("flash_attention", sizes, bf16, config="small", options=options)
    inputs = operands(np.random.default_rng(1), problem, mild=True)
    inputs["V"][0, -1, 3] = np.inf
    job = Job(problem, backend="emulator", inputs=inputs)
    compiled, fields = compile_job(job)
    outcome = run(job, compiled, fields)
    assert outcome.report["verified"], outcome.problems
    how = blocks_of("flash_attention", compiled) | options
    require_definition(problem, inputs, outcome.outputs, 16, sizes, **how)


@pytest.mark.slow
def test_keys_and_values_that_need_too_many_buffers_are_not_fused():
    sizes = {"H": 1, "G": 1, "M": 20, "S": 20, "D": 700}
    wanted = "3 buffers of keys, 1 of queries, 3 of values and 3 of results need 10 PMUs, and the "
    require_unfused(sizes, "small", wanted)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("config", SHAPES)
@pytest.mark.parametrize("name", KERNELS)
def test_random_shapes_on_the_emulator(name, config, seed):
    rng = np.random.default_rng(seed)
    shapes, many_rows, long_rows = SHAPES[config]
    for number in range(shapes):
        rows = number < many_rows
        long = many_rows <= number < many_rows + long_rows
        sizes = random_sizes(rng, name, 700, many_rows=rows, long_rows=long)
        dtype, out = formats(name)[number % len(formats(name))]
        require_equal(rng, name, config, sizes, dtype, out, mild=bool(rng.random() < 0.3))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("config", ["tiny", "small"])
@pytest.mark.parametrize("name", KERNELS)
def test_random_shapes_on_the_rtl(name, config, seed, heavy):
    rng = np.random.default_rng(seed)
    for number in range(3):
        dtype, out = formats(name)[number % len(formats(name))]
        sizes = random_sizes(rng, name, 60)
        require_equal(rng, name, config, sizes, dtype, out, backend="rtl")


def test_another_order_of_a_sum_is_found(monkeypatch, seed):
    """Sums from the last column on have other bits than those of a chip."""
    rng = np.random.default_rng(seed)
    ascending = kernels_by_definition.row_sum
    monkeypatch.setattr(kernels_by_definition, "row_sum", lambda x: ascending(x[:, ::-1]))
    sizes = {"M": 60, "N": 200}
    with pytest.raises(AssertionError):
        require_equal(rng, "layer_norm", "small", sizes, bf16, fp32, mild=True)
