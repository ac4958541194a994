"""Actor of a PCU's lanes: phases over packets of streams, with the vectors they take and give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hw.arch.lanes.joined_phases import JoinedPhases
from hw.arch.lanes.lane_phase import LanePhase
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.lane_room import ACTIVATION_ROOM, AUXILIARY_ROOM
from hw.arch.lanes.phase_word import AuxiliaryUse, PhaseSource, ResultForm
from sw.prove.machine import Channel, Core, Machine, Port, Reason
from sw.prove.pattern import LanePattern, Pattern
from sw.prove.phase_runs import PhaseRuns, units_beside

__all__ = ["LaneUnit"]


class _Rates(NamedTuple):
    """What a phase takes and gives: units of a vector of each stream.

    Parameters
    ----------
    source : PhaseSource
        `STATISTICS` also where the phase takes kept words.
    each : int
        Of the source.
    beside : int
        Of the auxiliary stream; 0 if none is taken beside the units, or one for the packet.
    held : bool
        Whether one is taken for the packet, with its last unit.
    latched : bool
        Whether one is taken for the packet, with the last unit of its first strip.
    result : int
        Of the results; 0 if the phase sends none.
    """

    source: PhaseSource
    each: int
    beside: int
    held: bool
    latched: bool
    result: int

    @property
    def units(self) -> tuple[int, int, int]:
        """Units of a vector of each stream, or 0."""
        return self.each, self.beside, self.result

    @classmethod
    def of(cls, phase: LanePhase, words: int) -> _Rates:
        """Rates of a phase where a vector has so many words."""
        return cls(
            PhaseSource.STATISTICS if phase.kept_words else phase.source,
            phase.elements_per_word,
            units_beside(phase, words),
            phase.auxiliary is AuxiliaryUse.HELD,
            phase.auxiliary is AuxiliaryUse.LATCHED,
            0 if phase.result is ResultForm.NONE else phase.result.per_word,
        )


class LaneUnit(Core):
    """Lanes of a PCU, which run their phases over one packet after the other.

    They issue units of as many elements as a vector has words, since no vector ends within one. A
    unit needs the vectors that its elements lie in, and room for the vector of results that it
    begins. A vector of the source stays in the FIFO of the activation stream, or in front of the
    lanes if it has sums, until its last unit. Joined phases issue the units of a strip one after
    another.

    Parameters
    ----------
    machine : Machine
    name : str
    words : int
        Words of a vector, W/32.
    strip : int
        Units of a strip.
    program : LaneProgram
    runs : PhaseRuns
    """

    channel: Channel
    #: Ports of the activation stream or the sums, and of the auxiliary stream.
    source: Port | None = None
    auxiliary: Port | None = None

    def __init__(
        self,
        machine: Machine,
        name: str,
        words: int,
        strip: int,
        program: LaneProgram,
        runs: PhaseRuns,
    ) -> None:
        super().__init__(machine, name)
        self._program = program
        numbers: list[int] = runs.phases.tolist()
        self._phases: list[JoinedPhases] = [program.joined[number] for number in numbers]
        rates = [[_Rates.of(each, words) for each in joined.phases] for joined in program.joined]
        self._rates: list[list[_Rates]] = [rates[number] for number in numbers]
        self._strip = strip
        self._counts: Sequence[int] = runs.counts.data
        self._besides: Sequence[int] = runs.besides.data
        self._whole = runs.whole
        units = np.array([joined[0].each for joined in rates], np.int64)[runs.phases] * runs.counts
        unlike = [strip if len(joined) > 1 else 0 for joined in rates]
        self._pattern = LanePattern(
            len(runs.counts),
            (runs.phases, runs.counts),
            np.concatenate([np.zeros(1, np.int64), np.cumsum(units)]),
            np.array(unlike, np.int64)[runs.phases],
        )
        self._begins: Sequence[int] = self._pattern.begins.data
        alike = [math.lcm(*(each or 1 for each in joined[0].units)) for joined in rates]
        #: Of each run, the units after which vectors of all its streams end.
        self._alike: list[int] = [alike[number] for number in numbers]
        self._run = 0
        activations = any(each.source is PhaseSource.ACTIVATION for each in program.joined)
        self._room = ACTIVATION_ROOM if activations else 1
        self._units = 0  # issued of the packet
        self._step = 0  # joined phase that issues them
        self._begin = 0  # units before the strip
        self._head = 0  # vectors of the source that wait
        self._beside = 0  # vectors in the FIFO of the auxiliary stream

    def advance(self) -> None:
        heads, before = self._head, self._beside
        while self._run < len(self._phases):
            units = self._possible(self._head)
            if not units:
                break
            self._issue(units)
        if not self._head or self._head < heads:
            # It has room again; without a vector it may have come for what was missing beside it.
            self.machine.wake(self.source)
        if self._beside < before:
            self.machine.wake(self.auxiliary)

    def want(self, port: Port) -> int:
        if port is self.auxiliary:
            return AUXILIARY_ROOM - self._beside
        if self._head or self._run == len(self._rates):
            return self._room - self._head
        rates = self._rates[self._run][self._step]
        if rates.source in (PhaseSource.AUXILIARY, PhaseSource.STATISTICS):
            return self._room
        # Beside those that leave again at once.
        return self._possible(self._counts[self._run]) // rates.each + self._room

    def accept(self, port: Port, count: int) -> None:
        if port is self.auxiliary:
            self._beside += count
        else:
            self._head += count
        self.advance()

    def _possible(self, sources: int) -> int:
        """Units that may be issued now of the packet under way, with so many vectors of it."""
        joined = self._rates[self._run]
        source, each, beside, held, latched, result = joined[self._step]
        issued, count = self._units, self._counts[self._run]
        if source is PhaseSource.AUXILIARY:
            sources = self._beside
        elif source is PhaseSource.STATISTICS:
            sources = count
        sources += issued // each
        units = (sources if sources < count else count) * each
        if len(joined) > 1:
            units = min(units, self._begin + self._strip)
        if beside:
            units = min(units, (issued // beside + self._beside) * beside)
        elif (held or (latched and not self._begin)) and not self._beside:
            units = 0
        units -= issued
        if not result:
            return units
        return max(0, min(units, self.channel.room() * result - issued % result))

    def _issue(self, units: int) -> None:
        """Issue units, take the vectors that end with them, and send those that are full."""
        joined = self._rates[self._run]
        rates = joined[self._step]
        before, after = self._units, self._units + units
        ends = after == self._counts[self._run] * rates.each
        taken = after // rates.each - before // rates.each
        if rates.source is PhaseSource.AUXILIARY:
            self._beside -= taken
        elif rates.source is not PhaseSource.STATISTICS:
            self._head -= taken
        if rates.beside or rates.held:
            served = rates.beside or 1 << 62
            beside = after // served
            if ends:
                beside = self._besides[self._run] - self._phases[self._run].latches
            self._beside -= beside - before // served
        full = 0
        if rates.result:
            vector = rates.result
            full = (after + vector - 1 if ends else after) // vector - before // vector
        self._units = after
        if len(joined) > 1 and (ends or after == self._begin + self._strip):
            if rates.latched and not self._begin:
                self._beside -= 1
            if self._step + 1 < len(joined):
                self._step, self._units, ends = self._step + 1, self._begin, False
            else:
                self._step, self._begin = 0, after
        if ends:
            self._units = self._begin = 0
            self._run += 1
        if full:
            self.channel.push(full)

    def reasons(self) -> list[Reason]:
        if self._run == len(self._phases):
            return []
        rates = self._rates[self._run][self._step]
        missing = []
        if rates.source is PhaseSource.AUXILIARY:
            missing = [self.auxiliary] if not self._beside else []
        elif rates.source is not PhaseSource.STATISTICS and not self._head:
            missing = [self.source]
        first = rates.latched and not self._begin
        if (rates.beside or rates.held or first) and not self._beside:
            missing.append(self.auxiliary)
        if not missing:
            return [self.channel.no_room()]
        found: list[Reason] = []
        for port in missing:
            assert port is not None
            name = port.tap.channel.name if port.tap else "a stream, but none comes"
            found.append((f"a vector from {name}", port.source()))
        return found

    def state(self) -> tuple[int, ...]:
        base, units = self._begin, self._units
        if self._run < len(self._rates) and len(self._rates[self._run]) == 1:
            base = units - units % self._alike[self._run]
        place = self._begins[self._run] + base
        return place, units - base, self._step, self._head, self._beside

    def pattern(self) -> Pattern:
        return self._pattern

    def skip(self, count: int) -> None:
        place, units, *_ = self.state()
        self._run = self._pattern.run(place + count)
        base = place + count - self._begins[self._run]
        self._units = base + units
        if self._run < len(self._rates) and len(self._rates[self._run]) > 1:
            self._begin = base

    def _first_of_stream(self) -> int:
        """Number of the first phase that takes a stream, before which nothing is to come."""
        return next(
            number
            for number, each in enumerate(self._program.joined)
            if each.source is not PhaseSource.STATISTICS or each.auxiliary is not AuxiliaryUse.NONE
        )

    def leftovers(self) -> list[str]:
        found = []
        number = self._whole % len(self._program.joined)
        if number != self._first_of_stream():
            found.append(f"{self.name} ends before phase {number}, not after the last one")
        if left := self._head + self._beside:
            found.append(f"{self.name} holds {left} vectors that no phase takes")
        return found

    def restart_fault(self) -> str | None:
        if self._first_of_stream():
            return f"{self.name} runs phase 0 for the next iteration already, as it takes no stream"
        return None
