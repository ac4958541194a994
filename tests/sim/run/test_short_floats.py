"""Products of fp16, 8-bit floats and mixes on a user's chip: verified, or refused at their line."""

import dataclasses
import json

import numpy as np
import pytest

import sw.language as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16, e4m3, e5m2, fp16, fp32, int8
from sim.cli.app import main
from sim.golden import golden
from sim.kernels import summed
from sim.operands import random_operand
from sim.run.job import Problem
from sw.kernels.gemm import gemm
from sw.kernels.matmul import matmul
from tests.short_floats import KINDS, chip_of, random_problem, verified

MIXES = {
    "e5m2 x e4m3": (e5m2, e4m3, (bf16, fp32), ("e4m3", "e5m2")),
    "bf16 x fp16": (bf16, fp16, (bf16, fp16, fp32), ("bf16", "fp16")),
    "fp16 x bf16": (fp16, bf16, (bf16, fp16, fp32), ("bf16", "fp16")),
    "e4m3 alone": (e4m3, e4m3, (bf16, fp32), ("e4m3",)),
}


@tw.kernel("A[M, K]: e4m3, B[K, N]: e5m2 -> C[M, N]")
def mixed(A, B, C):
    """A product whose operands differ in format."""
    (M, K), N = A.shape, C.shape[1]
    for i in tw.metapipe(M):
        for j in tw.metapipe(N):
            acc = tw.zeros(i, j)
            for k in tw.metapipe(K):
                acc += tw.load_tile(A[i, k]) @ tw.load_tile(B[k, j])
            tw.store_tile(C[i, j], acc)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", [*KINDS, *MIXES])
def test_the_emulator_equals_golden_and_the_oracle(name, seed, tmp_path):
    first, second, outs, formats = (KINDS | MIXES)[name]
    rng = np.random.default_rng(seed)
    chip = chip_of(formats, tmp_path)
    for number in range(5):
        problem = random_problem(rng, chip, first, second, outs, most=60)
        # Every fourth seed has infinities and NaN.
        verified(problem, "emulator", int(rng.integers(1 << 30)) * 4 + number % 4)


def test_formats_of_the_signature_reach_the_units(tmp_path):
    chip = chip_of(("e4m3", "e5m2"), tmp_path)
    problem = Problem(mixed, chip, {"M": 9, "K": 21, "N": 7}, None)
    compiled = problem.compile()
    assert (compiled.dtype, compiled.out) == (e4m3, bf16)
    assert "e4m3 x e5m2 to bf16" in compiled.report()
    assert "e4m3 x e5m2 to bf16" in compiled.ir(after="stage")
    report = verified(problem, "emulator", 3)
    assert report["dtype"] == "e4m3 x e5m2"
    # Both products of a cell count.
    assert compiled.peak_macs_per_cycle == 32


@pytest.mark.parametrize(
    ("dtype", "config", "said"),
    [
        (fp16, "tiny", "`@` of fp16 needs cells of fp16, and those of the chip have bf16 and int8"),
        (
            e5m2,
            "small",
            "`@` of e5m2 needs cells of e5m2, and those of the chip have bf16 and int8",
        ),
        (
            {"A": e4m3, "B": e5m2},
            ("e4m3",),
            "`@` of e4m3 and e5m2 needs cells of e4m3 and e5m2, and those of the chip have e4m3:",
        ),
        (bf16, ("fp16",), "`@` of bf16 needs cells of bf16, and those of the chip have fp16:"),
        (int8, ("bf16",), "`@` of int8 needs cells of int8, and those of the chip have bf16:"),
    ],
)
def test_a_format_that_the_chip_lacks_is_refused_at_the_line_of_the_product(
    dtype, config, said, tmp_path
):
    chip = named[config] if isinstance(config, str) else chip_of(config, tmp_path)
    problem = Problem(gemm, chip, {"M": 8, "K": 8, "N": 8}, dtype)
    with pytest.raises(tw.ProgramError, match=said) as caught:
        problem.compile()
    assert caught.value.kind == "cells"
    assert "`pcu.formats`" in caught.value.message
    assert caught.value.where.startswith("gemm.py:")


def test_a_product_stored_in_8_bits_is_golden_s_alone(tmp_path):
    problem = Problem(matmul, chip_of(("e4m3",), tmp_path), dict.fromkeys("MKN", 8), e4m3, e4m3)
    with pytest.raises(tw.ProgramError, match="`c_tile` stored in e4m3 is not supported"):
        problem.compile()
    assert verified(problem, "golden", 2)["verified"]


