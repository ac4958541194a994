"""Runs: emulator equals golden; what a back end gets wrong is seen; every ending has its error."""

import dataclasses
import json
import re

import numpy as np
import pytest

import tilewright
from hw.arch.config import named
from hw.arch.counters import counter_numbers, pmu_state_layout, unit_kinds
from hw.arch.error_codes import LaunchError, TmaError
from hw.arch.errors import BadInputError, DeviceError, HangError
from hw.arch.limits import COUNTER_WORDS
from hw.arch.unit_kind import AGCU
from hw.numeric.formats import bf16, fp32, int8
from sim.backends.emulator import Emulator
from sim.backends.interface import Answer, BuildFigures
from sim.native.conditions import ErrorAt, MemoryConditions
from sim.operands import random_inputs
from sim.oracle import product
from sim.run import driver, endings
from sim.run.driver import compile_job, run
from sim.run.job import BACKENDS, Job, Problem
from sim.run.report import FIELDS, STATES, tell
from sw.kernels.matmul import matmul
from sw.prove import Liveness

TINY = named["tiny"]


def job(seed=1, fmt=bf16, out=None, m=9, k=20, n=7, **options):
    problem = Problem(matmul, TINY, {"M": m, "K": k, "N": n}, fmt, out)
    return Job(problem, backend=options.pop("backend", "emulator"), seed=seed, **options)


def ran(made):
    return run(made, *compile_job(made))


class Fake(Emulator):
    """A back end with cycles, whose memory `spoil` may change and whose answer `plan` sets."""

    figures = BuildFigures("abc", 1.0, 2.0, True)
    plan = {}
    spoil = staticmethod(lambda memory, before: None)
    asked = []

    def launch(self, memory, order):
        entries = order.entries
        self.asked.append((entries, order.max_cycles))
        before = bytes(memory)
        answer = super().launch(memory, order)
        self.spoil(memory, before)
        words = COUNTER_WORDS * len(unit_kinds(TINY))
        timed = {
            "cycles": 1000 + 700 * (entries - 1),
            "simulated_cycles": 2000,
            "first_mac": 300,
            "launch_cycles": 200,
            "entry_begin": 1000 * (entries - 1),
            "counters": list(range(words)),
            "seconds": 0.5,
        }
        return dataclasses.replace(answer, **(timed | self.plan))


@pytest.fixture
def fake(monkeypatch):
    """Puts a fake back end in the place of every other, and gives its class."""
    made = type("Planned", (Fake,), {"asked": [], "plan": {}})
    monkeypatch.setattr(driver, "open_backend", lambda name, setup: made(setup))
    return made


@pytest.mark.parametrize("fmt", [bf16, int8], ids=lambda fmt: fmt.name)
def test_the_emulator_equals_golden_on_ragged_products(fmt, seed, draws):
    rng = np.random.default_rng(seed)
    for number in range(draws(2, 4)):
        m, k, n = (int(side) for side in rng.integers(1, 50, 3))
        out = fp32 if fmt == bf16 and number % 2 else None
        outcome = ran(job(number, fmt, out, m, k, n))
        assert outcome.problems == (), (m, k, n, outcome.problems)
        report = outcome.report
        inputs = random_inputs(job(number, fmt, out, m, k, n).problem.inputs, number)
        expected = product(inputs["A"], inputs["B"], outcome.outputs["C"].dtype)
        assert outcome.outputs["C"].tobytes() == expected.tobytes()
        assert report["verified"] and report["bit_exact"]
        assert report["output_sha256"] == report["golden_sha256"]
        assert report["macs"] == m * k * n <= report["macs_issued"]
        assert report["dram_bytes_written"] == m * n * outcome.outputs["C"].dtype.itemsize


def test_the_operands_are_those_of_the_seed():
    hashes = {ran(job(seed)).report["input_sha256"] for seed in (1, 1, 2, 3)}
    assert len(hashes) == 3
    assert (
        np.isnan(ran(job(4)).outputs["C"].astype(float)).any()
        or np.isinf(ran(job(4)).outputs["C"].astype(float)).any()
    )


def test_without_products_the_share_of_the_memory_is_told(fake, monkeypatch):
    made = job(backend="rtl")
    compiled, fields = compile_job(made)
    none = dataclasses.replace(compiled, macs=0)
    outcome = run(made, none, fields | {"macs": 0, "config": "tiny"})
    assert outcome.report["utilization"] is None
    (line,) = (each for each in tell(outcome.report) if " cycles, " in each)
    assert re.match(r"  1,000 cycles, memory at 0\.\d{4} of its peak \(predicted", line)


def test_the_folder_of_waves_is_made(fake, tmp_path):
    waves = tmp_path / "new" / "below" / "run.vcd"
    outcome = ran(job(backend="rtl", waves=waves))
    assert waves.parent.is_dir()
    assert [each for each in outcome.notes if "waves" in each or "viewer" in each] == [
        f"waves in {waves}"
    ]


