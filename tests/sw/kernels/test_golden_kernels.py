"""Kernels of `sw/kernels` on golden: equal to their definition by bytes, and near float64."""

import ast
import inspect
from importlib import import_module
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tilewright
from hw.arch.config import named
from hw.numeric.formats import bf16, fp32, int8
from sim.golden import golden
from sim.oracle import product
from sim.run.job import Problem
from sw.ir.nodes import Matmul
from sw.ir.rewrite import walk
from sw.kernels import modules
from tests.sw.kernels import functions_by_definition, kernels_by_definition
from tests.sw.kernels.kernels_by_definition import BY_DEFINITION

KERNELS = {name: getattr(import_module(module), name) for name, module in modules().items()}
FUNCTION_BITS = (12, 16, 24)
SHAPES = 21
#: Kernels that also take integers.
OF_INTEGERS = (
    *("add", "transpose", "silu", "gelu", "rope", "residual"),
    *("matmul", "gemm", "matmul_nt", "matmul_tn", "matmul_tt", "conv2d"),
)
#: Kernels with products.
PRODUCTS = (
    *("matmul", "gemm", "matmul_nt", "matmul_tn", "matmul_tt", "residual", "gated_mlp"),
    *("attention", "flash_attention", "linear", "linear_gelu", "decoder_layer", "gda"),
    *("conv2d", "paged_attention"),
)
#: Kernels of a softmax over blocks between two products.
ATTENTION = ("flash_attention", "paged_attention")
#: Dimensions whose halves are turned.
HALVES = {("rope", "N"), ("decoder_layer", "E")}

ERRORS = (
    "bf16: at most 1.1 x the error of numpy; fp32: 2^-14 of the row's largest at 16-bit functions, "
    "8 ULP at 24"
)

#: Below it silu and gelu are zero: e^-x overflows there (docs/numerics.md).
UNDERFLOW = 2.0**-119


def convolution_sizes(rng, most):
    """Few images and filters of up to 4 x 4; rows of up to ``most`` pixels, as many channels."""
    sizes = {dim: int(rng.integers(1, top + 1)) for dim, top in zip("NPRS", (2, 3, 4, 4))}
    for dim in "QCK":
        sizes[dim] = 1 if rng.random() < 0.1 else int(np.exp(rng.uniform(0, np.log(most))))
    sizes |= {"H": sizes["P"] + sizes["R"] - 1, "W": sizes["Q"] + sizes["S"] - 1}
    return {dim: sizes[dim] for dim in KERNELS["conv2d"].signature.dims}


def random_sizes(rng, name):
    """Log-uniform sizes of 1 to 700, of products to 90, some of them 1."""
    if name == "conv2d":
        return convolution_sizes(rng, 40)
    most = 90 if name in PRODUCTS else 700
    sizes = {}
    for dim in KERNELS[name].signature.dims:
        size = 1 if rng.random() < 0.1 else int(np.exp(rng.uniform(0, np.log(most))))
        sizes[dim] = 2 * size if (name, dim) in HALVES else size
    if "H" in sizes:
        # Few heads, as many for each head of keys.
        sizes["G"] = int(rng.integers(1, 3))
        sizes["H"] = sizes["G"] * int(rng.integers(1, 3))
    if name == "decoder_layer":
        sizes["S"] += sizes["M"]
    return {dim: sizes[dim] for dim in KERNELS[name].signature.dims}


def operand(rng, shape, dtype, *, mild=False):
    """Magnitudes of 0.01 to 80; unless mild, also equal rows, rows of -inf, one huge or NaN."""
    dtype = np.dtype(dtype)
    if dtype.kind == "i":
        return rng.integers(-128, 128, shape).astype(dtype)
    signs = rng.choice([-1.0, 1.0], shape)
    x = signs * np.exp(rng.uniform(np.log(0.01), np.log(80), shape))
    if not mild and len(shape) > 1:
        for row in x.reshape(-1, shape[-1]):
            kind = rng.integers(10)
            if kind == 0:
                row[:] = row[0]
            elif kind == 1:
                row[rng.integers(len(row))] = rng.choice([1e30, -1e30, 3e38, -np.inf, np.inf])
            elif kind == 2:
                row[:] = -np.inf
            elif kind == 3:
                row[:] = rng.choice([0.0, -0.0], len(row))
            elif kind == 4:
                row[rng.integers(len(row))] = np.nan
    x = x.astype(dtype)
    if dtype.itemsize == 2:
        # Some NaN are those that fill boxes outside a tensor.
        x.view(np.uint16)[np.isnan(x) & (rng.random(shape) < 0.5)] = 0x7FFF
    return x


