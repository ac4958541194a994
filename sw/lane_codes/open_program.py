"""Program of a PCU's lanes while phases are placed in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from hw.arch.lanes.phase_word import (
    CONSTANTS,
    STATISTICS,
    AuxiliaryUse,
    ElementForm,
    Reduction,
    ResultForm,
)
from sw.ir.affine import Axis
from sw.ir.format_rules import fp32, int32
from sw.lane_codes.lane_code import CodedPhase
from sw.lane_codes.lane_words import Place, Port, Send, WordTable, keeping
from sw.lane_codes.phase_emission import PlacedPhase
from sw.lane_codes.unit_packing import Draft

__all__ = ["OpenProgram"]

_USES = {
    Place.FULL: AuxiliaryUse.VECTOR,
    Place.LANE: AuxiliaryUse.HELD,
    Place.HELD: AuxiliaryUse.HELD,
    Place.SPREAD: AuxiliaryUse.SPREAD,
}


class OpenProgram:
    """A program with one source, in which drafts are placed until none fits.

    Parameters
    ----------
    table : WordTable
    ports : mapping of str to Port
        Words that are inputs, or that programs before have sent.
    source : str
        Value of the source.
    form : ElementForm
        Form of the source where its elements are not used.
    length : Axis or None
        Axis of the source's vectors.
    most : int
        Most phases.
    later : bool
        Whether the program before sends the source.
    numbers : bool
        Whether its packets have all vectors, with their numbers.
    returns : bool
        Whether what the program sends may come back to it.

    Members
    -------
    placed : int
        Drafts that are placed.
    left : tuple of Draft
        Drafts that are not.
    sent : list of (Send, Place, Axis or None)
    constants : list of int
    """

    def __init__(
        self,
        table: WordTable,
        ports: Mapping[str, Port],
        source: str,
        form: ElementForm,
        length: Axis | None,
        most: int,
        *,
        later: bool,
        numbers: bool,
        returns: bool,
    ) -> None:
        self._later, self._numbers, self._returns = later, numbers, returns
        #: Words that the program sends and does not get back.
        self._gone: set[str] = set()
        self._table, self._source, self._form, self._most = table, source, form, most
        self._length = length
        self.ports = dict(ports)
        self.placed = 0
        self.left: tuple[Draft, ...] = ()
        self.sent: list[tuple[Send, Place, Axis | None]] = []
        self.constants: list[int] = []
        self._phases: list[PlacedPhase] = []
        #: Word in each statistic, and the phase that made it.
        self._held: list[str | None] = [None] * STATISTICS
        self._makers: dict[str, PlacedPhase] = {}

    def fill(self, drafts: Sequence[Draft]) -> None:
        """Place drafts, the first that fits each time; one that needs a load only if none else."""
        self.left = tuple(drafts)
        while self._place_one(loads=False) or self._place_one(loads=True):
            self.placed += 1

    def _place_one(self, *, loads: bool) -> bool:
        """Place the first draft that fits."""
        known = {*self.ports} - self._gone | {each for each in self._held if each}
        if self._numbers:
            known |= {word for word, place in self._table.places.items() if place is Place.NUMBER}
        for number, draft in enumerate(self.left):
            if not known.issuperset(draft.leaves):
                continue
            rest = (*self.left[:number], *self.left[number + 1 :])
            if self._place(draft, rest, loads):
                self.left = rest
                return True
        return False

    @property
    def has_packets(self) -> bool:
        """Whether a phase takes packets; phases of STATISTICS alone make no program."""
        return any(each.source for each in self._phases)

    @property
    def worth(self) -> tuple[int, int, bool, int]:
        """Drafts that are placed, streams beside the source, and which source is the better one.

        A chain of PCUs passes on results, and vectors of fewer elements come from longer ones.
        """
        beside = sum(each.beside is not None for each in self._phases)
        return self.placed, -beside, self._later, self._form.per_word

    def close(self) -> None:
        """Send what the drafts that are left read from statistics."""
        for word in self._held:
            if word is None or not self._waits(word, self.left) or word in self.ports:
                continue
            send = Send(self._name(word), word, ResultForm.WORD, fp32)
            if word in self._table.integers:
                send = dataclasses.replace(send, format=int32)
            maker = self._makers[word]
            if maker.source is None and maker.send is None:
                maker.send = send
            else:
                self._send(word, send)
            self._note(send, Place.LANE, None)

    def coded(self) -> tuple[CodedPhase, ...]:
        """The phases of the program."""
        return tuple(each.coded(self.constants) for each in self._phases)

    def _name(self, word: str) -> str:
        """Name of a word that is sent for later programs."""
        name = self._table.labels.get(word, word)
        taken = {each.value for each in (*self._table.outputs, *self._table.casts.values())}
        return f"{name}#word" if name in taken else name

    def _note(self, send: Send, place: Place, length: Axis | None) -> None:
        """Note that later phases can take what is sent."""
        self.sent.append((send, place, length))
        before = set(self.ports)
        if send.form is ResultForm.WORD:
            self.ports.setdefault(send.word, Port(send.value, ElementForm.WORD))
        for word, port in self._table.ports.items():
            if port.value == send.value:
                self.ports[word] = port
        if not self._returns:
            self._gone |= set(self.ports) - before

    @staticmethod
    def _waits(word: str, drafts: Sequence[Draft]) -> bool:
        return any(word in draft.leaves for draft in drafts)

    def _place(self, draft: Draft, rest: Sequence[Draft], loads: bool) -> bool:
        """Place a draft if it fits."""
        if draft.place is Place.FULL and draft.length not in (None, self._length):
            return False
        constants = draft.constants.difference(self.constants)
        if len(self.constants) + len(constants) > CONSTANTS:
            return False
        before = self._state()
        if self._fits(draft, rest, loads):
            self.constants += sorted(constants)
            return True
        self._phases, self._held, self._makers = before
        return False

    def _state(self) -> tuple[list[PlacedPhase], list[str | None], dict[str, PlacedPhase]]:
        return list(self._phases), list(self._held), dict(self._makers)

    def _fits(self, draft: Draft, rest: Sequence[Draft], loads: bool) -> bool:
        """Place a draft, and loads of statistics before it; the state may change if it fails."""
        own = (each for each in draft.leaves if self._gives(each))
        x = next(own, None)
        numbers = [each for each in draft.leaves if self._table.places[each] is Place.NUMBER]
        inside = {x, *numbers, *self._held}
        beside = [each for each in draft.leaves if each not in inside]
        for word in list(beside):
            if len(beside) > 1 and self._table.places[word] is Place.LANE:
                if not loads or not self._load(word, draft, rest):
                    return False
                beside.remove(word)
        if len(beside) > 1 and not self._table.is_pair(beside):
            return False
        phase = self._phase(draft, x, *beside)
        if phase is None or not (loads or draft.place is Place.FULL or phase.source is None):
            return False
        if not self._enter(draft, phase, rest):
            return False
        waiting = [each for each in self._held if each and self._waits(each, rest)]
        sending = sum(not self._sendable(each) for each in waiting)
        if len(self._phases) + sending > self._most:
            return False
        if draft.send is not None:
            self._note(draft.send, draft.place, draft.length)
        return True

    def _gives(self, word: str) -> bool:
        """Whether the source has a word."""
        full = self._table.places[word] is Place.FULL
        return full and word in self.ports and self.ports[word].value == self._source

    def _sendable(self, word: str) -> bool:
        """Whether a word can be sent for later programs without a phase more."""
        maker = self._makers[word]
        return word in self.ports or (maker.source is None and maker.send is None)

    def _phase(
        self, draft: Draft, x: str | None, beside: str | None = None, second: str | None = None
    ) -> PlacedPhase | None:
        """Phase of a draft with its streams, or None if their forms do not go together."""
        phase = PlacedPhase(draft.chain, draft.words, self._source, send=draft.send)
        phase.statistics = {
            each: self._held.index(each)
            for each in draft.leaves
            if each in self._held and each not in (x, beside, second)
        }
        phase.number = next(
            (each for each in draft.leaves if self._table.places[each] is Place.NUMBER), None
        )
        beside_x = (beside, second, phase.number)
        if len(phase.statistics) + sum(each is not None for each in beside_x) > 2:
            # A phase fetches two words beside the source.
            return None
        use, kept = None, beside in self._table.kept
        if beside is not None:
            use = AuxiliaryUse.VECTOR if kept else _USES[self._table.places[beside]]
            if second is not None:
                use, phase.second = AuxiliaryUse.SPREAD_PAIR, (second, self.ports[second])
            phase.beside = beside, self.ports[beside], use
        held = phase.beside[1].form.per_word if use is AuxiliaryUse.HELD and phase.beside else 4
        # What a packet begins with needs no packet before it.
        ready = self.has_packets or kept or bool(phase.statistics)
        # A vector of int8 has more positions than there are statistics.
        if draft.place is Place.LANE and held >= 2 and ready and self._form.per_word <= 2:
            phase.source = None
            return phase
        if kept:
            return None
        phase.x, phase.form = x, self.ports[x].form if x else self._form
        changes = draft.place is Place.LANE or draft.reduction is not None
        if phase.form.per_word > (2 if phase.statistics or changes else held):
            return None
        return phase if phase.form.per_word <= held else None

    def _enter(
        self,
        draft: Draft,
        phase: PlacedPhase,
        rest: Sequence[Draft],
        spared: Collection[str] = (),
    ) -> bool:
        """Enter a phase and the statistic that it changes; False if both are in use or spared."""
        word, phase.reduction = draft.kept, Reduction.REPLACE
        if draft.reduction is not None:
            phase.reduction, word = draft.reduction
        after: Send | None = None
        if draft.place is Place.LANE and phase.source is not None:
            # Results of a packet come with every vector: those of statistics are sent after it.
            word, after, phase.send = draft.words[-1], draft.send, None
        self._phases.append(phase)
        if word is None:
            phase.reduction = Reduction.NONE
            return True
        read = set(phase.statistics.values()) if phase.source is not None else set()
        read |= {number for number, each in enumerate(self._held) if each in spared}
        free = [number for number in range(STATISTICS) if number not in read]
        order = {number: self._value(self._held[number], rest) for number in free}
        number = min(order, key=lambda each: (order[each], each), default=None)
        if number is None or order[number] > 1:
            return False
        phase.statistic, self._held[number], self._makers[word] = number, word, phase
        if after is not None:
            self._send(word, after)
        return True

    def _send(self, word: str, send: Send) -> None:
        """Send a statistic in a phase of its own."""
        phase = PlacedPhase((keeping(word),), (word,), None, send=send)
        phase.statistics = {word: self._held.index(word)}
        self._phases.append(phase)

    def _value(self, word: str | None, rest: Sequence[Draft]) -> int:
        """What the loss of a statistic costs: nothing, a stream beside, or a result."""
        if word is None or not self._waits(word, rest):
            return 0
        return 1 if word in self.ports else 2

    def _load(self, word: str, draft: Draft, rest: Sequence[Draft]) -> bool:
        """Place a phase that makes a sent word a statistic again, for a draft."""
        if self._form.per_word > self.ports[word].form.per_word:
            return False
        load = Draft((keeping(word),), (word,), (word,), Place.LANE, kept=word)
        phase = self._phase(load, None, word)
        return phase is not None and self._enter(load, phase, (draft, *rest), draft.leaves)
