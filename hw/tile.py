"""Tile of the fabric: one unit, its two switches and its segment of the configuration chain."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.config import ChipConfig
from hw.arch.counters import ACTIVITIES, COUNTER_BITS
from hw.arch.errors import BadInputError, shown
from hw.arch.limits import COUNTER_WORDS
from hw.arch.places import tile_layout, token_ports, vector_ports
from hw.emit.shared import shared
from hw.lib.activity import chosen_counter
from hw.lib.chain_segment import ChainSegment
from hw.lib.component import Component
from hw.lib.stream import vector_layout
from hw.mesh.switch import Switch
from hw.pcu.unit import Pcu
from hw.pmu.unit import Pmu

__all__ = ["SIDES", "Tile"]

SIDES = ("north", "east", "south", "west")
_KINDS = ("pcu", "pmu")


class Tile(Component):
    """Tile: one PCU or PMU, a vector and a token switch, and a configuration-chain segment.

    Parameters
    ----------
    kind : str
        ``"pcu"`` or ``"pmu"``.
    config : ChipConfig
        Parameters of the chip it is part of.

    Members
    -------
    i_SIDE, o_SIDE, i_SIDE_token, o_SIDE_token
        Arrays of links to the neighbour on each side.
    i_shift, i_data, o_data, i_load
        Configuration chain.
    i_start
        Start the loaded program; one cycle, the one after ``i_load``.
    i_run
        PMU engines step and the counters count in this cycle.
    o_done
        The unit has nothing left to send or write.
    o_error
        The unit detected an error of its program.
    i_counter, o_counter : ``In(range(8))``, ``Out(48)``
        Number of a counter of the unit (`hw.arch.counters`), and its value.
    o_issue
        A vector enters the unit's array in this cycle, and its weights are present.
    """

    i_shift: Signal
    i_data: Signal
    o_data: Signal
    i_load: Signal
    i_start: Signal
    i_run: Signal
    o_done: Signal
    o_error: Signal
    i_counter: Signal
    o_counter: Signal
    o_issue: Signal

    def __init__(self, kind: str, config: ChipConfig) -> None:
        if kind not in _KINDS:
            raise BadInputError(f"Tile kind must be one of {', '.join(_KINDS)}, not {shown(kind)}")
        self._chip = config
        self._kind = kind
        link = stream.Signature(vector_layout(config.width_bits))
        token = stream.Signature(0)
        members: dict[str, wiring.Member] = {}
        for side in SIDES:
            members[f"i_{side}"] = In(link).array(config.tracks)
            members[f"o_{side}"] = Out(link).array(config.tracks)
            members[f"i_{side}_token"] = In(token).array(config.token_tracks)
            members[f"o_{side}_token"] = Out(token).array(config.token_tracks)
        super().__init__(
            members
            | {
                "i_shift": In(1),
                "i_data": In(config.width_bits),
                "o_data": Out(config.width_bits),
                "i_load": In(1),
                "i_start": In(1),
                "i_run": In(1),
                "o_done": Out(1),
                "o_error": Out(1),
                "i_counter": In(range(COUNTER_WORDS)),
                "o_counter": Out(COUNTER_BITS),
                "o_issue": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chip, kind = self._chip, self._kind
        layout = tile_layout(chip, kind)
        segment = ChainSegment(width_bits=chip.width_bits, config_bits=layout.size)
        m.submodules.segment = shared(segment)
        program = data.View(layout, segment.o_config)
        m.d.comb += [
            segment.i_shift.eq(self.i_shift),
            segment.i_data.eq(self.i_data),
            self.o_data.eq(segment.o_data),
            segment.i_load.eq(self.i_load),
        ]

        ports = vector_ports(chip, kind)
        vectors = Switch(
            payload_shape=vector_layout(chip.width_bits),
            tracks=ports.tracks,
            unit_outputs=ports.unit_outputs,
            unit_inputs=ports.unit_inputs,
        )
        ports = token_ports(chip, kind)
        tokens = Switch(
            payload_shape=0,
            tracks=ports.tracks,
            unit_outputs=ports.unit_outputs,
            unit_inputs=ports.unit_inputs,
        )
        for name, switch, suffix in (("vectors", vectors, ""), ("tokens", tokens, "_token")):
            m.submodules[name] = shared(switch)
            m.d.comb += [
                switch.config.eq(program[name]),
                switch.i_clear.eq(self.i_start),
            ]
            for side in SIDES:
                for outer, inner in zip(
                    getattr(self, f"i_{side}{suffix}"), getattr(switch, f"i_{side}"), strict=True
                ):
                    wiring.connect(m, wiring.flipped(outer), inner)
                for outer, inner in zip(
                    getattr(self, f"o_{side}{suffix}"), getattr(switch, f"o_{side}"), strict=True
                ):
                    wiring.connect(m, inner, wiring.flipped(outer))
        if kind == "pcu":
            self._pcu(m, vectors, program)
        else:
            self._pmu(m, vectors, tokens, program)
        return m

    def _pcu(self, m: Module, vectors: Switch, program: data.View[data.StructLayout]) -> None:
        unit = Pcu(width_bits=self._chip.width_bits, config=self._chip.pcu)
        m.submodules.unit = shared(unit)
        for outer, inner in zip(
            vectors.o_unit, (unit.i_activation, unit.i_weight, unit.i_auxiliary), strict=True
        ):
            wiring.connect(m, outer, inner)
        wiring.connect(m, unit.o_result, vectors.i_unit[0])
        m.d.comb += [
            unit.config.eq(program.unit),
            unit.i_clear.eq(self.i_start),
            # A PCU has no loop bounds: it is done when the units that feed and drain it are.
            self.o_done.eq(1),
            unit.i_run.eq(self.i_run),
            unit.i_counter.eq(self.i_counter),
            self.o_counter.eq(unit.o_counter),
            self.o_issue.eq(unit.o_issue),
        ]

    def _pmu(
        self,
        m: Module,
        vectors: Switch,
        tokens: Switch,
        program: data.View[data.StructLayout],
    ) -> None:
        chip = self._chip
        unit = Pmu(
            width_bits=chip.width_bits,
            capacity_bytes=chip.pmu.capacity_bytes,
            slots=chip.pmu.slots,
        )
        m.submodules.unit = shared(unit)
        for index in range(2):
            wiring.connect(m, vectors.o_unit[index], unit.i_stream[index])
            wiring.connect(m, unit.o_stream[index], vectors.i_unit[index])
            wiring.connect(m, unit.o_token[index], tokens.i_unit[index])
        m.d.comb += [
            unit.config.eq(program.unit),
            unit.i_clear.eq(self.i_start),
            unit.i_run.eq(self.i_run),
            self.o_done.eq(unit.o_done.all()),
            self.o_error.eq(unit.o_error),
        ]
        counters = {name: unit.o_counters[name] for name in ACTIVITIES}
        state = Value.cast(unit.o_state)
        chosen_counter(m, "pmu", self.i_counter, counters | {"state": state}, self.o_counter)
