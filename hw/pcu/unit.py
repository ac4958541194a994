"""Pattern compute unit (PCU): a matrix unit, and lanes beside it, behind packet filters."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.config import PcuConfig
from hw.arch.counters import ACTIVITIES, COUNTER_BITS
from hw.arch.lanes.softmax_program import SoftmaxRole
from hw.arch.limits import COUNTER_WORDS, LINK_BITS
from hw.arch.unit_kind import PCU
from hw.arch.words.pcu_word import format_modes
from hw.emit.shared import shared
from hw.lib.activity import chosen_counter
from hw.lib.component import Component
from hw.lib.packet_filter import PacketFilter
from hw.lib.stream import vector_signature
from hw.matrix.matrix_unit import MatrixUnit
from hw.pcu.lanes import Lanes
from hw.pcu.packet_cutter import PacketCutter

__all__ = ["Pcu"]


class Pcu(Component):
    """Pattern compute unit: packet filters, a matrix unit, lanes if it has any, and counters.

    Without a lane program the results are the sums. With one they are those of the lanes, which
    take the sums, or, while the matrix unit is idle, the activation stream
    (`hw.arch.pcu.PcuProgram`).

    Each port takes one vector per cycle. Of a stream that is multicast to P units, each takes its
    own packets and discards the others, so that it never blocks its siblings.

    Parameters
    ----------
    width_bits : int
        Link width W (`LINK_BITS`), which fixes the array: W/16 rows, W/32 columns.
    config : PcuConfig

    Members
    -------
    i_activation, i_weight, o_result : vector streams
        See :class:`hw.matrix.matrix_unit.MatrixUnit`.
    i_auxiliary : vector stream
        Stream of the lanes; without lanes never ready.
    config : ``In(config.layout)``
        The program; changes only while the unit is empty and ``i_clear`` is high.
    i_clear
        Restarts the packet counts of multicast streams at 0, the weights with a new group, the
        lanes with their first phase, and the results with a new packet.
    i_run
        The counters count in this cycle.
    i_counter, o_counter : ``In(range(8))``, ``Out(48)``
        Number of a counter (`hw.arch.counters`), and its value: cycles with ``i_run`` by the
        unit's activity, and vectors.
    o_issue
        A vector enters the array in this cycle, and its weights are present.

    Raises
    ------
    BadInputError
        The width is outside its domain.
    """

    i_activation: stream.Interface
    i_weight: stream.Interface
    i_auxiliary: stream.Interface
    o_result: stream.Interface
    config: data.View[data.StructLayout]
    i_clear: Signal
    i_run: Signal
    i_counter: Signal
    o_counter: Signal
    o_issue: Signal

    def __init__(self, *, width_bits: int, config: PcuConfig) -> None:
        LINK_BITS.require("Link width in bits", width_bits)
        self._width_bits = width_bits
        self._config = config
        link = vector_signature(width_bits)
        super().__init__(
            {
                "i_activation": In(link),
                "i_weight": In(link),
                "i_auxiliary": In(link),
                "o_result": Out(link),
                "config": In(config.layout),
                "i_clear": In(1),
                "i_run": In(1),
                "i_counter": In(range(COUNTER_WORDS)),
                "o_counter": Out(COUNTER_BITS),
                "o_issue": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit = MatrixUnit(
            rows=self._width_bits // 16,
            columns=self._width_bits // 32,
            formats=self._config.operands,
            latency=self._config.cell_latency,
            accumulator_rows=self._config.accumulator_rows,
            softmax=self._config.lanes > 0,
        )
        m.submodules.matrix_unit = shared(unit)
        activation = self._filtered(m, "activation", self.i_activation)
        wiring.connect(m, self._filtered(m, "weight", self.i_weight), unit.i_weight)
        m.submodules.cutter = cutter = PacketCutter(width_bits=self._width_bits)
        wiring.connect(m, cutter.o_stream, wiring.flipped(self.o_result))
        m.d.comb += [
            cutter.i_clear.eq(self.i_clear),
            cutter.vectors.eq(self.config.packet_vectors),
        ]
        counters = {name: unit.counters[name] for name in ACTIVITIES}
        # A busy cycle of the matrix unit is one in which a vector enters the array, and none enters
        # without its weights.
        counters |= {"vectors": unit.counters.busy, "groups": Const(0, COUNTER_BITS)}
        if self._config.lanes:
            counters |= self._lanes(m, activation, unit, cutter.i_stream)
        else:
            wiring.connect(m, activation, unit.i_activation)
            wiring.connect(m, unit.o_result, cutter.i_stream)
        # The next packet of weights that is taken begins a group of tiles: the one before had
        # `final`, or a packet of another unit that has passed since.
        begins = Signal(init=1)
        weight = self.i_weight
        with m.If(self.i_clear):
            m.d.sync += begins.eq(1)
        with m.Elif(weight.valid & weight.ready & weight.payload.last):
            m.d.sync += begins.eq(weight.payload.final | (begins & ~unit.i_weight.valid))
        # A scores unit needs the mark for its query groups.
        marked: Value = self.config.by_group
        if self._config.lanes:
            marked |= self._scores
        m.d.comb += unit.i_continues.eq(marked & ~begins)
        m.d.comb += [
            *(
                getattr(unit, mode).eq(self.config[mode])
                for mode in format_modes(self._config.operands)
            ),
            unit.weights_by_row.eq(self.config.weights_by_row),
            unit.i_hold.eq(~self.i_run),
            self.o_issue.eq(unit.o_issue),
        ]
        chosen_counter(m, PCU, self.i_counter, counters, self.o_counter)
        return m

    @property
    def _scores(self) -> Value:
        """Whether it is a scores unit."""
        return Value.cast(self.config.softmax.role) == SoftmaxRole.SCORES.value

    def _filtered(self, m: Module, name: str, port: stream.Interface) -> stream.Interface:
        """Packets of a port that are this unit's."""
        taken = PacketFilter(width_bits=self._width_bits)
        m.submodules[f"{name}_filter"] = shared(taken)
        m.d.comb += [
            taken.i_clear.eq(self.i_clear),
            taken.modulus.eq(self.config[name].modulus),
            taken.index.eq(self.config[name].index),
        ]
        wiring.connect(m, wiring.flipped(port), taken.i_stream)
        return taken.o_stream

    def _lanes(
        self, m: Module, activation: stream.Interface, unit: MatrixUnit, result: stream.Interface
    ) -> dict[str, Value]:
        """Add the lanes between the streams and the results; returns the counters they change."""
        lanes = Lanes(
            width_bits=self._width_bits,
            lanes=self._config.lanes,
            function_bits=self._config.function_bits,
            functions=self._config.functions,
        )
        m.submodules.lanes = shared(lanes)
        wiring.connect(m, self._filtered(m, "auxiliary", self.i_auxiliary), lanes.i_auxiliary)
        # On without sums, the lanes take the activations in place of the matrix unit.
        active, alone = Signal(), lanes.o_activity.works
        sums = unit.o_result
        groups = Signal(COUNTER_BITS)
        m.d.comb += [
            active.eq(self.config.lanes.count != 0),
            lanes.config.eq(self.config.lanes),
            lanes.i_clear.eq(self.i_clear),
            lanes.i_scores.eq(self._scores),
            unit.softmax.eq(self.config.softmax),
            unit.i_clear.eq(self.i_clear),
            unit.i_beside.eq(lanes.o_activity),
            unit.i_activation.payload.eq(activation.payload),
            lanes.i_activation.payload.eq(activation.payload),
            unit.i_activation.valid.eq(activation.valid & ~alone),
            lanes.i_activation.valid.eq(activation.valid & alone),
            activation.ready.eq(Mux(alone, lanes.i_activation.ready, unit.i_activation.ready)),
            lanes.i_accumulators.payload.eq(sums.payload),
            lanes.i_accumulators.valid.eq(sums.valid & active),
            sums.ready.eq(Mux(active, lanes.i_accumulators.ready, result.ready)),
            result.valid.eq(Mux(active, lanes.o_result.valid, sums.valid)),
            result.payload.eq(Mux(active, lanes.o_result.payload, sums.payload)),
            lanes.o_result.ready.eq(active & result.ready),
        ]
        with m.If(self.i_run & lanes.o_issue):
            m.d.sync += groups.eq(groups + 1)
        return {"vectors": Mux(alone, 0, unit.counters.busy), "groups": groups}
