"""Lane codes of kernels: bits of the golden interpreter, and numbers of phases."""

import re
from pathlib import Path

import numpy as np
import pytest

import sw.language as tw
from hw.arch.errors import BadInputError
from sim.golden import golden
from sw.ir.element_operations import OPERATIONS
from sw.lane_codes.lane_arithmetic import Arithmetic
from sw.lane_codes.lane_codes import lane_codes
from sw.lane_codes.lane_words import WordTable
from sw.language.program_error import ProgramError
from tests.sw.stages.lane_machine import parts_of, region_results


@tw.kernel("X[M, N], Z[M, N] -> Y[M, N]")
def add(X, Z, Y):
    tw.store_tile(Y[:, :], tw.load_tile(X[:, :]) + tw.load_tile(Z[:, :]))


@tw.kernel("X[M, N] -> Y[M, N]")
def softmax(X, Y):
    x = tw.load_tile(X[:, :])
    e = tw.exp(x - tw.row_max(x))
    tw.store_tile(Y[:, :], e / tw.row_sum(e))


@tw.kernel("X[M, N] -> Y[M, N]")
def rms(X, Y):
    x = tw.load_tile(X[:, :])
    tw.store_tile(Y[:, :], x * tw.rsqrt(tw.row_mean(x * x) + 1e-5))


@tw.kernel("X[M, N], G[N] -> Y[M, N]")
def rms_norm(X, G, Y):
    x = tw.load_tile(X[:, :])
    tw.store_tile(Y[:, :], x * tw.rsqrt(tw.row_mean(x * x) + 1e-5) * tw.load_tile(G))


@tw.kernel("X[M, N] -> Y[M, N]")
def normal(X, Y):
    x = tw.load_tile(X[:, :])
    d = x - tw.row_mean(x)
    tw.store_tile(Y[:, :], d * tw.rsqrt(tw.row_mean(d * d) + 1e-5))


@tw.kernel("X[M, N], G[N], B[N] -> Y[M, N]")
def layer_norm(X, G, B, Y):
    x = tw.load_tile(X[:, :])
    d = x - tw.row_mean(x)
    y = d * tw.rsqrt(tw.row_mean(d * d) + 1e-5)
    tw.store_tile(Y[:, :], y * tw.load_tile(G) + tw.load_tile(B))


@tw.kernel("X[M, N] -> Y[M, N]")
def silu(X, Y):
    tw.store_tile(Y[:, :], tw.silu(tw.load_tile(X[:, :])))


@tw.kernel("X[M, N] -> Y[M, N]")
def gelu(X, Y):
    tw.store_tile(Y[:, :], tw.gelu(tw.load_tile(X[:, :])))


@tw.kernel("X[M, N] -> Y[M, N]")
def reused(X, Y):
    e = tw.exp(tw.load_tile(X[:, :]))
    tw.store_tile(Y[:, :], (e + 1) * e)


#: Kernels, and the phases of each of their programs: over packets, and over statistics.
KERNELS = [
    (add, [(1, 0)]),
    (softmax, [(3, 1)]),
    (rms, [(2, 1)]),
    (rms_norm, [(2, 1), (1, 0)]),
    (normal, [(3, 2)]),
    (layer_norm, [(3, 2), (1, 0), (1, 0)]),
    (silu, [(2, 0)]),
    (gelu, [(4, 0)]),
    # Its exponential is sent: one chain cannot take it twice.
    (reused, [(2, 0)]),
]
SPECIAL = [0.0, -0.0, 1e-40, -1e-40, 80.0, -80.0, 3e38, np.inf, -np.inf, np.nan]


def drawn(random, program, *, special):
    """Inputs of a program, with rows that hold special numbers."""
    arrays = {}
    for tensor in program.tensors:
        values = random.normal(size=tensor.type.shape) * 3
        if special:
            chosen = random.random(values.shape) < 0.05
            values = np.where(chosen, random.choice(SPECIAL, values.shape), values)
        with np.errstate(all="ignore"):
            arrays[tensor.name] = values.astype(tensor.type.format.dtype)
    return arrays


