"""Functions of a user in the lanes: a chip with their units computes them, others refuse them."""

import dataclasses
import gc
import json

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

import tilewright as tw
from gen.verilog import emit
from hw.arch.config import named
from hw.arch.image import fingerprint
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import PhaseSource, ResultForm
from hw.arch.pcu import PcuProgram
from hw.numeric.formats import bf16, fp32
from hw.pcu.unit import Pcu
from sim.cli.app import main
from sim.rules import load_config
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from tests import function_units
from tests.function_units import AbsoluteUnit, Relu6Unit

relu6 = tw.op(function_units.relu6, Relu6Unit)
absolute = tw.op(function_units.absolute, AbsoluteUnit)


class LateUnit(Relu6Unit):
    """The same unit, said to be a cycle faster than it is."""

    latency = 1


class OtherPorts(wiring.Component):
    i_x: In(32)
    o_result: Out(32)
    latency = 0

    def elaborate(self, platform):
        return Module()


class Relu6WithNothing:
    latency = 2


@tw.kernel("X[M, N] -> Y[M, N]: fp32")
def clamped(X, Y):
    """Both functions, one behind the other, among element math."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], absolute(relu6(x * 2.0) - 3.0) + tw.exp(x))


@tw.kernel("A[M, K], B[K, N] -> C[M, N]")
def activated(A, B, C):
    """A product with the function as its epilogue."""
    (M, K), N = A.shape, B.shape[1]
    for i in tw.metapipe(M):
        for j in tw.metapipe(N):
            acc = tw.zeros(i, j)
            for k in tw.metapipe(K):
                acc += tw.load_tile(A[i, k]) @ tw.load_tile(B[k, j])
            tw.store_tile(C[i, j], relu6(acc))


@tw.kernel("X[M, N] -> Y[M, N]: fp32")
def of_statistics(X, Y):
    """The function of a row's maximum, which is a statistic, and of a constant."""
    for i in tw.metapipe(X.shape[0]):
        x = tw.load_tile(X[i, :])
        tw.store_tile(Y[i, :], x - relu6(tw.row_max(x)) + relu6(tw.full(i, 1, 9.0)))


def chip_with(*functions, config="tiny"):
    chip = named[config]
    return dataclasses.replace(chip, pcu=dataclasses.replace(chip.pcu, functions=functions))


def outcome_of(kernel, chip, backend="emulator", **sizes):
    made = Job(Problem(kernel, chip, sizes, bf16), backend=backend)
    found = run(made, *compile_job(made))
    assert found.report["verified"], found.problems
    return found


def test_golden_is_the_reference(seed):
    x = np.random.default_rng(seed).normal(size=(7, 9)).astype(np.float32) * 4
    x[0, :5] = np.nan, np.inf, -np.inf, -0.0, 2.0**-149
    found = clamped(x)
    clipped = function_units.relu6(x * np.float32(2)) - np.float32(3)
    rest = found - np.abs(clipped)
    with np.errstate(invalid="ignore", over="ignore"):
        assert np.allclose(rest[1:], np.exp(x[1:]), rtol=1e-3, atol=1e-3)
    assert np.isnan(found[0, 0]) and fp32.bits_of(found[0, :1])[0] == fp32.canonical_nan
    assert found[0, 1] == np.inf and found[0, 2] == 3.0 and found[0, 3] == 4.0


@pytest.mark.few
@pytest.mark.parametrize("kernel", [clamped, of_statistics, activated])
@pytest.mark.parametrize("config", ["tiny", "small"])
def test_a_chip_with_the_units_computes_their_functions(kernel, config, seed, draws):
    rng = np.random.default_rng(seed)
    chip = chip_with(relu6, absolute, config=config)
    for _ in range(draws(1, 3)):
        M, N, K = (int(each) for each in rng.integers(1, 60, 3))
        sizes = {"M": M, "N": N} | ({"K": K} if kernel is activated else {})
        outcome_of(kernel, chip, **sizes)


@pytest.mark.slow
def test_the_rtl_of_such_a_chip_computes_them(heavy, seed):
    rng = np.random.default_rng(seed)
    chip = chip_with(relu6, absolute)
    for kernel in (clamped, of_statistics, activated):
        M, N, K = (int(each) for each in rng.integers(1, 60, 3))
        sizes = {"M": M, "N": N} | ({"K": K} if kernel is activated else {})
        outcome_of(kernel, chip, "rtl", **sizes)


def test_another_chip_refuses_the_function_at_its_line():
    for chip, names in ((named["tiny"], "none"), (chip_with(absolute), "absolute")):
        with pytest.raises(tw.ProgramError, match=f"the function unit `relu6`, not {names}: ") as e:
            activated.compile(chip, M=8, N=8, K=8, dtype=bf16)
        assert "relu6(acc)" in str(e.value)


def test_the_function_takes_one_tile():
    for body, message in (
        ("relu6(3.0)", "`relu6` takes a tile, not only numbers"),
        ("relu6(x > 0)", "`relu6` takes numbers, not a condition"),
    ):
        names = {"relu6": relu6, "tw": tw}
        text = f"def f(X, Y):\n    x = tw.load_tile(X)\n    tw.store_tile(Y, {body})\n"
        exec(compile(text, "op_case.py", "exec"), names)
        with pytest.raises(tw.ProgramError, match=message):
            tw.kernel("X[M, N] -> Y[M, N]")(names["f"]).trace(M=4, N=4, dtype=tw.fp32)


