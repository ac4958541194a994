"""Kernels: options and sizes, arrays of a call, formats of outputs, references, names."""

import sys
import time

import ml_dtypes
import numpy as np
import pytest

import sw.language as tw
from sw.ir.rewrite import walk
from sw.ir.types import Role
from sw.kernels.matmul import matmul


@pytest.mark.parametrize(
    ("signature", "parameters", "message"),
    [
        ("A[M] -> C[M]", "A", "Tensor `C` of the signature must be a parameter of `f`"),
        ("A[M] -> C[M]", "A, B, C", r"`B` must be a tensor .* tensors left are C"),
        ("A[M] -> C[M]", "A, C, M=4", "Option `M` must not have the name of a tensor"),
        ("A[M] -> C[M]", "A, C=1", "Option `C` must not have the name of a tensor"),
        ("A[M] -> C[M]", "A, *C", "Parameter `C` must have a name"),
    ],
)
def test_parameters_must_be_tensors_or_have_a_default(signature, parameters, message):
    names = {}
    exec(f"def f({parameters}): pass", names)
    with pytest.raises(tw.ProgramError, match=message):
        tw.kernel(signature)(names["f"])


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"B": 4}, "Size `B` must be of a dimension; dimensions are M"),
        ({"M": 0}, "Size `M` must be a whole number of 1 or more, not 0"),
        ({"M": "x"}, "Size `M` must be a whole number of 1 or more, not 'x'"),
    ],
)
def test_default_sizes_must_be_of_dimensions(sizes, message):
    def f(A, C):
        tw.store_tile(C, tw.load_tile(A))

    assert tw.kernel("A[M] -> C[M]", sizes={"M": 4})(f).sizes == {"M": 4}
    with pytest.raises(tw.ProgramError, match=message) as caught:
        tw.kernel("A[M] -> C[M]", sizes=sizes)(f)
    assert caught.value.kind == "signature"


def trace(**values):
    return matmul.trace(**({"M": 8, "K": 8, "N": 8, "dtype": tw.bf16} | values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"M": 0}, "Dimension `M` must be a whole number of 1 or more, not 0"),
        ({"K": 2.5}, "Dimension `K` must be a whole number of 1 or more, not 2.5"),
        ({"NM": 64}, "`matmul` has no parameter `NM`; parameters are M, K, N, MM, NN; did you"),
        ({"dtype": None}, "Input `A` of `matmul` must have a format"),
        ({"dtype": {"A": tw.bf16}}, "Input `B` of `matmul` must have a format"),
        ({"dtype": "e2m1"}, "`A`: Format must be one of .* not e2m1, which is not supported yet"),
        ({"out": "fp12"}, "`C`: Format must be one of .* not 'fp12'"),
        ({"MM": 0}, "Block size of `metapipe` must be a whole number of 1 or more, not 0"),
        ({"dtype": tw.fp32}, "its left operand is fp32: write `.to"),
        ({"dtype": {"A": tw.bf16, "B": tw.int8}}, "or floats of one width, not bf16 and int8"),
        ({"dtype": tw.int8, "out": tw.fp32}, "`C` is fp32 and cannot take a tile of int32"),
    ],
)
def test_sizes_formats_and_options_that_do_not_fit_are_refused(values, message):
    with pytest.raises(tw.ProgramError, match=message):
        trace(**values)


def test_a_missing_dimension_is_named():
    with pytest.raises(tw.ProgramError, match="Dimension `N` of `matmul` must have a size"):
        matmul.trace(M=8, K=8, dtype=tw.bf16)


@pytest.mark.parametrize(
    ("dtype", "out", "format_"),
    [
        (tw.bf16, None, tw.bf16),
        (tw.bf16, tw.fp32, tw.fp32),
        (tw.bf16, {"C": "fp32"}, tw.fp32),
        (tw.int8, None, tw.int32),
        (tw.int8, tw.int8, tw.int8),
    ],
)
def test_an_output_takes_out_or_the_operands_format_or_int32(dtype, out, format_):
    assert trace(dtype=dtype, out=out).tensor("C").type.format == format_


def test_an_output_that_declares_a_format_has_it():
    def copy(A, C):
        tw.store_tile(C, tw.load_tile(A))
        assert C.dtype == tw.fp32

    program = tw.kernel("A[M, N] -> C[M, N]: fp32")(copy).trace(M=2, N=2, dtype=tw.bf16)
    assert program.tensor("C").type.format == tw.fp32