def problem_of(name, sizes, dtype, out=None, config="tiny", options=None):
    return Problem(KERNELS[name], named[config], sizes, dtype, out, options or {})


def operands(rng, problem, **how):
    limits = problem.row_limits
    return {
        spec.name: rng.integers(0, limits[spec.name], spec.shape, dtype=np.int32)
        if spec.name in limits
        else operand(rng, spec.shape, spec.format.dtype, **how)
        for spec in problem.inputs
    }


def formats_of(name):
    floats = [(bf16, None), (bf16, fp32)]
    if name not in PRODUCTS:
        floats += [(fp32, None), (fp32, bf16)]
    return floats + [(int8, None)] * (name in OF_INTEGERS)


def require_definition(problem, inputs, found, bits, told, **options):
    """Results are those of the definition, by bytes."""
    answer = BY_DEFINITION[problem.kernel.name](
        inputs, bits, problem.outputs[-1].format.dtype, **options
    )
    answers = answer if isinstance(answer, tuple) else (answer,)
    for spec, wanted in zip(problem.outputs, answers, strict=True):
        mine = found[spec.name]
        assert mine.dtype == wanted.dtype and mine.shape == wanted.shape, (spec, told)
        assert mine.tobytes() == wanted.tobytes(), (spec, told)


def test_every_kernel_has_a_definition():
    missing = sorted(set(KERNELS) - set(BY_DEFINITION))
    assert missing == [], "tests.sw.kernels.kernels_by_definition must have every kernel"


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_with_products_are_named(name, seed):
    sizes = random_sizes(np.random.default_rng(seed), name)
    nodes = walk(problem_of(name, sizes, bf16).program.nodes)
    assert any(isinstance(node, Matmul) for node in nodes) == (name in PRODUCTS)


@pytest.mark.parametrize("name", BY_DEFINITION)
def test_golden_is_the_definition_by_bytes(name, seed, draws):
    rng = np.random.default_rng(seed)
    formats = formats_of(name)
    for number in range(draws(3, SHAPES)):
        dtype, out = formats[number % len(formats)]
        problem = problem_of(name, random_sizes(rng, name), dtype, out)
        inputs = operands(rng, problem)
        for bits in FUNCTION_BITS:
            found = golden(problem.golden_program, inputs, function_bits=bits)
            require_definition(problem, inputs, found, bits, (dtype, bits))


@pytest.mark.parametrize(
    ("name", "ta", "tb"),
    [("matmul_nt", False, True), ("matmul_tn", True, False), ("matmul_tt", True, True)],
)
def test_a_transposed_product_is_the_oracles_by_bytes(name, ta, tb, seed):
    rng = np.random.default_rng(seed)
    for dtype, out in ((bf16, None), (bf16, fp32), (int8, None)):
        problem = problem_of(name, random_sizes(rng, name), dtype, out)
        inputs = operands(rng, problem)
        (spec,) = problem.outputs
        a, b = inputs["A"], inputs["B"]
        wanted = product(a.T if ta else a, b.T if tb else b, spec.format.dtype)
        assert golden(problem.golden_program, inputs)["C"].tobytes() == wanted.tobytes()


def row_largest(exact, inputs):
    """Largest magnitude of each row; the bias of layer_norm may cancel what it is added to."""
    bias = inputs.get("b", np.zeros(1)).astype(np.float64)
    return np.maximum(np.abs(exact), np.abs(exact - bias)).max(axis=-1, keepdims=True)


def reference_of(name, inputs):
    """Results in float64."""
    with np.errstate(over="ignore"):
        return KERNELS[name].reference(*inputs.values())


@pytest.mark.must("pipe-d", goal=ERRORS)
@pytest.mark.parametrize("name", sorted(set(BY_DEFINITION) - {*PRODUCTS}))
def test_errors_are_those_of_numpy_or_of_the_functions(name, seed, figure, draws):
    rng = np.random.default_rng(seed)
    worst = {bf16: 0.0, fp32: 0.0}
    for number in range(draws(3, SHAPES)):
        out = (bf16, fp32)[number % 2]
        problem = problem_of(name, random_sizes(rng, name), bf16, out)
        inputs = operands(rng, problem, mild=True)
        (spec,) = problem.outputs
        exact = reference_of(name, inputs)
        error = np.abs(golden(problem.golden_program, inputs)[spec.name] - exact)
        if out == fp32:
            most = 2.0**-14 * row_largest(exact, inputs) + UNDERFLOW
        else:
            single = (x if x.dtype == np.int32 else x.astype(np.float32) for x in inputs.values())
            with np.errstate(over="ignore"):
                numpy32 = KERNELS[name].reference.function(*single)
            numpys = np.abs(numpy32.astype(ml_dtypes.bfloat16).astype(np.float64) - exact)
            error, most = error.max(), 1.1 * numpys.max()
        assert (error <= most).all(), (spec, problem.dims)
        worst[out] = max(worst[out], float(np.max(error / np.maximum(most, UNDERFLOW))))
    figure(f"{name}: {worst[bf16]:.2f} of the bound of bf16, {worst[fp32]:.2f} of that of fp32")