def same_name_as_exp(x):
    return x


same_name_as_exp.__name__ = "exp"


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_what_is_no_unit_of_the_function_is_refused():
    for reference, unit, message in (
        (np.negative, Relu6Unit, r"^Result of function unit negative for 0x00000000 must be that"),
        (function_units.relu6, LateUnit, r"^Result of function unit relu6 for"),
        (function_units.relu6, OtherPorts, r"^Ports of function unit relu6 must be i_argument"),
        (function_units.relu6, Relu6WithNothing, "must be a component of Amaranth"),
        (function_units.relu6, Module, "must have the attribute `latency`"),
        (function_units.relu6, Relu6Unit(), "^Circuit of function unit relu6 must be a class"),
        (lambda x: x, Relu6Unit, "^Name of a function unit must be small letters"),
        (same_name_as_exp, Relu6Unit, "^Name of a function unit must not be that of an operation"),
        (3, Relu6Unit, "^Reference of a function unit must be a function with a name"),
        (np.sum, Relu6Unit, r"must return float32 of shape \(\d+,\), not float32 of shape \(\)"),
    ):
        with pytest.raises(tw.BadInputError, match=message):
            tw.op(reference, unit)
    # What was made of other ports warns that it is not used, here and not in a later test.
    gc.collect()


def test_function_units_of_a_chip_are_checked():
    for functions, message in (
        ((relu6, relu6), "must have different names, not relu6, relu6"),
        ((np.abs,), "Function unit must be what `tw.op` returns"),
        ("relu6", "Function units of a PCU must be a sequence of them"),
        (tuple(dataclasses.replace(relu6, name=f"f{n}") for n in range(5)), "from 0 to 4, not 5"),
    ):
        with pytest.raises(tw.BadInputError, match=message):
            tw.PcuConfig(functions=functions)
    with pytest.raises(tw.BadInputError, match="Lanes of a PCU with function units must be at"):
        tw.PcuConfig(lanes=0, functions=(relu6,))


def test_words_and_images_of_chips_differ_by_their_units():
    plain, one, other = named["tiny"], chip_with(relu6), chip_with(absolute)
    assert one == chip_with(relu6) and one != other
    assert len({fingerprint(each) for each in (plain, one, other)}) == 3
    json.dumps(one.resolved())
    assert "functions" not in plain.resolved()["pcu"]
    phase = LanePhase(PhaseSource.ACTIVATION, function=relu6, result=ResultForm.WORD)
    program = PcuProgram(lanes=LaneProgram((phase,)))
    word = program.pack(2, functions=(absolute, relu6))
    assert PcuProgram.unpack(word, 2, functions=(absolute, relu6)) == program
    assert PcuProgram.unpack(word, 2, functions=(relu6, absolute)) != program
    with pytest.raises(tw.BadInputError, match="Function unit of a phase must be one of absolute"):
        program.pack(2, functions=(absolute,))
    other_code = program.lanes.pack((absolute, relu6))
    with pytest.raises(tw.BadInputError, match="Code of function must be below 5, not 5"):
        LaneProgram.unpack(other_code, (absolute,))


@pytest.mark.slow
def test_netlists_of_one_name_are_told_apart():
    """A unit of another circuit gives another definition, even in a class of the same name."""

    class Twin(AbsoluteUnit):
        pass

    Twin.__qualname__, Twin.__module__ = Relu6Unit.__qualname__, Relu6Unit.__module__
    twin = dataclasses.replace(function_units.made("relu6", Twin, 0, function_units.absolute))
    texts = [
        emit(Pcu(width_bits=64, config=tw.PcuConfig(lanes=1, functions=(each,)))).definitions
        for each in (relu6, twin)
    ]
    assert set(texts[0]) != set(texts[1])


FILE = """
import tilewright as tw
from tests.function_units import Relu6Unit, relu6

clamp = tw.op(relu6, Relu6Unit)
chip = tw.ChipConfig(2, 2, width_bits=64, pcu=tw.PcuConfig(functions=(clamp,)))


@tw.kernel("X[M, N] -> Y[M, N]")
def clamped(X, Y):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], clamp(tw.load_tile(X[i, :])))
"""


def test_a_file_of_python_holds_chip_and_kernel(tmp_path, capsys):
    path = tmp_path / "own.py"
    path.write_text(FILE)
    assert load_config(f"{path}:chip") == load_config(str(path)) == load_config(f"{path}:chip")
    assert load_config(str(path)) == dataclasses.replace(
        tw.ChipConfig(2, 2, width_bits=64), pcu=tw.PcuConfig(functions=(relu6,))
    )
    given = [f"{path}:clamped", "--set", "M=9", "--set", "N=7", "--config", f"{path}:chip"]
    assert main(["run", *given, "--backend", "emulator"]) == 0
    assert main(["config", f"{path}:chip"]) == 0
    assert '# functions = [["relu6", 2, "' in capsys.readouterr().out
    for name, names in ((f"{path}:clamp", "chip"), (f"{path}:", "chip")):
        with pytest.raises(tw.BadInputError, match=f"must be FILE.py:NAME of a Chip.*: {names}, "):
            load_config(name)
