"""Schedule of phases on the lanes of PCUs: sources, statistics, constants and the order.

All packets of a PCU's program are those of one source. Phases are placed in order as far as they
fit the program that is open; the source is the one with which most of them fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hw.arch.lanes.phase_word import ElementForm, ResultForm
from sw.ir.affine import Axis
from sw.ir.format_rules import Format, bf16, fp32, int8, int32
from sw.lane_codes.lane_code import LaneCode
from sw.lane_codes.lane_words import Place, Send, WordTable
from sw.lane_codes.open_program import OpenProgram
from sw.lane_codes.unit_packing import Draft

__all__ = ["Schedule"]


class Schedule:
    """Programs of the lanes that run drafts.

    Parameters
    ----------
    table : WordTable
    drafts : sequence of Draft
        In an order in which they can run.
    inputs : mapping of str to Format
        Formats of the inputs at the ports.
    phases : int
        Most phases of a program.
    returns : bool
        Whether what a program sends may come back to it.
    first : str or None
        Input that is the source of the first program, if any draft fits it.

    Members
    -------
    left : list of Draft
        Drafts that no program has yet.
    """

    def __init__(
        self,
        table: WordTable,
        drafts: Sequence[Draft],
        inputs: Mapping[str, Format],
        phases: int,
        *,
        returns: bool = True,
        first: str | None = None,
    ) -> None:
        self._table, self._most, self._returns = table, phases, returns
        self._first = first
        self._formats = dict(inputs)
        self.left = tuple(drafts)
        self._ports = {word: port for word, port in table.ports.items() if port.value in inputs}
        #: What the last program has sent; whether there is one.
        self._made: set[str] = set()
        self._begun = False
        #: Axis of the vectors of each value that can be a source.
        self._sources: dict[str, Axis | None] = {
            port.value: table.lengths[word]
            for word, port in self._ports.items()
            if table.places[word] is Place.FULL
        }

    def codes(self) -> tuple[LaneCode, ...]:
        """Programs in an order in which they can run; drafts are left where none fits.

        Kept columns come to the first program alone.
        """
        made: list[LaneCode] = []
        while self.left:
            fetched = {
                self._ports[leaf].value
                for draft in self.left
                for leaf in draft.leaves
                if leaf in self._ports
            }
            if self._first is not None and not made:
                fetched = {self._first}
            best = self._best(fetched) or self._best(set(self._sources))
            if best is not None:
                made.append(self._closed(best))
                if any(self._table.kept.intersection(each.leaves) for each in self.left):
                    break
            elif not self._widen():
                break
        return tuple(made)

    def _best(self, sources: set[str]) -> OpenProgram | None:
        """The program with the best of some sources, or None if no draft fits any."""
        found = (self._trial(each) for each in self._sources if each in sources)
        trials = [each for each in found if each.has_packets]
        return max(trials, key=lambda trial: trial.worth, default=None)

    def _trial(self, source: str) -> OpenProgram:
        """A program with a source, filled."""
        form, length = form_of(self._formats[source]), self._sources[source]
        later = source in self._made
        trial = OpenProgram(
            self._table,
            self._ports,
            source,
            form,
            length,
            self._most,
            later=later,
            numbers=not self._begun,
            returns=self._returns,
        )
        trial.fill(self.left)
        return trial

    def _closed(self, program: OpenProgram) -> LaneCode:
        """The program, after which what it has sent is known."""
        program.close()
        self._begun = True
        self._made = {send.value for send, _, _ in program.sent}
        self.left, self._ports = program.left, program.ports
        for send, place, length in program.sent:
            self._formats[send.value] = send.format
            taken = any(port.value == send.value for port in self._ports.values())
            if place is Place.FULL and taken:
                self._sources[send.value] = length
        phases = program.coded()
        values = {name for each in phases for name in (each.source, each.auxiliary, each.result)}
        formats = {name: each for name, each in self._formats.items() if name in values}
        return LaneCode(phases, tuple(program.constants), formats)

    def _widen(self) -> bool:
        """Begin with a copy in 32 bits of a source that is too short for the phases that wait."""
        ready = [draft for draft in self.left if self._ports.keys() >= set(draft.leaves)]
        own = [self._ports[each].value for draft in ready for each in draft.leaves]
        for value in dict.fromkeys((*own, *self._sources)):
            words = [word for word, port in self._ports.items() if port.value == value]
            wide = f"{words[0]}#wide"
            short = value in self._sources and self._formats[value] in (bf16, int8)
            if short and wide not in self._table.operations:
                for word in words:
                    self._copy(word)
                return True
        return False

    def _copy(self, word: str) -> None:
        """Replace a short word by a copy in 32 bits in all drafts."""
        format_ = int32 if word in self._table.integers else fp32
        name = self._table.copied(word, f"{word}#wide")
        used = any(word in draft.leaves for draft in self.left)
        alone = self._table.ports[word].form is not ElementForm.INT8_TO_FP32
        if used or alone:
            send = Send(name, name, ResultForm.WORD, format_)
            length = self._table.lengths[word]
            operation = self._table.operations[name][:1]
            copy = Draft(operation, (name,), (word,), Place.FULL, length, send=send)
            self.left = (copy, *(draft.taking(word, name) for draft in self.left))


def form_of(format_: Format) -> ElementForm:
    """Form of the elements of a stream."""
    forms = {bf16: ElementForm.BF16, int8: ElementForm.INT8}
    return forms.get(format_, ElementForm.WORD)
