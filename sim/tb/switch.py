"""Switch: random multicast trees and ordered merges; packet order checked at every output."""

from typing import Any

import cocotb

from hw.arch.ports import SwitchPorts
from hw.lib.stream import vector_layout
from hw.mesh.switch import Switch
from sim.cocotb.bench_support import Sink, Source, bench, clocks, random_generator, start
from sim.drivers.switch_case import SwitchCase, switch_port_name

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
        program = SwitchCase(rng, _PORTS, _WIDTH, rounds=_ROUNDS)
        sources = {
            port: Source(dut, switch_port_name("i", port), stall=stall) for port in _PORTS.inputs
        }
        sinks = {
            port: Sink(dut, switch_port_name("o", port), stall=stall) for port in _PORTS.outputs
        }
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
