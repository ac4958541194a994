"""Random cases of a switch: a program, the packets of its inputs, those of its outputs."""

import numpy as np

from hw.arch.ports import Link, Port, SwitchPorts
from hw.arch.switch import OutputProgram, SwitchProgram, Turn

__all__ = ["SwitchCase", "switch_port_name"]


def switch_port_name(direction: str, port: Port) -> str:
    """Name of a stream of the component :class:`hw.mesh.switch.Switch`.

    Parameters
    ----------
    direction : str
        ``i`` or ``o``.
    port : Port
    """
    side = port.direction.name.lower() if isinstance(port, Link) else "unit"
    return f"{direction}_{side}__{port.track if isinstance(port, Link) else port.index}"


class SwitchCase:
    """A random program with input packets and expected output packets.

    A program whose outputs take the same packets in conflicting orders would deadlock. So every
    rotation follows a common order of the inputs, and an input has the same number of packets
    per round at all its outputs.

    Parameters
    ----------
    rng : numpy.random.Generator
    ports : SwitchPorts
    width_bits : int
        Data of a vector; 0 for tokens, which are packets of one.
    rounds : int
        Times that every rotation is run through.

    Members
    -------
    sends, expected : dict
        Payloads by input port and by output port.
    config : int
        Program word.
    """

    def __init__(
        self, rng: np.random.Generator, ports: SwitchPorts, width_bits: int, *, rounds: int
    ) -> None:
        self._width = width_bits
        order = [ports.inputs[index] for index in rng.permutation(len(ports.inputs))]
        counts = {port: int(rng.integers(1, 4)) for port in order}
        rotations: dict[Port, list[Port]] = {}
        for output in ports.outputs:
            reachable = [port for port in order if port in ports.sources(output)]
            turns = int(rng.integers(0, min(ports.turns(output), len(reachable)) + 1))
            chosen = sorted(rng.choice(len(reachable), turns, replace=False))
            rotations[output] = [reachable[index] for index in chosen]
        used = {port for rotation in rotations.values() for port in rotation}
        packets = {
            port: [self._packet(rng) for _ in range(rounds * counts[port])]
            for port in order
            if port in used
        }
        self.sends = {port: sum(items, []) for port, items in packets.items()}
        self.expected = {
            output: [
                payload
                for turn in range(rounds)
                for port in rotation
                for packet in packets[port][turn * counts[port] : (turn + 1) * counts[port]]
                for payload in packet
            ]
            for output, rotation in rotations.items()
        }
        self.config = SwitchProgram(
            ports,
            [
                OutputProgram(output, tuple(Turn(port, counts[port]) for port in rotation))
                for output, rotation in rotations.items()
                if rotation
            ],
        ).pack()

    def _packet(self, rng: np.random.Generator) -> list[int]:
        if not self._width:
            return [0]
        length = int(rng.integers(1, 6))
        values = [int.from_bytes(rng.bytes(self._width // 8), "little") for _ in range(length)]
        return [value | (index == length - 1) << self._width for index, value in enumerate(values)]
