"""Cases for the testbench of an exported core, in the names of its ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gen.export.bus_ports import BusGroup, BusKind

__all__ = ["CoreCase", "port_record"]


def port_record(groups: Sequence[BusGroup]) -> dict[str, Any]:
    """What the testbench must know of the ports.

    Parameters
    ----------
    groups : sequence of BusGroup
    """
    clocks = [port.name for group in groups if group.kind is BusKind.CLOCK for port in group.ports]
    record: dict[str, Any] = {
        "clocked": "clk" in clocks,
        "reset": "rst" in clocks,
        "streams": [group.prefix for group in groups if group.kind is BusKind.AXI4_STREAM],
        "inputs": [
            port.name
            for group in groups
            if group.kind is BusKind.PLAIN
            for port in group.ports
            if not port.is_output
        ],
    }
    for group in groups:
        if group.kind is BusKind.AXI4 and group.is_manager:
            record["memory"] = group.prefix
        if group.kind is BusKind.AXI4_LITE and not group.is_manager:
            record["registers"] = group.prefix
    return record


class CoreCase:
    """Steps that the testbench does one after the other, from reset on.

    Names are those of the component; payloads are divided into ``tdata``, ``tlast`` and ``tuser``.

    Parameters
    ----------
    name : str
    groups : sequence of BusGroup
        Ports of the core.
    memory, memory_after : mapping of int to bytes
        Content of memory by address, before the first step and after the last.
    """

    def __init__(
        self,
        name: str,
        groups: Sequence[BusGroup],
        *,
        memory: Mapping[int, bytes] | None = None,
        memory_after: Mapping[int, bytes] | None = None,
    ) -> None:
        self.name = name
        self._groups = {group.inner: group for group in groups}
        self._steps: list[dict[str, Any]] = []
        self._memory = {
            "memory": _regions(memory or {}),
            "memory_after": _regions(memory_after or {}),
        }

    def _beats(self, name: str, payloads: Iterable[int]) -> tuple[str, list[list[str]]]:
        group = self._groups[name]
        return group.prefix, [list(map(hex, group.split(each).values())) for each in payloads]

    def _ports(self, values: Mapping[str, int]) -> dict[str, str]:
        found = {}
        for name, value in values.items():
            if name not in self._groups and value == 0:
                continue  # A port without bits.
            (port,) = self._groups[name].ports
            found[port.name] = hex(value & (1 << port.width) - 1)
        return found

    def set(self, *, cycles: int = 1, **values: int) -> None:
        """Set inputs, then wait for cycles."""
        self._steps.append({"set": self._ports(values), "cycles": cycles})

    def expect(self, *, cycles: int = 0, **values: int) -> None:
        """Wait for cycles, then compare outputs."""
        self._steps.append({"cycles": cycles, "expect": self._ports(values)})

    def exchange(
        self, send: Mapping[str, Iterable[int]], receive: Mapping[str, Iterable[int]]
    ) -> None:
        """Send payloads on some streams, and receive just these on others, at the same time."""
        self._steps.append(
            {
                "send": dict(self._beats(*each) for each in send.items()),
                "receive": dict(self._beats(*each) for each in receive.items()),
            }
        )

    def table(self, rows: Sequence[tuple[Mapping[str, int], Mapping[str, int]]]) -> None:
        """Inputs of each cycle, and outputs at its end; all rows name the same inputs."""
        lines = [(self._ports(inputs), self._ports(outputs)) for inputs, outputs in rows]
        longest = max((outputs for _, outputs in lines), key=len)
        self._steps.append(
            {
                "table": {
                    "inputs": list(lines[0][0]),
                    "outputs": list(longest),
                    "rows": [[list(line[0].values()), list(line[1].values())] for line in lines],
                }
            }
        )

    def register(
        self, kind: str, offset: int, word: int = 0, *, mask: int = -1, response: str = "OKAY"
    ) -> None:
        """Write a register, read it, or poll it until the bits of the mask have a value.

        Parameters
        ----------
        kind : str
            ``write``, ``read`` or ``poll``.
        offset : int
        word : int
            The word to write, or the expected bits.
        mask : int
            Bits of a read that are compared.
        response : str
            Expected response, ``OKAY`` or ``SLVERR``.
        """
        access = [hex(offset), f"{kind} {word & 0xFFFF_FFFF:#x}", hex(mask & 0xFFFF_FFFF), response]
        if not self._steps or "registers" not in self._steps[-1]:
            self._steps.append({"registers": []})
        self._steps[-1]["registers"].append(access)

    def record(self) -> dict[str, Any]:
        """The case as plain data."""
        memory = {key: regions for key, regions in self._memory.items() if regions}
        return {"name": self.name, **memory, "steps": self._steps}


def _regions(memory: Mapping[int, bytes]) -> dict[str, str]:
    return {hex(address): content.hex() for address, content in memory.items()}
