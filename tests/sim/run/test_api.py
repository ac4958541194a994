"""Kernels from Python: run, compile, and what a result is."""

import copy
import json
import pickle
import types as types_of_python
import typing

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.numeric.formats import bf16, fp32
from sim.operands import random_operand
from sim.oracle import product
from sim.run.report import FIELDS
from sw import compiled_part
from sw.kernels.matmul import matmul
from sw.timing.prediction import predict_cycles

TINY = {"config": "tiny", "backend": "emulator"}


@pytest.fixture
def pair(seed):
    rng = np.random.default_rng(seed)
    return random_operand(rng, (11, 18), bf16), random_operand(rng, (18, 5), bf16)


def test_a_run_gives_outputs_and_figures_by_name(pair):
    result = matmul.run(*pair, **TINY, seed=3)
    expected = product(*pair, bf16.dtype)
    assert result.C.tobytes() == expected.tobytes() and list(result.outputs) == ["C"]
    assert result.verified and result.problems == () and result.cycles is None
    assert result.counters is None and result.macs == 11 * 18 * 5 and result.seed == 3
    fields = result.json()
    assert list(fields) == list(FIELDS) and fields["config"] == "tiny"
    json.dumps(fields, allow_nan=False)
    assert repr(result).endswith("VERIFIED")
    shown = result._repr_html_()
    assert shown.index(">VERIFIED<") < shown.index("<svg") < shown.index(">990<")
    assert copy.copy(result)._repr_html_() == shown


@tw.kernel("A[M, K], B[K, N] -> C[M, N]")
def bare(A, B, C):
    """A product without a reference."""
    for i in tw.metapipe(A.shape[0]):
        a = tw.load_tile(A[i, :])
        for j in tw.metapipe(B.shape[1]):
            tw.store_tile(C[i, j], a @ tw.load_tile(B[:, j]))


@pytest.mark.parametrize("backend", ["emulator", "golden"])
def test_a_kernel_without_a_reference_runs_and_says_so(backend, pair):
    result = bare.run(*pair, config="tiny", backend=backend)
    assert result.C.tobytes() == matmul(*pair).tobytes()
    assert result.verified and result.macs == 11 * 18 * 5
    assert "no reference: float64 error not checked" in result.notes
    assert "\n  note: no reference: float64 error not checked\n" in repr(result)
    errors = (result.error_bound, result.max_abs_err, result.error_of_bound, result.max_rel_err)
    assert errors == (None,) * 4


def test_the_fields_of_a_result_have_their_types(pair):
    result = matmul.run(*pair, **TINY)
    types = typing.get_type_hints(tw.RunResult)
    assert isinstance(result, tw.RunResult) and list(types) == list(FIELDS)
    for name, kind in types.items():
        kinds = typing.get_args(kind) if isinstance(kind, types_of_python.UnionType) else (kind,)
        plain = tuple(typing.get_origin(each) or each for each in kinds)
        assert isinstance(getattr(result, name), plain), name
    for name in ("schedule", "ir", "report", "image", "images", "map", "map_text", "run"):
        assert name in dir(tw.KernelProgram)


def test_options_of_kernel_compiler_and_schedule_reach_them(pair):
    schedule = tw.Schedule(slots={"a_tile": 1}, tile={"i": 8})
    result = matmul.run(*pair, **TINY, schedule=schedule, MM=8, out=tw.fp32, place_seed=2)
    assert result.C.dtype == fp32.dtype and result.params["MM"] == 8
    assert result.schedule["slots"]["a_tile"] == 1 and result.schedule["tile"]["i"] == 8
    assert matmul.run(*pair, config=named["tiny"], backend="golden").verified


def test_a_result_cannot_be_changed_and_names_what_it_has(pair):
    result = matmul.run(*pair, config="tiny", backend="golden")
    with pytest.raises(AttributeError, match="result cannot be changed, not in 'C' either"):
        result.C = 3
    with pytest.raises(AttributeError, match="result has no 'D'; it has C, kernel, config"):
        _ = result.D
    assert {"C", "cycles", "verified", "json"} <= set(dir(result))
    copied = copy.copy(result)
    with pytest.raises(AttributeError, match="not in 'other' either"):
        copied.other = 1


def test_cycles_are_predicted_when_they_are_read(pair, monkeypatch):
    asked = []

    def predict(program, **options):
        asked.append(options["latency"])
        return predict_cycles(program, **options)

    monkeypatch.setattr(compiled_part, "predict_cycles", predict)
    program = matmul.compile("tiny", M=11, K=18, N=5, dtype=tw.bf16)
    asked.clear()
    result = program.run(*pair, backend="emulator")
    assert result.verified and result.image_bytes == len(program.image) and not asked
    assert result.predicted_cycles == program.predicted_cycles > 0 and asked == [100]
    again = program.run(*pair, backend="emulator").json()
    assert again["predicted_cycles"] == program.predicted_cycles
    assert copy.copy(program.run(*pair, backend="emulator")).predicted_cycles > 0
    assert "  predicted " in repr(program.run(*pair, backend="emulator"))
    assert program.run(*pair, backend="golden").predicted_cycles is None


