"""see-d: the predicted timeline against the one of the RTL."""

import collections

import pytest

from sw.kernels.flash_attention import flash_attention
from sw.kernels.gated_mlp import gated_mlp
from sw.kernels.matmul import matmul
from sw.kernels.residual import residual
from sw.kernels.rms_norm import rms_norm
from sw.kernels.softmax import softmax
from tests.attention_in_parts import attention_in_parts
from tests.profiled_run import profiled

#: Share of the run by which a block may begin or end elsewhere.
_NEAR = 0.05


@pytest.mark.timeout(900)
@pytest.mark.must("see-d", goal="≥ 90 % of blocks begin and end within 5 % of the run")
@pytest.mark.parametrize(
    ("kernel", "dims"),
    [
        (matmul, {"M": 64, "N": 32, "K": 32}),
        (matmul, {"M": 33, "N": 24, "K": 40}),
        (softmax, {"M": 16, "N": 64}),
    ],
    ids=["product", "ragged", "softmax"],
)
def test_predicted_blocks_are_where_they_are_in_rtl(kernel, dims, heavy, figure):
    _compare(kernel, dims, "tiny", figure)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("see-d", goal="≥ 90 % of blocks begin and end within 5 % of the run")
@pytest.mark.parametrize(
    ("kernel", "dims", "config"),
    [
        (matmul, {"M": 64, "N": 64, "K": 64}, "small"),
        (softmax, {"M": 48, "N": 96}, "small"),
        (rms_norm, {"M": 24, "N": 48}, "tiny"),
        (residual, {"M": 32, "N": 24, "K": 16}, "tiny"),
        (attention_in_parts, {"H": 1, "M": 20, "S": 24, "D": 16}, "tiny"),
        (flash_attention, {"H": 1, "G": 1, "M": 16, "S": 32, "D": 16}, "tiny"),
        (flash_attention, {"H": 2, "G": 1, "M": 40, "S": 96, "D": 32}, "small"),
        (flash_attention, {"H": 2, "G": 1, "M": 1, "S": 256, "D": 16}, "small"),
        (gated_mlp, {"M": 32, "D": 64, "F": 64}, "small"),
    ],
    ids=[
        "product on small",
        "softmax on small",
        "norm",
        "residual",
        "attention in parts",
        "attention",
        "attention on small",
        "decoding on small",
        "gated layer on small",
    ],
)
def test_wider_predictions_are_where_they_are_in_rtl(kernel, dims, config, heavy, figure):
    _compare(kernel, dims, config, figure)


def _compare(kernel, dims, config, figure):
    real = profiled(kernel, dims, config=config, every=1)
    model = profiled(kernel, dims, config=config, backend="emulator")
    assert model["predicted"] and not real["predicted"]
    limit = _NEAR * real["cycles"]
    turns = [_turns(profile) | _spans(profile) for profile in (real, model)]
    assert set(turns[0]) == set(turns[1])
    assert _numbers(real) <= _numbers(model)
    near = [
        all(abs(turns[0][key][end] - turns[1][key][end]) <= limit for end in ("begin", "end"))
        for key in turns[0]
    ]
    share = sum(near) / len(near)
    figure(f"{share:.3f} of {len(near)} turns of slots and spans of units, {kernel.name}")
    assert share >= 0.9


def _numbers(profile):
    """Turns of slots by engine and the number that they have."""
    return {
        (block["unit"], block["part"], block["number"])
        for block in profile["blocks"]
        if block["unit"].startswith("pmu")
    }


def _spans(profile):
    """From the first to the last work of each array and AGCU in each kernel.

    Lanes count the cycle in which they load their program as work: it is no block of a vector.
    """
    found = {}
    for number, entry in enumerate(profile["entries"]):
        for block in profile["blocks"]:
            key = block["unit"], number
            inside = entry["begin"] <= block["begin"] < entry["end"]
            inside &= block["end"] - block["begin"] > 1
            if inside and not block["unit"].startswith("pmu"):
                own = found.setdefault(key, {"begin": block["begin"], "end": 0})
                own["end"] = max(own["end"], block["end"])
    return found


def _turns(profile):
    """Turns of slots by engine and number within it."""
    found, counts = {}, collections.Counter()
    for block in profile["blocks"]:
        if block["unit"].startswith("pmu") and block["part"][0] in "WR":
            engine = block["unit"], block["part"]
            found[(*engine, counts[engine])] = block
            counts[engine] += 1
    return found
