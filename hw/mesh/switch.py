"""Mesh switch: input buffers, eager forks and ordered merges, and the wires between them."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.ports import Direction, Link, Port, SwitchPorts
from hw.arch.switch import switch_layout
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.stream import ElasticBuffer
from hw.mesh.fork import EagerFork
from hw.mesh.merge import OrderedMerge

__all__ = ["Switch"]


class Switch(Component):
    """Elastic, statically routed mesh switch: T tracks per direction and the ports of one unit.

    One cycle from any input to any output, one payload per cycle at every port; every ``ready`` is
    a register output and every output comes from registers. `SwitchPorts` states which input may
    feed which output; `SwitchProgram` makes the program word.

    Parameters
    ----------
    payload_shape : data.StructLayout or int
        Shape of a payload. A field ``last`` ends packets; without it every payload is a packet,
        and 0 makes a switch of the token network.
    tracks, unit_outputs, unit_inputs, link_turns, unit_turns : int
        As of `SwitchPorts`.

    Members
    -------
    i_north, i_east, i_south, i_west : ``In(stream.Signature(payload_shape)).array(tracks)``
        Links from the neighbour in that direction.
    o_north, o_east, o_south, o_west : ``Out(stream.Signature(payload_shape)).array(tracks)``
        Links to the neighbour in that direction.
    i_unit : ``In(stream.Signature(payload_shape)).array(unit_outputs)``
        The unit's outputs.
    o_unit : ``Out(stream.Signature(payload_shape)).array(unit_inputs)``
        The unit's inputs.
    config : ``In(switch_layout(ports))``
        Program word; changes only while ``i_clear`` is high.
    i_clear : ``In(1)``
        Empties the switch at the next edge; payloads transferred in that cycle are lost.
    o_moved : ``Out(1)``
        An output transferred a payload in the cycle before.
    """

    i_north: Sequence[stream.Interface]
    i_east: Sequence[stream.Interface]
    i_south: Sequence[stream.Interface]
    i_west: Sequence[stream.Interface]
    o_north: Sequence[stream.Interface]
    o_east: Sequence[stream.Interface]
    o_south: Sequence[stream.Interface]
    o_west: Sequence[stream.Interface]
    i_unit: Sequence[stream.Interface]
    o_unit: Sequence[stream.Interface]
    config: data.View[data.StructLayout]
    i_clear: Signal
    o_moved: Signal

    def __init__(
        self,
        *,
        payload_shape: data.StructLayout | int,
        tracks: int,
        unit_outputs: int,
        unit_inputs: int,
        link_turns: int = 3,
        unit_turns: int = 4,
    ) -> None:
        self._payload_shape = payload_shape
        self._ports = SwitchPorts(tracks, unit_outputs, unit_inputs, link_turns, unit_turns)
        link = stream.Signature(payload_shape)
        sides = [side.name.lower() for side in Direction]
        super().__init__(
            {f"i_{side}": In(link).array(tracks) for side in sides}
            | {f"o_{side}": Out(link).array(tracks) for side in sides}
            | {
                "i_unit": In(link).array(unit_outputs),
                "o_unit": Out(link).array(unit_inputs),
                "config": In(switch_layout(self._ports)),
                "i_clear": In(1),
                "o_moved": Out(1),
            }
        )

    @property
    def payload_shape(self) -> data.StructLayout | int:
        """Shape of a payload."""
        return self._payload_shape

    @property
    def ports(self) -> SwitchPorts:
        """Ports of the switch and its internal topology."""
        return self._ports

    def input(self, port: Port) -> stream.Interface:
        """Stream at which payloads enter a port."""
        return self._stream("i", port)

    def output(self, port: Port) -> stream.Interface:
        """Stream at which payloads leave a port."""
        return self._stream("o", port)

    def _stream(self, prefix: str, port: Port) -> stream.Interface:
        if isinstance(port, Link):
            links: Sequence[stream.Interface] = getattr(
                self, f"{prefix}_{port.direction.name.lower()}"
            )
            return links[port.track]
        return (self.i_unit if prefix == "i" else self.o_unit)[port.index]

    def _closes_packet(self, payload: Value | data.View[data.StructLayout]) -> Value:
        if isinstance(payload, data.View) and "last" in payload.shape().members:
            return Value.cast(payload.last)
        return Value.cast(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports = self._ports
        buffers = {port: ElasticBuffer(self._payload_shape) for port in ports.inputs}
        merges = {
            port: OrderedMerge(sources=len(ports.sources(port)), turns=ports.turns(port))
            for port in ports.outputs
        }
        # Per crosspoint, by source and output: the fork offers a payload.
        offers: dict[tuple[Port, Port], Value] = {}
        for source, buffer in buffers.items():
            label = _label(source)
            branches = [port for port in ports.outputs if source in ports.sources(port)]
            fork = EagerFork(branches=len(branches))
            m.submodules[f"buffer_{label}"] = shared(buffer)
            m.submodules[f"fork_{label}"] = shared(fork)
            wiring.connect(m, wiring.flipped(self.input(source)), buffer.i_stream)
            m.d.comb += [
                buffer.i_clear.eq(self.i_clear),
                fork.i_clear.eq(self.i_clear),
                fork.i_valid.eq(buffer.o_stream.valid),
                buffer.o_stream.ready.eq(fork.o_ready),
            ]
            for index, port in enumerate(branches):
                merge = merges[port]
                position = ports.sources(port).index(source)
                offers[source, port] = fork.o_valid[index]
                m.d.comb += [
                    fork.feeds[index].eq(merge.o_feeds[position]),
                    fork.i_ready[index].eq(merge.o_select[position] & self.output(port).ready),
                ]

        moved = []
        for port, merge in merges.items():
            label = _label(port)
            m.submodules[f"merge_{label}"] = shared(merge)
            output = self.output(port)
            sources = ports.sources(port)
            payloads = [Value.cast(buffers[source].o_stream.payload) for source in sources]
            offered = Cat(*(offers[source, port] for source in sources)) & merge.o_select
            transfer = output.valid & output.ready
            moved.append(transfer)
            m.d.comb += [
                merge.rotation.eq(self._rotation(port)),
                merge.i_clear.eq(self.i_clear),
                merge.i_transfer.eq(transfer),
                merge.i_last.eq(self._closes_packet(output.payload)),
                output.valid.eq(offered.any()),
                Value.cast(output.payload).eq(_choose(payloads, merge.o_source)),
            ]
        m.d.sync += self.o_moved.eq(Cat(*moved).any())
        return m

    def _rotation(self, port: Port) -> Value:
        if isinstance(port, Link):
            return Value.cast(self.config[port.direction.name.lower()][port.track])
        return Value.cast(self.config.unit[port.index])


def _label(port: Port) -> str:
    return str(port).replace("track ", "").replace("port ", "").replace(" ", "_")


def _choose(values: Sequence[Value], index: Value) -> Value:
    """Multiplexer as a minimal tree; the index must be below the number of values."""
    for bit in index:
        pairs = [values[at : at + 2] for at in range(0, len(values), 2)]
        values = [Mux(bit, *reversed(pair)) if len(pair) == 2 else pair[0] for pair in pairs]
    return values[0]