def test_a_compiled_kernel_tells_its_choices_and_runs(pair):
    program = matmul.compile("tiny", M=11, K=18, N=5, dtype=tw.bf16, schedule=tw.Schedule())
    assert dict(program.schedule.col_par) == {"c": 2} and program.image[:4] == b"TWIM"
    assert "matmul" in program.report() and "load A" in program.ir("trace")
    result = program.run(*pair, backend="emulator", seed=2)
    assert result.verified and result.image_bytes == len(program.image)
    assert repr(program) == "<matmul for tiny: {'M': 11, 'K': 18, 'N': 5, 'MM': 4096, 'NN': 256}>"
    assert program.map().startswith("<svg") and "pcu0_0" in program.map()
    assert program._repr_svg_() == program.map()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colour": 3}, "unknown option 'colour'; it must be one of MM, NN, config, schedule"),
        ({"confg": "tiny"}, "unknown option 'confg'; did you mean 'config'"),
        ({"schedul": None}, "unknown option 'schedul'; did you mean 'schedule'"),
        ({"latencey": 3}, "unknown option 'latencey'; did you mean 'latency'"),
        ({"config": "tinny"}, "unknown configuration 'tinny'; did you mean 'tiny'"),
        ({"backend": "rlt"}, "backend must be one of rtl, cocotb, emulator, golden, not 'rlt'"),
        ({"stall": 1.5}, "stall must be a number from 0 to below 1, not 1.5"),
        ({"schedule": tw.Schedule(tile={"k": 3})}, "Schedule.tile has `k`; loops of matmul"),
    ],
)
def test_what_cannot_work_is_refused(options, message, pair):
    with pytest.raises(tw.TilewrightError, match=message):
        matmul.run(*pair, **{"config": "tiny", "backend": "golden"} | options)


def test_an_unknown_keyword_of_a_compilation_is_refused_by_the_nearest_one():
    for name, known in (("schedul", "schedule"), ("confg", "config"), ("dtyp", "dtype")):
        with pytest.raises(tw.TilewrightError, match=f"unknown option '{name}'; .*'{known}'"):
            matmul.compile("tiny", M=8, K=8, N=8, **{name: None})
    with pytest.raises(tw.TilewrightError, match="must be one of M, K, N, MM, NN, config, sch"):
        matmul.compile("tiny", M=8, K=8, N=8, backend="rtl")


def test_a_compiled_kernel_takes_only_arrays_it_was_compiled_for(pair):
    program = matmul.compile("tiny", M=11, K=18, N=5, dtype=tw.bf16)
    a, b = pair
    with pytest.raises(tw.TilewrightError, match="Arrays must have the sizes"):
        program.run(a[:4], b)
    with pytest.raises(tw.TilewrightError, match="Array A must be bf16, not int8"):
        program.run(a.astype(np.int8), b.astype(np.int8))
    with pytest.raises(tw.TilewrightError, match="MM must be given when the kernel is compiled"):
        program.run(a, b, MM=3)
    with pytest.raises(tw.TilewrightError, match="unknown option 'mm'; did you mean 'MM'"):
        matmul.compile("tiny", M=11, K=18, N=5, mm=5, dtype=tw.bf16)


@tw.kernel("X[M, N], n[1, M]: int32 -> Y[S, N]: fp32")
def summed(X, n, Y):
    """Sums of the rows of each number: an output has a dimension that no input has."""
    for s in tw.metapipe(Y.shape[0]):
        own = tw.row_index(s) == tw.load_tile(n)
        tw.store_tile(Y[s, :], tw.where(own, 1.0, 0.0).to(tw.bf16) @ tw.load_tile(X))


@summed.reference
def _(x, n, S):
    return np.stack([x[n[0] == number].sum(axis=0) for number in range(S)])


def test_sizes_of_outputs_alone_are_given_to_a_run(seed):
    x, n = random_operand(np.random.default_rng(seed), (3, 20), bf16), np.int32([[1, 4, 1]])
    found = summed.run(x, n, S=7, **TINY)
    assert found.verified and found.Y.shape == (7, 20) and not found.notes
    program = summed.compile("tiny", M=3, N=20, S=5, dtype=tw.bf16)
    assert program.run(x, n, backend="emulator").Y.shape == (5, 20)
    with pytest.raises(tw.TilewrightError, match="S must be given when the kernel is compiled"):
        program.run(x, n, S=5)
    with pytest.raises(tw.TilewrightError, match="`S` of `summed` must have a size: give `S=`"):
        summed.run(x, n, **TINY)
    with pytest.raises(tw.TilewrightError, match="unknown option 'M'"):
        summed.run(x, n, S=7, M=3, **TINY)


def test_a_result_can_be_kept(pair):
    result = matmul.run(*pair, config="tiny", backend="golden")
    assert pickle.loads(pickle.dumps(result)).C.tobytes() == result.C.tobytes()
