"""Lanes of a PCU: element operations, functions and reductions over streams of vectors."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, ResetInserter, Signal, Value, unsigned
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arch.checks import refusal
from hw.arch.lanes.lane_function import LaneFunction
from hw.arch.lanes.lane_room import (
    ACTIVATION_ROOM,
    AUXILIARY_ROOM,
    ROUND_TRIP,
    kept_groups,
    result_room,
)
from hw.arch.lanes.phase_word import (
    PHASES,
    AuxiliaryUse,
    Fetched,
    PhaseSource,
    Reduction,
    ResultForm,
    lane_layout,
)
from hw.arch.limits import FUNCTION_BITS, LANES, LINK_BITS
from hw.emit.shared import shared
from hw.float.wires import named
from hw.lib.activity import beside_layout
from hw.lib.component import Component
from hw.lib.delay import delayed
from hw.lib.delay_memory import DelayMemory
from hw.lib.fifo import Queue
from hw.lib.mux_tree import chosen, numbered
from hw.lib.stream import vector_layout, vector_signature
from hw.pcu.element_group import element_group
from hw.pcu.kept_words import WORDS, KeptWords, keeps_words
from hw.pcu.lane import Lane, constant_layout, operand_constants
from hw.pcu.lane_issue import LaneIssue
from hw.pcu.overlapping_phases import OverlappingPhases
from hw.pcu.result_packer import ResultPacker
from hw.pcu.statistics import Statistics

__all__ = ["Lanes"]

#: Cycles from the issue of a group to its results.
_CYCLES = OverlappingPhases.latency
# A vector is then packed, passes the FIFO, and frees its room.
assert ROUND_TRIP == _CYCLES + 5


class Lanes(Component):
    """Vector side of a PCU: t lanes that run a program of phases over packets.

    A program is a `hw.arch.lanes.lane_program.LaneProgram`; the results are those of
    :class:`hw.numeric.lane_model.LaneModel`, bit for bit. t elements of the source are issued per
    cycle, fewer where a running sum or extreme needs more cycles between vectors.

    Parameters
    ----------
    width_bits : int
        Link width W (`limits.LINK_BITS`).
    lanes : int
        Lanes t, at most W/32 (`limits.LANES`).
    function_bits : int
        Significand bits of the functions (`limits.FUNCTION_BITS`).
    functions : tuple of LaneFunction
        Function units of each lane beside its special function unit.

    Members
    -------
    i_activation, i_auxiliary, i_accumulators : ``In(vector_signature(width_bits))``
        Packets of the sources. The marks of the auxiliary stream count only if it is a source.
    o_result : ``Out(vector_signature(width_bits))``
        A packet for each packet of a phase that sends results.
    config : ``In(lane_layout(len(functions)))``
        The program; changes only while ``i_clear`` is high.
    o_activity : ``Out(beside_layout())``
        What the lanes do; ``works`` if they are on and no phase takes sums. They are busy if a
        group is issued, or must wait for results of those before it.
    o_issue : ``Out(1)``
        A group is issued in this cycle.
    i_scores : ``In(1)``
        Static: the phases are those of a scores unit (docs/fused_softmax.md). Maxima run over
        packets, from -2^20 on with one that has `final`, and statistic 1 keeps the one before;
        int8 results have no sign, and the next phase's results continue their packet.
    i_clear : ``In(1)``
        Discards all vectors and statistics, and begins with the first phase.

    Raises
    ------
    BadInputError
        A parameter lies outside its domain, or there are more lanes than words in a vector.
    """

    i_activation: stream.Interface
    i_auxiliary: stream.Interface
    i_accumulators: stream.Interface
    o_result: stream.Interface
    config: data.View[data.StructLayout]
    o_activity: data.View[data.StructLayout]
    o_issue: Signal
    i_scores: Signal
    i_clear: Signal

    def __init__(
        self,
        *,
        width_bits: int,
        lanes: int,
        function_bits: int,
        functions: tuple[LaneFunction, ...] = (),
    ) -> None:
        LINK_BITS.require("Link width in bits", width_bits)
        LANES.require("Lanes", lanes)
        FUNCTION_BITS.require("Function bits", function_bits)
        if lanes > width_bits // 32:
            raise refusal("Lanes", f"be at most the {width_bits // 32} words of a vector", lanes)
        self._width_bits = width_bits
        self._lanes = lanes
        self._function_bits = function_bits
        self._functions = functions
        link = vector_signature(width_bits)
        super().__init__(
            {
                "i_activation": In(link),
                "i_auxiliary": In(link),
                "i_accumulators": In(link),
                "o_result": Out(link),
                "config": In(lane_layout(len(functions))),
                "o_activity": Out(beside_layout()),
                "o_issue": Out(1),
                "i_scores": In(1),
                "i_clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width, lanes = self._width_bits, self._lanes
        units = self._functions
        issue = LaneIssue(width_bits=width, lanes=lanes, latency=_CYCLES, functions=units)
        phases = OverlappingPhases(units)
        statistics = Statistics(lanes=lanes, groups=width // 16 // lanes)
        kept = KeptWords(lanes=lanes, groups=kept_groups(width_bits=width, lanes=lanes))
        depth = result_room(width_bits=width, lanes=lanes)
        packer = ResultPacker(width_bits=width, lanes=lanes, depth=depth)
        activation = Queue(vector_layout(width), depth=ACTIVATION_ROOM - 1)
        auxiliary = Queue(vector_layout(width), depth=AUXILIARY_ROOM - 1)
        parts = {
            "issue": issue,
            "statistics": statistics,
            "packer": packer,
            "activation": activation,
            "auxiliary": auxiliary,
        }
        for name, part in parts.items():
            m.submodules[name] = ResetInserter(self.i_clear)(part)
        m.submodules.phases = phases
        m.submodules.kept = kept
        wiring.connect(m, wiring.flipped(self.i_activation), activation.i_stream)
        wiring.connect(m, wiring.flipped(self.i_auxiliary), auxiliary.i_stream)
        wiring.connect(m, packer.o_stream, wiring.flipped(self.o_result))
        phase: Any = issue.o_phase
        step: Any = issue.o_step
        vector = self._source(m, issue, activation, auxiliary)
        m.d.comb += [
            issue.i_program.eq(self.config),
            issue.i_room.eq(packer.o_room),
            packer.i_reserve.eq(issue.o_reserve),
            statistics.i_read_group.eq(step.group),
            kept.i_read.eq(step.kept),
            phases.i_phases.eq(issue.o_phases),
            phases.i_number.eq(issue.o_number),
            phases.i_clear.eq(self.i_clear),
            self.o_issue.eq(issue.o_valid),
            self.o_activity.works.eq((self.config.count != 0) & ~self._takes_sums()),
            self.o_activity.busy.eq(issue.o_valid | issue.o_pause),
            self.o_activity.wait_room.eq(issue.o_wait_room),
            self.o_activity.idle.eq(issue.o_idle),
        ]
        x = element_group(m, vector, phase.form, step.group, count=lanes, name="source")
        y, z = self._fetched(m, issue, statistics, kept, auxiliary)
        constants: Any = Signal(constant_layout())
        for name, word in operand_constants(phases.o_lanes, self.config.constants).items():
            m.d.comb += constants[name].eq(word)
        results: list[Value] = []
        xs: list[Value] = []
        for number in range(lanes):
            lane = Lane(self._function_bits, units)
            m.submodules[f"lane_{number}"] = shared(lane)
            m.d.comb += [lane.i_phase.eq(phases.o_lanes), lane.i_constants.eq(constants)]
            xs.append(delayed(m, x[number], 1, name=f"x_{number}"))
            m.d.comb += [
                lane.i_x.eq(xs[number]),
                lane.i_y.eq(y[number]),
                lane.i_z.eq(z[number]),
            ]
            results.append(lane.o_result)
        keeps_x = Value.cast(phase.reduction) == Reduction.KEEP_BOTH.value
        keeps_x = delayed(m, issue.o_valid & keeps_x, 1, name="keeps_x", reset=True)
        m.d.comb += [
            kept.i_keep_x.eq(keeps_x),
            kept.i_x_group.eq(delayed(m, step.kept, 1, name="x_kept")),
            kept.i_x.eq(Cat(*xs)),
        ]
        self._sink(m, issue, phases, statistics, kept, packer, results)
        return m

    def _takes_sums(self) -> Value:
        """Whether a phase takes rows of sums; one that the program lacks is 0, of statistics."""
        code = PhaseSource.ACCUMULATORS.value
        phases: Any = self.config.phases
        return Cat(Value.cast(phases[n].source) == code for n in range(PHASES)).any()

    def _source(self, m: Module, issue: LaneIssue, activation: Queue, auxiliary: Queue) -> Signal:
        """Vector of the phase's source."""
        phase: Any = issue.o_phase
        streams = {
            PhaseSource.ACTIVATION: activation.o_stream,
            PhaseSource.AUXILIARY: auxiliary.o_stream,
            PhaseSource.ACCUMULATORS: self.i_accumulators,
        }
        code = Value.cast(phase.source)
        data_of = {source.value: port.payload.data for source, port in streams.items()}
        vector = named(m, "source", chosen(code, data_of)[: self._width_bits])
        with m.Switch(code):
            for source, port in streams.items():
                payload: Any = port.payload
                with m.Case(source.value):
                    m.d.comb += [
                        issue.i_valid.eq(port.valid),
                        issue.i_last.eq(payload.last),
                        issue.i_final.eq(payload.final),
                        port.ready.eq(issue.o_take),
                    ]
        m.d.comb += issue.i_auxiliary.eq(auxiliary.o_stream.valid)
        with m.If(issue.o_take_auxiliary):
            m.d.comb += auxiliary.o_stream.ready.eq(1)
        return vector

    def _fetched(
        self,
        m: Module,
        issue: LaneIssue,
        statistics: Statistics,
        kept: KeptWords,
        auxiliary: Queue,
    ) -> tuple[list[Value], list[Value]]:
        """Words y and z of the group's elements, a cycle after its issue."""
        phase: Any = issue.o_phase
        step: Any = issue.o_step
        payload: Any = auxiliary.o_stream.payload
        use = Value.cast(phase.auxiliary)
        # A pair needs two elements, also for a single lane.
        count = max(2, self._lanes)
        offset = issue.o_element[: count.bit_length() - 1]
        elements = element_group(
            m,
            payload.data,
            phase.auxiliary_form,
            issue.o_element[count.bit_length() - 1 :],
            count=count,
            name="auxiliary",
        )
        single = Signal(32, name="spread")
        second = Signal(32, name="spread_second")
        m.d.comb += [
            single.eq(numbered(offset, elements)),
            second.eq(numbered(offset | 1, elements)),
        ]
        spread = (use == AuxiliaryUse.SPREAD.value) | (use == AuxiliaryUse.SPREAD_PAIR.value)
        owns: list[Value] = [single] if self._lanes == 1 else [*elements]
        latched = self._latched(m, issue, owns)
        found: tuple[list[Value], list[Value]] = ([], [])
        for number in range(self._lanes):
            own = Mux(spread, single, owns[number])
            own = Mux(issue.o_latched, latched[number], own)
            words: dict[Fetched, Value] = {
                Fetched.NONE: Const(0, 32),
                Fetched.AUXILIARY: own,
                Fetched.AUXILIARY_SECOND: second,
                Fetched.ROW: issue.o_row,
                Fetched.POSITION: step.group * self._lanes + number,
            }
            # Words that a memory gives a cycle after the issue.
            stored = {
                Fetched.STATISTIC_0: [statistics.o_words[0][number]] * WORDS,
                Fetched.STATISTIC_1: [statistics.o_words[1][number]] * WORDS,
                Fetched.KEPT: [kept.o_words[0][number], kept.o_words[1][number]],
            }
            for place, (name, found_words) in enumerate(zip(("y", "z"), found, strict=True)):
                code = Value.cast(phase[name])
                word = chosen(code, {origin.value: word for origin, word in words.items()})
                word = delayed(m, word[:32], 1, name=f"{name}_{number}")
                for origin, known in stored.items():
                    is_known = f"{name}_is_{origin.name.lower()}_{number}"
                    is_known = delayed(m, code == origin.value, 1, name=is_known)
                    word = Mux(is_known, known[place], word)
                found_words.append(named(m, f"{name}_chosen_{number}", word))
        return found

    def _latched(self, m: Module, issue: LaneIssue, elements: list[Value]) -> list[Value]:
        """Elements of the latched vector for the group that is issued.

        A packet's first strip writes those that it reads, which are all that later ones read.
        """
        phase: Any = issue.o_phase
        step: Any = issue.o_step
        latches = Value.cast(phase.auxiliary) == AuxiliaryUse.LATCHED.value
        groups = self._width_bits // 8 // self._lanes
        cells: Any = memory.Memory(shape=unsigned(32 * self._lanes), depth=groups, init=[])
        m.submodules.latched = cells
        writer, reader = cells.write_port(), cells.read_port(domain="comb")
        m.d.comb += [
            writer.en.eq(issue.o_valid & latches & ~issue.o_latched),
            writer.addr.eq(step.group),
            writer.data.eq(Cat(*elements)),
            reader.addr.eq(step.group),
        ]
        return [reader.data[low : low + 32] for low in range(0, 32 * self._lanes, 32)]

    def _sink(
        self,
        m: Module,
        issue: LaneIssue,
        phases: OverlappingPhases,
        statistics: Statistics,
        kept: KeptWords,
        packer: ResultPacker,
        results: list[Value],
    ) -> None:
        """Results of a group, with its step: into statistics, kept words and vectors."""
        phase: Any = phases.o_results
        valid = Signal(_CYCLES, name="under_way")
        m.d.sync += valid.eq(Mux(self.i_clear, 0, Cat(issue.o_valid, valid)))
        steps = DelayMemory(width=len(issue.o_step.as_value()), most=_CYCLES - 1)
        m.submodules.steps = steps
        coming: Any = data.View(issue.o_step.shape(), steps.o_data)
        step: Any = delayed(m, coming, 1, name="step")
        keeps = keeps_words(phase)
        reduces = Value.cast(phase.reduction).any() & ~keeps
        both = Value.cast(phase.reduction) == Reduction.KEEP_BOTH.value
        sends = Value.cast(phase.result) != ResultForm.NONE.value
        ends = ~(self.i_scores & (Value.cast(phase.result) == ResultForm.INT8.value))
        m.d.comb += [
            steps.i_data.eq(issue.o_step),
            steps.i_cycles.eq(_CYCLES - 1),
            statistics.i_scores.eq(self.i_scores),
            statistics.i_restart.eq(step.restart),
            packer.i_unsigned.eq(self.i_scores),
            statistics.i_change.eq(valid[-1] & reduces),
            statistics.i_next_group.eq(coming.group),
            statistics.i_next_statistic.eq(phases.o_next_statistic),
            statistics.i_group.eq(step.group),
            statistics.i_reduction.eq(phase.reduction),
            statistics.i_statistic.eq(phase.statistic),
            statistics.i_first.eq(step.first),
            statistics.i_results.eq(Cat(*results)),
            kept.i_keep[0].eq(valid[-1] & keeps & ~both & ~phase.statistic),
            kept.i_keep[1].eq(valid[-1] & keeps & (both | phase.statistic)),
            kept.i_group.eq(step.kept),
            kept.i_results.eq(Cat(*results)),
            packer.i_valid.eq(valid[-1] & sends),
            packer.i_results.eq(Cat(*results)),
            packer.i_form.eq(phase.result),
            packer.i_position.eq(step.position),
            packer.i_end.eq(step.end),
            packer.i_last.eq(step.last & ends),
            packer.i_final.eq(step.final & ends),
        ]
