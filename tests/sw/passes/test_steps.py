"""The first plan that can be placed, routed and proved live; what is told of those before it."""

import dataclasses

import pytest

from hw.arch.config import AgcuConfig, ChipConfig, PcuConfig, PmuConfig, named
from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16, int8
from sim.campaign.generators.random_memory import PLAIN
from sim.campaign.kinds import judge
from sw.compiler import compile_kernel
from sw.kernels.matmul import matmul
from sw.language import Schedule
from sw.passes import part_steps
from sw.prove import LivenessError

SMALL = named["small"]
DIMS = {"M": 64, "N": 64, "K": 64}


def dies(monkeypatch, plans):
    """Make the proof refuse the first so many plans; counts what it is asked."""
    proof, asked = part_steps.require_live, []

    def refuse(chip, repeat):
        asked.append(chip)
        if len(asked) <= plans:
            raise LivenessError("Program must be live, not stop: x waits for y", value=["x"])
        return proof(chip, repeat=repeat)

    monkeypatch.setattr(part_steps, "require_live", refuse)
    return asked


def test_a_plan_that_is_not_live_is_replaced_by_the_next(monkeypatch):
    best = compile_kernel(matmul, SMALL, dims=DIMS, dtype=bf16)
    assert not any("given up" in note for note in best.notes)
    asked = dies(monkeypatch, 1)
    second = compile_kernel(matmul, SMALL, dims=DIMS, dtype=bf16)
    assert len(asked) == 2 and second.parts[0].plan != best.parts[0].plan
    assert "1 better plan was given up: Program must be live, not stop: x" in second.report()


def test_plans_are_bounded_and_the_refusal_says_what_to_change(monkeypatch):
    asked = dies(monkeypatch, 1000)
    with pytest.raises(BadInputError) as caught:
        compile_kernel(matmul, SMALL, dims=DIMS, dtype=bf16)
    assert 4 < len(asked) <= part_steps.MOST_PLANS
    assert f"none of {len(asked)} plans fits" in caught.value.message
    assert caught.value.kind == "not-live" and "\n" not in caught.value.message
    assert "fewer units (row_par, col_par)" in caught.value.rule
    assert caught.value.value == ["x"]


def test_one_named_grid_has_one_plan_of_its_own_and_one_of_fewer_streams(monkeypatch):
    asked = dies(monkeypatch, 1000)
    schedule = Schedule(row_par={"c": 1}, col_par={"c": 1})
    with pytest.raises(BadInputError):
        compile_kernel(matmul, SMALL, dims=DIMS, dtype=bf16, schedule=schedule)
    assert 1 <= len(asked) <= 3


def test_row_groups_of_one_stream_have_equally_many_slots():
    """A slot more in one PMU would be a credit for a box of a group that has no room."""
    chip = ChipConfig(
        5,
        4,
        width_bits=64,
        tracks=2,
        token_tracks=8,
        pattern="cmcc/mcmc/cmcc/mccc/ccmm",
        pcu=PcuConfig(accumulator_rows=32, cell_latency=3),
        pmu=PmuConfig(capacity_bytes=1024, slots=2),
        agcu=AgcuConfig(count=2, axi_address_bits=32, landing_beats=64, outstanding=16),
    )
    schedule = Schedule(row_par={"c": 8}, tile={"i": 194})
    result = compile_kernel(
        matmul, chip, dims={"M": 31, "N": 400, "K": 257}, dtype=int8, schedule=schedule
    )
    homes = result.parts[0].fit.homes
    for agcu, first, groups in result.parts[0].fit.a_agcus:
        slots = {homes[f"a{group}"].slots for group in range(first, first + groups)}
        assert len(slots) == 1, agcu
    assert not any("given up" in note for note in result.notes)


#: Chips, programs and the words of the refusal; None: the bytes are right.
EDGES = [
    ("1 KiB PMUs", dataclasses.replace(SMALL, pmu=PmuConfig(1024)), DIMS, "bf16", {}, None),
    (
        "grid wider than a box",
        ChipConfig(
            7,
            5,
            width_bits=1024,
            token_tracks=8,
            pattern="mmmmm/cmmcm/cmmcm/mcmcm/cmcmc/ccmcc/cccmm",
            pcu=PcuConfig(accumulator_rows=16),
            pmu=PmuConfig(slots=2),
            agcu=AgcuConfig(count=1, axi_address_bits=64, landing_beats=4096, outstanding=16),
        ),
        {"M": 40, "N": 400, "K": 127},
        "bf16",
        {},
        None,
    ),
    (
        "one slot of two large tiles",
        ChipConfig(
            5,
            6,
            width_bits=1024,
            tracks=1,
            pattern="cmcmcc/ccmccm/ccmcmc/mmcmcc/ccmccc",
            pcu=PcuConfig(accumulator_rows=16, cell_latency=3),
            pmu=PmuConfig(capacity_bytes=16384, slots=2),
            agcu=AgcuConfig(count=4, axi_address_bits=32, landing_beats=4096, outstanding=2),
        ),
        {"M": 16, "N": 31, "K": 153},
        "int8",
        {"slots": {"a_tile": 1, "b_tile": 1, "c_tile": 1}},
        "Stride between tiles of B must be at most 8191 elements in a PMU of 16384 bytes",
    ),
    (
        "one column of PCUs too wide",
        ChipConfig(4, 8, width_bits=1024, pmu=PmuConfig(1 << 20)),
        {"M": 4, "N": 600, "K": 4},
        "bf16",
        {"col_par": {"c": 16}},
        "col_par of `c` must be one of 1, 2, 3, 4, 6, 8, not 16",
    ),
    (
        "one AGCU, one track",
        dataclasses.replace(SMALL, tracks=1, agcu=AgcuConfig(count=1)),
        DIMS,
        "bf16",
        {},
        "Chip must have at least 2 tracks or 2 AGCUs for the streams of A and of B",
    ),
    (
        "two AGCUs, one token track",
        dataclasses.replace(SMALL, token_tracks=1),
        DIMS,
        "int8",
        {},
        None,
    ),
    (
        "four AGCUs, one track",
        dataclasses.replace(SMALL, tracks=1, agcu=AgcuConfig(count=4)),
        DIMS,
        "bf16",
        {"row_par": {"c": 2}, "col_par": {"c": 1}},
        None,
    ),
]


@pytest.mark.parametrize(
    ("chip", "dims", "dtype", "choices", "refusal"),
    [each[1:] for each in EDGES],
    ids=[each[0] for each in EDGES],
)
def test_chips_at_the_edge_are_right_or_refused(chip, dims, dtype, choices, refusal):
    fields = {
        "kind": "chip",
        "chip": dataclasses.asdict(chip),
        "kernel": "matmul",
        "dims": dims,
        "dtype": dtype,
        "out": None,
        "schedule": choices,
        "place_seed": 1,
        "operands": {"kind": "6", "seed": 1},
        "memory": PLAIN,
        "launches": 1,
    }
    verdict = judge(fields, None)
    assert verdict.problems == ()
    assert verdict.outcome == ("right" if refusal is None else "refused")
    if refusal is not None:
        formats = {"bf16": bf16, "int8": int8}
        with pytest.raises(BadInputError, match=refusal) as caught:
            compile_kernel(
                matmul, chip, dims=dims, dtype=formats[dtype], schedule=Schedule(**choices)
            )
        assert caught.value.value is not None and caught.value.rule