def test_an_output_stored_before_its_carry_widens_takes_the_wide_format():
    def running(A, C):
        total = tw.zeros(1, 4)
        for i in tw.each(8):
            tw.store_tile(C[i, :], total + total)
            total += tw.load_tile(A[i, :])

    program = tw.kernel("A[M, N] -> C[M, N]")(running).trace(M=8, N=4, dtype=tw.fp32)
    assert program.tensor("C").type.format == tw.fp32


def test_an_output_never_stored_or_in_two_formats_is_refused():
    def nothing(A, C):
        tw.load_tile(A)

    def twice(A, C):
        tw.store_tile(C[0:1, :], tw.load_tile(A[0:1, :]))
        tw.store_tile(C[1:2, :], tw.load_tile(A[1:2, :]).to(tw.int8))

    def value(A, C):
        tw.store_tile(C, tw.load_tile(A))
        return 1

    for function, message in (
        (nothing, "Output `C` of `nothing` is never stored"),
        (twice, "Output `C` must be stored in one format"),
        (value, "Kernel `value` must store tiles and return nothing"),
    ):
        with pytest.raises(tw.ProgramError, match=message):
            tw.kernel("A[M, N] -> C[M, N]")(function).trace(M=2, N=2, dtype=tw.bf16)


def array(*shape, dtype=ml_dtypes.bfloat16):
    return np.zeros(shape, dtype)


def test_arrays_are_bound_by_order_or_by_name():
    for bound in (
        matmul.bind(array(3, 4), array(4, 5)),
        matmul.bind(array(3, 4), B=array(4, 5)),
        matmul.bind(B=array(4, 5), A=array(3, 4)),
    ):
        assert bound.dims == {"M": 3, "K": 4, "N": 5}
        assert bound.formats == {"A": tw.bf16, "B": tw.bf16}
        assert set(bound.arrays) == {"A", "B"}


