"""see-a: every cycle of every unit has one cause, and planted bottlenecks are named first."""

import pytest

from sw.kernels.attention import attention
from sw.kernels.flash_attention import flash_attention
from sw.kernels.matmul import matmul
from sw.kernels.softmax import softmax
from sw.language import Schedule
from tests.profiled_run import busy_cycles, profiled

HEAD = {"H": 1, "S": 24, "D": 16}
KERNELS = {
    "product": (matmul, {"M": 24, "N": 20, "K": 33}),
    "softmax": (softmax, {"M": 12, "N": 40}),
    "attention": (attention, HEAD | {"M": 20}),
    "decode": (flash_attention, {"H": 2, "G": 1, "M": 1, "S": 40, "D": 16}),
}
CONDITIONS = {
    "cold": {},
    "warm": {"warm": True},
    "stalled": {"stall": 0.4},
    "warm, stalled": {"warm": True, "stall": 0.4},
    "slow": {"latency": 400, "jitter": 30},
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("see-a", goal="causes of every unit sum to cycles, ≥ 20 runs")
def test_causes_of_every_unit_sum_to_the_cycles(heavy, figure):
    runs = units = 0
    for kernel, dims in KERNELS.values():
        for conditions in CONDITIONS.values():
            profile = profiled(kernel, dims, **conditions)
            assert not profile["predicted"] and profile["cycles"] == profile["report"]["cycles"]
            counters = profile["report"]["counters"]
            busy = busy_cycles(profile)
            for unit in profile["units"]:
                causes = [(each["cause"], each["by"]) for each in unit["causes"]]
                assert len(set(causes)) == len(causes)
                assert sum(each["cycles"] for each in unit["causes"]) == profile["cycles"]
                if profile["report"]["entries"] == 1 and unit["used"]:
                    lanes = busy[unit["name"]] - counters[unit["name"]]["busy"]
                    # Lanes of a softmax are work beside the array's.
                    beside = any("softmax" in each for each in unit["labels"])
                    assert lanes >= 0 if beside else lanes == 0
                units += 1
            runs += 1
    assert runs >= 20
    figure(f"{runs} runs, {units} units: every sum equal to cycles")


def _slots(**numbers):
    return {"schedule": Schedule(slots=numbers)}


_CUBE = {"M": 64, "N": 64, "K": 64}
#: Bottlenecks: kernel and sizes, what is planted, and the first finding.
PLANTED = {
    "memory answers late": (matmul, _CUBE, {"latency": 2000}, "memory", "agcu_0"),
    "memory pauses": (matmul, _CUBE, {"stall": 0.9}, "memory", "agcu_0"),
    "one slot": (matmul, _CUBE, _slots(a_tile=1, b_tile=1), "slots", "pmu"),
    "one slot, few columns": (
        matmul,
        _CUBE | {"N": 8},
        _slots(a_tile=1, b_tile=1),
        "slots",
        "pmu",
    ),
    "a narrow port": (matmul, _CUBE | {"M": 1, "N": 256}, {}, "port", "agcu_0"),
    "a narrow port, two rows": (matmul, _CUBE | {"M": 2, "N": 256}, {}, "port", "agcu_0"),
    "one PCU": (matmul, _CUBE, {"schedule": Schedule(row_par={"c": 1})}, "busy", "pcu"),
    "one PCU, ragged": (
        matmul,
        {"M": 65, "N": 47, "K": 70},
        {"schedule": Schedule(row_par={"c": 1}, col_par={"c": 1})},
        "busy",
        "pcu",
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("see-a", goal="planted bottlenecks are named first: ≥ 9 of 10")
@pytest.mark.parametrize("backend", ["rtl", "emulator"])
def test_planted_bottlenecks_are_named_first(backend, heavy, figure):
    found = {}
    for name, (kernel, dims, planted, cause, by) in PLANTED.items():
        if backend == "emulator" and "stall" in planted:
            continue
        profile = profiled(kernel, dims, backend=backend, **planted)
        first = profile["findings"][0]
        found[name] = first["cause"] == cause and first["by"].startswith(by)
    named = sum(found.values())
    figure(f"{backend}: {named} of {len(found)} named first")
    assert named >= 0.9 * len(found), [name for name, right in found.items() if not right]