def compare(program, arrays, **how):
    """The codes of a program, if they have the bits of golden."""
    bits = how.get("function_bits", 16)
    wanted = golden(program, arrays, function_bits=bits)
    codes, found = region_results(program, arrays, **how)
    for name, each in found.items():
        assert wanted[name].shape == np.broadcast_shapes(each.shape, wanted[name].shape)
        assert np.ascontiguousarray(each).tobytes() == wanted[name].tobytes(), name
    return codes


@pytest.mark.few(7)
@pytest.mark.parametrize("special", [False, True], ids=["plain", "special"])
@pytest.mark.parametrize(("kernel", "wanted"), KERNELS, ids=lambda each: getattr(each, "name", ""))
def test_kernels_have_goldens_bits_in_few_phases(kernel, wanted, special, seed):
    random = np.random.default_rng(seed)
    for dtype, out in ((tw.bf16, tw.bf16), (tw.bf16, tw.fp32), (tw.fp32, tw.bf16)):
        for m, n in ((20, 33), (8, 1), (1, 8), (1, 1)):
            program = kernel.trace(M=m, N=n, dtype=dtype, out=out)
            arrays = drawn(random, program, special=special)
            bits, width = int(random.integers(12, 25)), int(random.choice([64, 256, 512]))
            codes = compare(program, arrays, lane_axis=0, width_bits=width, function_bits=bits)
            if min(m, n) > 1:
                counts = [(c.packet_phases, len(c.phases) - c.packet_phases) for c in codes]
                assert counts == wanted


@pytest.mark.parametrize("kernel", [silu, gelu, rms_norm, layer_norm], ids=lambda each: each.name)
def test_programs_of_few_phases_are_a_chain_of_results(kernel, seed):
    program = kernel.trace(M=9, N=20, dtype=tw.bf16)
    arrays = drawn(np.random.default_rng(seed), program, special=True)
    most = 1 if kernel in (silu, gelu) else 6
    codes = compare(program, arrays, lane_axis=0, phases=most)
    inputs = {node.result.name for node in program.nodes if not node.operands}
    assert codes[0].source in inputs and len(codes) > 1
    for before, code in zip(codes, codes[1:]):
        (result,) = (each.result for each in before.phases if each.result)
        assert code.source == result
        assert {each.auxiliary for each in code.phases} <= {*inputs, None}


@tw.kernel("X[M, N], G[N], H[N] -> Y[M, N]")
def three_vectors(X, G, H, Y):
    x, g, h = (tw.load_tile(each) for each in (X, G, H))
    tw.store_tile(Y[:, :], (x * g + h) * g)


@tw.kernel("X[M, N], G[N]: fp32, H[N]: bf16 -> Y[M, N]")
def two_formats(X, G, H, Y):
    x, g, h = (tw.load_tile(each) for each in (X, G, H))
    tw.store_tile(Y[:, :], x * g + h)


@tw.kernel("X[M, N], G[N], H[N] -> Y[M, N]")
def clipped(X, G, H, Y):
    """Both operations need the ALU."""
    x, g, h = (tw.load_tile(each) for each in (X, G, H))
    tw.store_tile(Y[:, :], tw.maximum(tw.minimum(x, h), g))


@pytest.mark.parametrize(
    ("kernel", "alone", "paired"),
    [(layer_norm, 3, 2), (three_vectors, 3, 2), (two_formats, 2, 2), (clipped, 2, 2)],
    ids=lambda each: getattr(each, "name", ""),
)
def test_two_vectors_may_be_a_stream_of_pairs(kernel, alone, paired, seed):
    """Programs without pairs, and with them."""
    for m, n in ((20, 33), (9, 1)):
        program = kernel.trace(M=m, N=n, dtype=tw.bf16)
        arrays = drawn(np.random.default_rng(seed), program, special=True)
        for pairs, count in ((False, alone), (True, paired)):
            codes = compare(program, arrays, lane_axis=0, pairs=pairs)
            assert n == 1 or len(codes) == count


