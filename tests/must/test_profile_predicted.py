"""see-d: the predicted timeline against the one of the RTL."""

import collections

import pytest

from sw.kernels.matmul import matmul
from sw.kernels.softmax import softmax
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
    real = profiled(kernel, dims, every=1)
    model = profiled(kernel, dims, backend="emulator")
    assert model["predicted"] and not real["predicted"]
    limit = _NEAR * real["cycles"]
    turns = [_turns(profile) for profile in (real, model)]
    assert set(turns[0]) == set(turns[1])
    near = [
        all(abs(turns[0][key][end] - turns[1][key][end]) <= limit for end in ("begin", "end"))
        for key in turns[0]
    ]
    share = sum(near) / len(near)
    figure(f"{share:.3f} of {len(near)} turns of slots, {kernel.name}")
    assert share >= 0.9


def _turns(profile):
    """Turns of slots by engine and number within it."""
    found, counts = {}, collections.Counter()
    for block in profile["blocks"]:
        if block["unit"].startswith("pmu") and block["part"][0] in "WR":
            engine = block["unit"], block["part"]
            found[(*engine, counts[engine])] = block
            counts[engine] += 1
    return found
