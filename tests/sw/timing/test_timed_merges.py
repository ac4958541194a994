"""Merges of a timed run: whole rotations in a step, in the cycles of single packets."""

import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16
from sw.compiler import compile_kernel
from sw.fabric.nets import find_nets
from sw.kernels.layer_norm import layer_norm
from sw.kernels.matmul import matmul
from sw.kernels.softmax import softmax
from sw.prove.stream_packets import StreamPackets
from sw.timing import timed_network
from sw.timing.timed_network import TimedNetwork
from tests.sw.test_timing import moves_alike


def run_of(program):
    nets = find_nets(program)
    network = TimedNetwork(program, nets, StreamPackets(program, nets), latency=100)
    network.run(whole=True)
    return network


def one_by_one(monkeypatch):
    """Merges pass each packet when it is sent."""
    monkeypatch.setattr(timed_network, "group_merges", lambda merges: None)


@pytest.mark.parametrize(
    ("kernel", "dims", "chip"),
    [
        (softmax, {"M": 256, "N": 200}, "small"),
        (softmax, {"M": 512, "N": 96}, "large"),
        (matmul, {"M": 96, "N": 200, "K": 64}, "small"),
    ],
)
def test_rotations_take_the_cycles_of_single_packets(kernel, dims, chip, monkeypatch):
    program = compile_kernel(kernel, named[chip], dims=dims, dtype=bf16).parts[0].chip
    together = run_of(program)
    one_by_one(monkeypatch)
    alone = run_of(program)
    assert together.end == pytest.approx(alone.end, rel=0.01)
    assert together.machine.steps < 0.8 * alone.machine.steps
    moves_alike(program)


def test_merges_that_send_to_one_another_are_a_group():
    dims = {"M": 256, "N": 256, "K": 64}
    program = compile_kernel(matmul, named["large"], dims=dims, dtype=bf16).parts[0].chip
    network = run_of(program)
    groups = {}
    for root, merge in network._merges.items():
        groups.setdefault(merge.group, []).append(merge)
        assert (merge.group is None) == root.tokens
    groups.pop(None, None)
    assert any(len(members) > 1 for members in groups.values())
    for group in groups:
        order = [each.merge for each in group._members]
        for each in group._members:
            assert all(order.index(each.merge) < order.index(t.merge) for _, t in each.takers)
            assert all(each.rate * each.size == t.rate * size for size, t in each.takers)


def test_long_packets_pass_when_they_are_sent():
    """Chains that share a PCU send whole rows, each in one step."""
    dims = {"M": 300, "N": 96}
    program = compile_kernel(layer_norm, named["large"], dims=dims, dtype=bf16).parts[0].chip
    network = run_of(program)
    alone = [each for each in network._merges.values() if each.group is None]
    assert alone and all(each.passes for each in alone)
    assert network.machine.steps < 2000
    moves_alike(program)