def run(body, *, lane_axis=0, dtype=tw.bf16, shapes=("M, N", "M, N"), **how):
    """Codes of a program of two inputs."""
    first, second = shapes

    @tw.kernel(f"X[{first}], Z[{second}] -> Y[M, N]")
    def program(X, Z, Y):
        x, z = tw.load_tile(X), tw.load_tile(Z)
        tw.store_tile(Y[:, :], body(x, z))

    traced = program.trace(M=9, N=20, dtype=dtype)
    _, nodes, inputs, outputs, _ = parts_of(traced)
    return lane_codes(nodes, inputs, outputs, lane_axis=lane_axis, **how)


INT8 = {"dtype": tw.int8}
REFUSALS = [
    ("Lanes do not reduce int32", lambda x, z: x - tw.row_max(x), {"dtype": tw.int32}),
    ("`*` of int32 takes a power of two on chips", lambda x, z: x * z, {"dtype": tw.int32}),
    ("`*` of int32 takes a power of two", lambda x, z: x * z * x * z, INT8),
    ("sum is at most 16,777,216, not 41,943,040", lambda x, z: tw.row_sum(x * x * 128) + z, INT8),
    ("A reduction over positions of a vector", lambda x, z: x - tw.row_max(x), {"lane_axis": 1}),
    ("is stored as it is loaded, which is no", lambda x, z: tw.buffer(x), {}),
    ("has rows and columns, and no tile", lambda x, z: x + z, {"shapes": ("M, 1", "1, N")}),
    (
        "`transpose` is not an operation of lanes",
        lambda x, z: x.T + z,
        {"shapes": ("N, M", "M, N")},
    ),
    ("Lanes do not spread `", lambda x, z: x + z, {"shapes": ("M, N", "1, 1")}),
    ("fits no lane programs of 1 phases", lambda x, z: tw.exp(x - tw.row_max(x)), {"phases": 1}),
]


@pytest.mark.parametrize(("message", "body", "how"), REFUSALS, ids=[each[0] for each in REFUSALS])
def test_what_lanes_cannot_compute_is_refused_at_its_line(message, body, how):
    with pytest.raises(ProgramError, match=re.escape(message)) as refused:
        run(body, **how)
    assert refused.value.kind == "unserved" and refused.value.where.startswith(Path(__file__).name)


def test_a_tile_of_another_format_is_refused_by_the_formats_of_lanes():
    with pytest.raises(
        ProgramError, match="Lanes take tiles of fp32, int32, bf16, int8, and `"
    ) as refused:
        run(lambda x, z: x + z, dtype=tw.fp16)
    assert refused.value.kind == "format" and refused.value.where.startswith(Path(__file__).name)


def test_lanes_have_every_operation_of_the_language():
    """Comparisons and choices are computed as conditions."""
    math = Arithmetic(WordTable(16))
    others = [each for each in OPERATIONS.values() if not (each.compares or each.chooses)]
    missing = [
        f"{each.name} of {format_}"
        for each in others
        for format_, arithmetic in (("fp32", each.fp32), ("int32", each.int32))
        if arithmetic is not None and not math.computes(each.name, format_ == "int32")
    ]
    assert missing == [], "sw.lane_codes.lane_arithmetic must have each operation on each format"


@pytest.mark.parametrize("dtype", [tw.bf16, tw.int32], ids=lambda dtype: dtype.name)
def test_an_operation_that_lanes_lack_is_named_at_its_line(dtype, monkeypatch):
    monkeypatch.setattr(Arithmetic, "computes", lambda *_: False)
    name = "int32" if dtype == tw.int32 else "fp32"
    message = f"`maximum` of {name} is no operation of lanes"
    with pytest.raises(ProgramError, match=message) as refused:
        run(tw.maximum, dtype=dtype)
    assert refused.value.kind == "unserved" and refused.value.where.startswith(Path(__file__).name)


@pytest.mark.parametrize("phases", [0, 7])
def test_phases_that_no_program_has_are_refused(phases):
    with pytest.raises(BadInputError, match="Phases of a lane program must be"):
        run(lambda x, z: x + z, phases=phases)
