"""Predicted timeline: it has every payload, takes the predicted cycles, and changes nothing."""

import collections

import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16
from sw.compiler import compile_kernel
from sw.kernels.matmul import matmul
from sw.kernels.softmax import softmax
from sw.timing.prediction import predict_cycles
from sw.timing.timed_lanes import PHASE_CHANGE
from sw.timing.timeline import predict_timeline


@pytest.fixture(
    scope="module", params=[(matmul, {"M": 20, "N": 12, "K": 17}), (softmax, {"M": 9, "N": 50})]
)
def part(request):
    kernel, dims = request.param
    return compile_kernel(kernel, named["tiny"], dims=dims, dtype=bf16).parts[0].chip


@pytest.mark.parametrize("latency", [1, 100, 400])
def test_it_takes_the_predicted_cycles(part, latency):
    found = predict_timeline(part, latency=latency)
    assert found.cycles == pytest.approx(predict_cycles(part, latency=latency).kernel, rel=0.01)
    assert all(move.run.first >= 0 and move.run.last < found.cycles for move in found.moves)


def test_it_has_every_vector_of_the_prediction(part):
    sent = collections.Counter()
    for move in predict_timeline(part).moves:
        if move.part[:1] == "R" or move.part.startswith("load"):
            sent[move.unit, int(move.part[-1])] += move.run.size
    expected = predict_cycles(part).vectors
    assert {key: count for key, count in expected.items() if key[0][:3] != "pcu"} == sent


def test_iterations_move_as_often_as_one(part):
    once, several = predict_timeline(part), predict_timeline(part, repeat=3)
    assert several.cycles == pytest.approx(predict_cycles(part, repeat=3).kernel, rel=0.02)
    sizes = [collections.Counter() for _ in range(2)]
    for count, timeline in zip(sizes, (once, several), strict=True):
        for move in timeline.moves:
            count[move.unit, move.part] += move.run.size
    more = {key: count - 3 * sizes[0][key] for key, count in sizes[1].items()}
    # Lanes also have the pauses between iterations, which the chip counts as work.
    pauses = {count for (_, name), count in more.items() if name == "lanes"}
    assert pauses <= {0, 2 * (PHASE_CHANGE - 1)}
    assert not any(count for (_, name), count in more.items() if name != "lanes")
    assert sizes[0].keys() == sizes[1].keys()


def test_moves_of_tokens_are_told_apart(part):
    tokens = [move for move in predict_timeline(part).moves if move.token]
    assert tokens and all(move.number == -1 for move in tokens)
