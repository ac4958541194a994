"""Switch: random multicast trees and ordered merges; packet order checked at every output."""

from typing import Any

import cocotb
import numpy as np

from hw.arch.ports import Link, Port, SwitchPorts
from hw.arch.switch import OutputProgram, SwitchProgram, Turn
from hw.lib.stream import vector_layout
from hw.mesh.switch import Switch
from sim.cocotb.bench_support import Sink, Source, bench, clocks, random_generator, start

__all__ = ["design", "outputs_take_whole_packets_in_the_order_of_their_rotations"]

_WIDTH = 8
_PORTS = SwitchPorts(tracks=2, unit_outputs=2, unit_inputs=3)
_PROGRAMS = 12
_ROUNDS = 8


def design() -> Switch:
    """The switch under test."""
    return Switch(
        payload_shape=vector_layout(_WIDTH),
        tracks=_PORTS.tracks,
        unit_outputs=_PORTS.unit_outputs,
        unit_inputs=_PORTS.unit_inputs,
    )


def _name(direction: str, port: Port) -> str:
    side = port.direction.name.lower() if isinstance(port, Link) else "unit"
    return f"{direction}_{side}__{port.track if isinstance(port, Link) else port.index}"


class _Program:
    """A random program with input packets and expected output packets.

    A program whose outputs take the same packets in conflicting orders would deadlock. So every
    rotation follows a common order of the inputs, and an input has the same number of packets
    per round at all its outputs.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        order = [_PORTS.inputs[index] for index in rng.permutation(len(_PORTS.inputs))]
        counts = {port: int(rng.integers(1, 4)) for port in order}
        rotations: dict[Port, list[Port]] = {}
        for output in _PORTS.outputs:
            reachable = [port for port in order if port in _PORTS.sources(output)]
            turns = int(rng.integers(0, min(_PORTS.turns(output), len(reachable)) + 1))
            chosen = sorted(rng.choice(len(reachable), turns, replace=False))
            rotations[output] = [reachable[index] for index in chosen]
        used = {port for rotation in rotations.values() for port in rotation}
        packets = {
            port: [self._packet(rng) for _ in range(_ROUNDS * counts[port])]
            for port in order
            if port in used
        }
        self.sends = {port: sum(items, []) for port, items in packets.items()}
        self.expected = {
            output: [
                payload
                for turn in range(_ROUNDS)
                for port in rotation
                for packet in packets[port][turn * counts[port] : (turn + 1) * counts[port]]
                for payload in packet
            ]
            for output, rotation in rotations.items()
        }
        self.config = SwitchProgram(
            _PORTS,
            [
                OutputProgram(output, tuple(Turn(port, counts[port]) for port in rotation))
                for output, rotation in rotations.items()
                if rotation
            ],
        ).pack()

    def _packet(self, rng: np.random.Generator) -> list[int]:
        length = int(rng.integers(1, 6))
        values = rng.integers(0, 1 << _WIDTH, length)
        return [int(value) | (index == length - 1) << _WIDTH for index, value in enumerate(values)]


@bench(limit_cycles=100_000)
@cocotb.parametrize(stall=[0.0, 0.3, 0.8])
async def outputs_take_whole_packets_in_the_order_of_their_rotations(
    dut: Any, stall: float
) -> None:
    """Random programs with stalls at every port; disabled outputs stay silent.

    Every second program is interrupted by the next; none of its packets may remain.
    """
    rng = random_generator()
    await start(dut, config=0, i_clear=1)
    for number in range(2 * _PROGRAMS):
        program = _Program(rng)
        sources = {port: Source(dut, _name("i", port), stall=stall) for port in _PORTS.inputs}
        sinks = {port: Sink(dut, _name("o", port), stall=stall) for port in _PORTS.outputs}
        dut.i_clear.value = 1
        dut.config.value = program.config
        await clocks(dut, 2)
        dut.i_clear.value = 0
        sending = [
            cocotb.start_soon(sources[port].send(payloads))
            for port, payloads in program.sends.items()
        ]
        taking = {
            port: cocotb.start_soon(sinks[port].take(len(payloads)))
            for port, payloads in program.expected.items()
        }
        if number % 2 == 0:
            await clocks(dut, int(rng.integers(1, 60)))
            for send in sending:
                send.cancel()
            for take in taking.values():
                take.cancel()
            continue
        for port, task in taking.items():
            assert await task == program.expected[port], str(port)
        silent = [cocotb.start_soon(sink.expect_silence(20)) for sink in sinks.values()]
        for quiet in silent:
            await quiet
        assert all(sources[port].sent == len(sent) for port, sent in program.sends.items())