@pytest.mark.parametrize(
    ("arrays", "named", "message"),
    [
        ((array(3, 4),), {}, "`matmul` must be given `B`"),
        ((array(3, 4),) * 3, {}, "`matmul` takes 2 arrays, not 3"),
        ((array(3, 4),), {"A": array(3, 4)}, "is given `A` twice"),
        ((array(3, 4),), {"D": array(3, 4)}, "has no input `D`; inputs are A, B"),
        ((array(3, 4), array(5, 6)), {}, "takes `B` with K = 4, not 5"),
        ((array(3), array(5, 6)), {}, "takes `A` with 2 dimensions, not 1"),
        ((array(3, 0), array(0, 6)), {}, "takes `A` with K of 1 or more, not 0"),
        ((array(3, 4, dtype=float), array(4, 5)), {}, "cannot take `A`: Format must be one of"),
        (
            (array(3, 4, dtype=ml_dtypes.int4), array(4, 5)),
            {},
            "cannot take `A`: .* not int4, which is not supported yet",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays, named, message):
    with pytest.raises(tw.ProgramError, match=message) as caught:
        matmul.bind(*arrays, **named)
    assert caught.value.kind == "argument"


def test_an_array_in_another_format_than_declared_is_refused():
    kernel = tw.kernel("A[M]: int8 -> C[M]")(lambda A, C: None)
    with pytest.raises(tw.ProgramError, match="takes `A` in int8, not bf16"):
        kernel.bind(array(4))


def test_the_reference_computes_in_float64_and_int64():
    kernel = tw.kernel("A[M], n[M] -> C[M]")(lambda A, n, C: None)
    with pytest.raises(tw.ProgramError, match="has no reference"):
        kernel.reference(array(2), array(2))

    @kernel.reference
    def _(A, n):
        return A.dtype, n.dtype

    assert kernel.reference(array(2), array(2, dtype=np.int8)) == (np.float64, np.int64)
    a, b = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
    assert matmul.reference(a, b).tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_actions_are_registered_from_outside(monkeypatch):
    # The function of this name hides the module from the package.
    monkeypatch.setattr(sys.modules["sw.actions"], "_ACTIONS", {})
    for action in (matmul, matmul.run, matmul.compile):
        with pytest.raises(tw.ProgramError, match="before `import tilewright`"):
            action()
    with pytest.raises(
        ValueError, match="Action must be one of call, run, compile, tune, launch, not 'walk'"
    ):
        tw.register("walk", print)
    for name in ("call", "run", "compile"):
        tw.register(name, lambda kernel, *given, **options: (kernel, given, options))
    assert matmul(1, MM=2) == (matmul, (1,), {"MM": 2})
    assert matmul.run(1, config="tiny", MM=2) == (
        matmul,
        (1,),
        {"config": "tiny", "schedule": None, "backend": "rtl", "MM": 2},
    )
    assert matmul.compile("tiny", M=2) == (matmul, ("tiny",), {"schedule": None, "M": 2})


def test_dimensions_are_numbers_that_remember_their_names():
    seen = []

    def copy(A, C):
        seen.extend((*A.shape, A[0].shape[0], A[:, 1:3].shape[1], len(A), A.dtype))
        tw.store_tile(C, tw.load_tile(A))

    tw.kernel("A[M, N] -> C[M, N]")(copy).trace(M=5, N=4, dtype=tw.int8)
    assert seen == [5, 4, 4, 2, 5, tw.int8]
    assert [seen[0].name, seen[1].name, seen[2].name] == ["M", "N", "N"]


def test_names_come_from_the_callers_locals_and_helpers_qualify_theirs():
    def scaled(x):
        for q in tw.metapipe(8, 4):
            inner = tw.load_tile(x[q, :])
            total = tw.col_sum(inner)
        return total

    def summed(A, C):
        acc = tw.zeros(1, 8)
        for i in tw.metapipe(8, 4):
            tile = tw.load_tile(A[i, :])
            acc += tw.col_sum(tile)
        for i in tw.metapipe(8, 4):
            tile = tw.load_tile(A[i, :])
            tw.store_tile(C[i, :], tile + acc)

    program = tw.kernel("A[M, N] -> C[M, N]")(summed).trace(M=8, N=8, dtype=tw.fp32)
    names = [each.name for node in walk(program.nodes) for each in node.results]
    assert names == ["acc", "acc.2", "acc.3", "tile", "1", "acc.5", "tile.2", "2"]
    loops = [node.index for node in walk(program.nodes) if hasattr(node, "index")]
    assert loops == ["i", "i.2"]

    def called(A, C):
        for i in tw.each(1):
            with pytest.raises(tw.ProgramError, match="made inside the loop over `scaled.q`"):
                tw.store_tile(C[i, :], scaled(A))
            tw.store_tile(C[i, :], tw.load_tile(A[i, :]))

    tw.kernel("A[M, N] -> C[M, N]")(called).trace(M=8, N=8, dtype=tw.fp32)


def test_roles_follow_the_signature():
    program = trace()
    assert [each.type.role for each in program.tensors] == [Role.IN, Role.IN, Role.OUT]
    assert repr(matmul) == "<kernel matmul: A[M, K], B[K, N] -> C[M, N]>"


def test_tracing_is_fast():
    trace()
    start = time.perf_counter()
    for _ in range(10):
        trace()
    assert (time.perf_counter() - start) / 10 < 0.05


def test_constants_take_the_format_of_what_stands_beside_them():
    @tw.kernel("X[M, N] -> Y[M, J], Z[M, K]")
    def padded(X, Y, Z):
        for i in tw.metapipe(X.shape[0]):
            x = tw.load_tile(X[i, :])
            tw.store_tile(Y[i, :], tw.join_cols(tw.zeros(i, 8), x, tw.full(i, 8, 0.1)))
            tw.store_tile(Z[i, 0:8], tw.full(i, 8, 0.1))
            tw.store_tile(Z[i, 8:], x)

    program = padded.trace(M=4, N=8, J=24, K=16, dtype=tw.bf16)
    assert {each.type.format.name for each in program.tensors} == {"bf16"}


@pytest.mark.parametrize("number", [300, 0.1])
def test_a_constant_that_a_format_does_not_hold_is_refused(number):
    @tw.kernel("X[M, N] -> Y[M, J]")
    def padded(X, Y):
        for i in tw.metapipe(X.shape[0]):
            tw.store_tile(Y[i, 0:8], tw.full(i, 8, number))
            tw.store_tile(Y[i, 8:], tw.load_tile(X[i, :]))

    with pytest.raises(tw.ProgramError, match="`Y` must be stored in one format"):
        padded.trace(M=4, N=8, J=16, dtype=tw.int8)
    with pytest.raises(tw.ProgramError, match="Join takes tiles with the same rows and format"):
        tw.kernel("X[M, N] -> Y[M, J]")(
            lambda X, Y: tw.store_tile(
                Y, tw.join_cols(tw.full(X.shape[0], 8, number), tw.load_tile(X))
            )
        ).trace(M=4, N=8, J=16, dtype=tw.int8)