@pytest.mark.parametrize("status", ["done", "hang"])
def test_waves_have_a_view_also_of_a_launch_that_hangs(fake, tmp_path, status):
    waves = tmp_path / "run.vcd"
    waves.write_text("$scope module TOP $end\n$enddefinitions $end\n")
    fake.plan["status"] = status
    made = job(backend="rtl", waves=waves)
    if status == "done":
        assert f"their ports in a viewer: gtkwave {waves}.gtkw" in ran(made).notes
    else:
        with pytest.raises(HangError):
            ran(made)
    assert (tmp_path / "run.vcd.gtkw").exists()


def test_golden_has_no_field_of_hardware():
    report = ran(job(backend="golden")).report
    assert list(report) == list(FIELDS) and report["verified"]
    hardware = (
        "bit_exact cycles macs_issued utilization memory_utilization predicted_cycles "
        "launch_to_first_mac launches dram_bytes_read dram_bytes_written units_used "
        "image_sha256 image_bytes verilog_sha256 "
        "counters cycles_per_second emit_seconds build_seconds run_seconds cache_hit latency "
        "jitter stall"
    ).split()
    assert [name for name in hardware if report[name] is not None] == []
    assert report["macs"] == 9 * 20 * 7 and report["peak_macs_per_cycle"] == 16


def test_every_field_is_filled_by_a_back_end_with_cycles(fake):
    outcome = ran(job(backend="rtl", conditions=MemoryConditions(latency=7, jitter=2, stall=0.5)))
    report = outcome.report | {"config": "tiny"}
    assert [name for name in FIELDS if report[name] is None] == []
    assert (report["latency"], report["jitter"], report["stall"]) == (7, 2, 0.5)
    assert report["utilization"] == 9 * 20 * 7 / (1000 * 16)
    # One port of eight bytes each way.
    assert report["memory_utilization"] == report["dram_bytes_read"] / (1000 * 8)
    assert report["dram_bytes_read"] > report["dram_bytes_written"]
    assert report["cycles_per_second"] == 4000 and report["launches"] == 1
    pcu = report["counters"]["pcu_0_0"]
    assert list(pcu) == ["kind", *STATES, "macs", "commands", "boxes", "bytes"]
    assert STATES == ("busy", "wait_input", "wait_room", "idle", "launch")
    assert {unit["launch"] for unit in report["counters"].values()} == {200}
    assert pcu["busy"] == 0 and pcu["idle"] == 3 and pcu["macs"] == 4 * 8
    assert (
        report["counters"]["agcu_0"]["bytes"] == 4 * COUNTER_WORDS + counter_numbers(AGCU)["bytes"]
    )
    json.dumps(outcome.report)


def test_a_warm_run_counts_the_second_launch_alone(fake):
    report = ran(job(backend="rtl", warm=True, max_cycles=5000)).report
    assert fake.asked == [(1, 5000), (2, 5000)]
    assert report["cycles"] == 700 and report["launches"] == 2
    cold = ran(job(backend="rtl")).report
    assert report["predicted_cycles"] < cold["predicted_cycles"]
    assert report["dram_bytes_written"] == cold["dram_bytes_written"]
    assert 0 < report["dram_bytes_read"] <= cold["dram_bytes_read"]


def flip(offset):
    """Spoil one byte, so far from the place of C."""

    def spoil(memory, before):
        changed = [at for at in range(len(memory)) if memory[at] != before[at]]
        memory[changed[0] + offset] ^= 1

    return staticmethod(spoil)


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (0, "1 of 63 elements of C differ from golden; C[0, 0] is 0x"),
        (14, "which is no output's"),
        (-1, "which is no output's"),
        (-4000, "which is no output's"),
        (9 * 16, "which is no output's"),
    ],
)
def test_one_wrong_byte_is_seen_in_the_output_and_around_it(fake, offset, message):
    fake.spoil = flip(offset)
    outcome = ran(job(backend="rtl", seed=3))
    assert not outcome.report["verified"] and not outcome.report["bit_exact"]
    assert len(outcome.problems) == 1 and message in outcome.problems[0]


def test_a_device_error_names_code_detail_and_unit(fake):
    fake.plan = {
        "status": "error",
        "error_code": LaunchError.UNIT.value,
        "error_detail": TmaError.READ_DECERR.value,
        "error_unit": 4,
        "error_entry": 1,
    }
    with pytest.raises(DeviceError) as caught:
        ran(job(backend="rtl"))
    assert caught.value.message == (
        "chip ended the launch with UNIT error READ_DECERR of agcu_0, entry 1 of the launch list"
    )
    assert caught.value.where == "agcu_0" and caught.value.result["cycles"] == 1000
    assert caught.value.result["verified"] is None