@pytest.mark.parametrize(("tile", "refused"), [(7, True), (1, True), (8, False), (21, False)])
def test_a_carried_sum_of_8_bit_floats_is_not_cut_inside_a_lane(tile, refused, tmp_path):
    chip = chip_of(("e4m3", "e5m2"), tmp_path)
    schedule = tw.Schedule(tile={"k": tile})
    problem = Problem(gemm, chip, {"M": 5, "K": 21, "N": 5}, e4m3, fp32, schedule=schedule)
    if refused:
        said = f"`@` of e4m3 takes terms in groups of 2: .* of a multiple of 2, not {tile}"
        for action in (problem.compile, lambda: problem.golden_program):
            with pytest.raises(tw.ProgramError, match=said):
                action()
        return
    verified(problem, "emulator", 1)
    # A sum of 16-bit floats or of int8 may be cut anywhere.
    for fmt in (bf16, fp16, int8):
        summed(gemm.trace(M=5, K=21, N=5, dtype=fmt), {"i": 4, "j": 4, "k": 7})


def test_blocks_of_pairs_do_not_change_a_sum(seed):
    rng = np.random.default_rng(seed)
    a, b = (e5m2.from_bits(rng.integers(0, 0x78, (5, 21)).astype(np.uint8)) for _ in range(2))
    program = gemm.trace(M=5, K=21, N=5, dtype=e5m2, out=fp32)
    found = {
        golden(summed(program, {"k": tile}), {"A": a, "B": b.T})["C"].tobytes()
        for tile in (2, 4, 16, 64)
    }
    assert len(found) == 1


@pytest.mark.parametrize("name", ["fp16", "e4m3", "e5m2"])
def test_the_command_runs_a_chip_file(name, tmp_path, capsys):
    chip_of(KINDS[name][3], tmp_path)
    report = tmp_path / "report.json"
    sizes = ["--set", "M=10", "--set", "K=13", "--set", "N=9"]
    options = ["--dtype", name, "--backend", "emulator", "--json", str(report)]
    assert main(["run", "matmul", "--config", str(tmp_path / "chip.toml"), *sizes, *options]) == 0
    found = json.loads(report.read_text())
    assert found["verified"] and found["dtype"] == name
    assert found["out_dtype"] == ("fp16" if name == "fp16" else "bf16")
    assert main(["run", "matmul", "--config", "tiny", *sizes, *options]) != 0
    assert f"`@` of {name} needs cells of {name}" in capsys.readouterr().err


@pytest.mark.parametrize("fmt", [bf16, fp16, e4m3, e5m2], ids=str)
def test_special_operands_have_every_class_of_value(fmt):
    rng = np.random.default_rng(1)
    with np.errstate(invalid="ignore"):
        drawn = random_operand(rng, (400,), fmt, special_share=1.0).astype(np.float64)
    smallest = 2.0 ** (1 - fmt.bias)
    assert (drawn == 0).any() and np.signbit(drawn[drawn == 0]).any()
    assert ((drawn != 0) & (np.abs(drawn) < smallest)).any()
    assert (np.abs(drawn) == float(fmt.from_bits(fmt.largest))).any()
    assert np.isnan(drawn).any() and np.isinf(drawn).any() == fmt.has_infinity
    plain = random_operand(rng, (2000,), fmt, exponent_spread=99).astype(np.float64)
    assert np.isfinite(plain).all() and (np.abs(plain) >= smallest).all()


@pytest.mark.parametrize("text", ['"fp16"', '["fp32"]', '["fp16", "int8"]', "[]", "3", "[[]]"])
def test_a_file_with_a_set_that_no_cell_has_is_refused(text, tmp_path):
    file = tmp_path / "chip.toml"
    file.write_text(f"rows = 2\ncolumns = 2\n[pcu]\nformats = {text}\n")
    from hw.arch.config import from_toml

    with pytest.raises(BadInputError, match="^Formats of a PCU must be a list of bf16 or fp16 or"):
        from_toml(file)


def test_chips_of_other_formats_are_other_chips(tmp_path):
    from hw.arch.image import fingerprint

    tiny = named["tiny"]
    other = dataclasses.replace(tiny, pcu=dataclasses.replace(tiny.pcu, formats=("bf16", "fp16")))
    assert fingerprint(other) != fingerprint(tiny)
    assert other.resolved()["derived"]["peak_macs_per_cycle"] == {"bf16": 16, "fp16": 16}