def exactly(function):
    """A function of fp32 rounded once, in place of the unit's."""

    def rounded(x, width):
        with np.errstate(all="ignore"):
            return function(x.astype(np.float64)).astype(np.float32)

    return rounded


EXACT = {
    "exp": exactly(np.exp),
    "exp2": exactly(np.exp2),
    "reciprocal": exactly(lambda x: 1 / x),
    "rsqrt": exactly(lambda x: 1 / np.sqrt(x)),
}


@pytest.mark.must("pipe-d", goal=ERRORS)
@pytest.mark.parametrize(
    "name", sorted(set(BY_DEFINITION) - {"decoder_layer", "flash_attention", "paged_attention"})
)
def test_functions_of_24_bits_add_8_ulp(name, seed, figure, monkeypatch, draws):
    """To the error of the definition in fp32, with functions that are rounded once."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(draws(3, SHAPES)):
        # Whole rows: a softmax over blocks has no bound in fp32 (docs/online.md).
        options = {"exact": True} if name == "attention" else {}
        problem = problem_of(name, random_sizes(rng, name), bf16, fp32, options=options)
        inputs = operands(rng, problem, mild=True)
        (spec,) = problem.outputs
        exact = reference_of(name, inputs)
        ulp = np.spacing(row_largest(exact, inputs).astype(np.float32)).astype(np.float64)
        found = golden(problem.golden_program, inputs, function_bits=24)[spec.name]
        with monkeypatch.context() as changed:
            for function, rounded in EXACT.items():
                changed.setattr(kernels_by_definition, function, rounded)
            single = BY_DEFINITION[name](inputs, 24, np.dtype(np.float32), **options)
        errors, others = ((np.abs(x - exact) - UNDERFLOW) / ulp for x in (found, single))
        added = errors.max() - others.max()
        assert added <= 8, problem.dims
        worst = max(worst, float(added))
    figure(f"{name}: {worst:.2f} ULP added by functions of 24 bits")


@pytest.mark.parametrize("value", [0.3, -7.0, 80.0])
def test_layer_norm_of_equal_elements_is_the_bias_but_for_the_error_of_the_mean(value, seed):
    rng = np.random.default_rng(seed)
    for columns in rng.integers(1, 700, 10):
        sizes = {"M": 2, "N": int(columns)}
        problem = problem_of("layer_norm", sizes, bf16, fp32)
        inputs = operands(rng, problem, mild=True)
        inputs["X"][:] = value
        found = golden(problem.golden_program, inputs)["Y"]
        far = np.abs(found - inputs["b"].astype(np.float64))
        gain = np.abs(inputs["g"].astype(np.float64))
        # Sums of one bf16 are exact; beside the mean's error only the last sum rounds.
        assert (far <= abs(value) * 2.0**-23 * gain * 1e5**0.5 + 80 * 2.0**-23).all()


@pytest.mark.parametrize(("name", "most"), [("matmul", 12), ("softmax", 10), ("rms_norm", 8)])
def test_bodies_are_short(name, most):
    source = inspect.getsource(import_module(modules()[name]))
    (function,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    assert function.end_lineno - function.lineno <= most


@pytest.mark.parametrize(
    "module", [functions_by_definition, kernels_by_definition], ids=["functions", "kernels"]
)
def test_the_definition_imports_nothing_of_the_project(module):
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    names = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [x.name for x in node.names]
        )
    }
    assert names <= {"decimal", "functools", "ml_dtypes", "numpy", "tests"}


@pytest.mark.slow
@pytest.mark.parametrize("config", named)
@pytest.mark.parametrize("name", KERNELS)
def test_defaults_run_on_every_chip(name, config, capsys):
    code = tilewright.main(["run", name, "--config", config, "--backend", "emulator"])
    assert code == 0 and capsys.readouterr().out.endswith("VERIFIED\n")