@pytest.mark.parametrize(
    ("code", "detail", "message"),
    [
        (LaunchError.READ_SLVERR.value, 2, "READ_SLVERR at the image, entry 0"),
        (LaunchError.FINGERPRINT.value, 0, "FINGERPRINT, entry 0"),
        (LaunchError.UNIT.value, 0xFE, "UNIT error PROGRAM of pcu_0_0, entry 0"),
        (99, 0, "code 99, entry 0"),
    ],
)
def test_other_codes_are_named_too(fake, code, detail, message):
    fake.plan = {"status": "error", "error_code": code, "error_detail": detail}
    with pytest.raises(DeviceError, match=message):
        ran(job(backend="rtl"))


def hung(**state):
    """Counters and steps of a chip whose PCU 0, 0 waits for input and whose PMU 0, 1 stands."""
    kinds = list(unit_kinds(TINY).items())
    counters, steps = [0] * (COUNTER_WORDS * len(kinds)), [0] * (COUNTER_WORDS * len(kinds))
    for index, (name, kind) in enumerate(kinds):
        waits = "wait_input" if name == "pcu_0_0" else "idle"
        steps[COUNTER_WORDS * index + counter_numbers(kind)[waits]] = 64
        if name == "pmu_0_1":
            engine = {"enabled": 1, "slot": 2, "entered": 1, "port": 1, "reported": 1} | state
            word = pmu_state_layout().const({"r0": engine, "w1": {"enabled": 1, "done": 1}})
            counters[COUNTER_WORDS * index + counter_numbers(kind)["state"]] = word.as_bits()
    return {"status": "hang", "counters": counters, "counter_steps": steps}


@pytest.mark.parametrize(
    ("state", "held"),
    [
        ({"entered": 0, "lap": 1}, "r0 on barrier full of slot 2 in phase 1"),
        ({"port": 0}, "r0 on its port for room"),
        ({"reported": 0}, "r0 on its token to be taken"),
    ],
)
def test_a_hang_names_units_engines_barriers_and_what_memory_owes(fake, state, held):
    fake.plan = hung(**state) | {"reason": "no beat for 9 cycles", "owed": {"memory[0]": "1 reads"}}
    with pytest.raises(HangError) as caught:
        ran(job(backend="rtl"))
    message = caught.value.message
    assert message.startswith("no end: no beat for 9 cycles; pcu_0_0 waits for input; ")
    assert f"pmu_0_1 stands ({held})" in message and "w1" not in message
    assert "memory owes memory[0]: 1 reads" in message and "\n" not in message
    assert "the image is live, so either more cycles are needed or the hardware" in message
    assert caught.value.where == "pcu_0_0" and caught.value.code == 4


def test_a_hang_of_an_image_that_is_not_live_names_the_waits(fake, monkeypatch):
    waits = ("a waits for b", "b waits for a")
    monkeypatch.setattr(endings, "prove", lambda chip, repeat: Liveness(live=False, waits=waits))
    fake.plan = hung(port=0)
    with pytest.raises(HangError, match="the image is not live: a waits for b; b waits for a"):
        ran(job(backend="rtl"))


def test_patience_grows_with_what_memory_does(fake):
    slow = MemoryConditions(latency=200, stall=0.9)
    for conditions in (MemoryConditions(), slow):
        ran(job(backend="rtl", conditions=conditions))
    (_, quick), (_, patient) = fake.asked
    predicted = compile_job(job())[0].predicted_cycles
    assert quick > 8 * predicted and patient - 100_000 > 14 * (quick - 100_000)


def test_an_error_that_never_came_is_told(fake):
    conditions = MemoryConditions(error=ErrorAt("read", 10**6, "slverr"))
    outcome = ran(job(backend="rtl", conditions=conditions))
    assert outcome.report["verified"] and "the beat of --error-at never came" in outcome.notes


@pytest.mark.parametrize(
    ("backend", "options", "message"),
    [
        ("rlt", {}, "backend must be one of rtl, cocotb, emulator, golden, not 'rlt'"),
        ("cocotb", {"conditions": MemoryConditions(latency=9)}, "--latency must not be given"),
        ("cocotb", {"conditions": MemoryConditions(jitter=9)}, "--jitter must not be given"),
        ("emulator", {"warm": True}, "--warm must not be given with back end emulator"),
        ("golden", {"max_cycles": 9}, "--max-cycles must not be given with back end golden"),
        (
            "emulator",
            {"conditions": MemoryConditions(error=ErrorAt("read", 0, "slverr"))},
            "--error-at must not be given",
        ),
    ],
)
def test_what_a_back_end_does_not_have_is_refused_by_name(backend, options, message):
    with pytest.raises(BadInputError, match=message):
        job(backend=backend, **options)


def test_the_command_offers_every_back_end(capsys):
    with pytest.raises(SystemExit):
        tilewright.main(["run", "--help"])
    assert "{" + ",".join(BACKENDS) + "}" in capsys.readouterr().out


def test_an_answer_without_time_has_none():
    assert Answer(status="done", seconds=1.0).cycles is None
