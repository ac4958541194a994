"""Runs of a TMA unit in a native model: commands, completions, scratchpad, barriers, memory."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from amaranth.hdl import Shape
from amaranth.lib import data

from hw.arch.tma_sizes import TmaSizes
from hw.lib.axi_rules import AxiRule
from hw.tma.barriers.barrier_layouts import (
    BarrierOperation,
    barrier_result_layout,
    barrier_wait_layout,
)
from hw.tma.standalone.unit_commands import TmaOperation, completion_layout, unit_command_layout
from hw.tma.standalone.vector_scratchpad import scratchpad_write_layout
from tests.hw.tma.standalone.unit_stand import ANSWER, operation_of, user_port
from tests.native.native_memory import NativeMemory, Violation
from tests.native.port_glue import words_of
from tests.native.stream_model import StreamModel, Words

__all__ = ["NativeUnit", "UnitCommand", "UnitRun", "UserActions"]

#: Cycles without a handshake after which a run counts as a hang.
_PATIENCE = 20_000


@dataclasses.dataclass(frozen=True)
class UnitCommand:
    """A command: operation, address of its descriptor, coordinates, and the other fields."""

    operation: TmaOperation
    descriptor: int = 0
    coordinates: Sequence[int] = ()
    fields: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class UserActions:
    """What the user of a scratchpad does while commands run.

    Parameters
    ----------
    operations : sequence of mappings
        Operations at barriers, by field.
    writes : sequence of (int, array of uint8)
        Number and content of each vector written.
    reads : sequence of int
        Numbers of the vectors read.
    stall : float
        Probability per cycle that none of them begins, each by itself.
    """

    operations: Sequence[Mapping[str, Any]] = ()
    writes: Sequence[tuple[int, np.ndarray]] = ()
    reads: Sequence[int] = ()
    stall: float = 0.0


@dataclasses.dataclass(frozen=True)
class UnitRun:
    """What a run of commands has shown.

    Members
    -------
    completions : list of (int, int)
        Identifier and code of each completion, in order.
    first_command, last_completion : int
        Cycles of the first command accepted and of the last completion.
    answers : list of lists of dict
        Answers to the operations of each user, by field.
    read : list of arrays of uint8
        Vectors that each user has read.
    """

    completions: list[tuple[int, int]]
    first_command: int
    last_completion: int
    answers: list[list[dict[str, int]]]
    read: list[np.ndarray]


class _Structure:
    """Structures of a layout as words of payloads, in both directions."""

    def __init__(self, layout: data.StructLayout) -> None:
        self._words = words_of(layout.size)
        self._places = {}
        for name, field in layout:
            array = isinstance(field.shape, data.ArrayLayout)
            shape = field.shape.elem_shape if array else field.shape
            self._places[name] = (field.offset, Shape.cast(shape).width, array)

    def rows(self, structures: Sequence[Mapping[str, Any]]) -> Words:
        """Payloads; a member without a value is 0."""
        raw = b"".join(
            self._packed(each).to_bytes(4 * self._words, "little") for each in structures
        )
        return np.frombuffer(raw, "<u4").reshape(-1, self._words)

    def _packed(self, fields: Mapping[str, Any]) -> int:
        bits = 0
        for name, value in fields.items():
            offset, width, array = self._places[name]
            for index, each in enumerate(value if array else [value]):
                bits |= (int(each) & ((1 << width) - 1)) << offset + index * width
        return bits

    def fields(self, words: Words) -> dict[str, int]:
        """Members of a structure without arrays, unsigned."""
        bits = int.from_bytes(np.ascontiguousarray(words).tobytes(), "little")
        return {
            name: bits >> offset & ((1 << width) - 1)
            for name, (offset, width, _) in self._places.items()
        }


_ANSWER, _WAIT, _RESULT = map(_Structure, (ANSWER, barrier_wait_layout, barrier_result_layout))


def _bytes(words: Words) -> np.ndarray:
    return np.ascontiguousarray(words).view(np.uint8).reshape(-1)


def _completions(words: Words) -> list[tuple[int, int]]:
    """Identifier and code of each completion."""
    bits = completion_layout["code"].offset
    return [(each & ((1 << bits) - 1), each >> bits) for each in words[:, 0].tolist()]


class NativeUnit:
    """A `UnitStand` of some sizes in a native model, with its memory.

    Parameters
    ----------
    model : StreamModel
        In reset state, or after other runs of the unit.
    name : str
        Prefix of the unit's ports.
    sizes : TmaSizes
    memory : NativeMemory
    """

    def __init__(
        self, model: StreamModel, name: str, sizes: TmaSizes, memory: NativeMemory
    ) -> None:
        self._model = model
        self._name = name
        self._sizes = sizes
        self._beat = sizes.width_bits // 8
        self._commands = _Structure(unit_command_layout(sizes.address_bits, sizes.scratchpads))
        self._operations = _Structure(operation_of(sizes))
        self._writes = _Structure(scratchpad_write_layout(sizes.width_bits, sizes.vectors))
        self.memory = memory
        model.attach(f"{name}_axi", memory)

    def run(
        self,
        commands: Sequence[UnitCommand],
        *,
        command_stall: float = 0.0,
        completion_stall: float = 0.0,
        users: Sequence[UserActions] = (),
    ) -> UnitRun:
        """Give commands, one per cycle while the unit takes them, and wait for all completions.

        The identifier of a command is its number. Cycles count from reset; the memory has the
        cycles of its beats. Meanwhile the users of the first scratchpads do what is given.

        Raises
        ------
        Violation
            If the port breaks a rule of AXI4, an assertion fails, or the memory is accessed
            where it may not be.
        HangError
            If nothing moves any more.
        """
        sent, taken = f"{self._name}_i_commands", f"{self._name}_o_completions"
        inputs, expected = {sent: self.words(commands)}, {taken: len(commands)}
        stalls = {sent: command_stall, taken: completion_stall}
        for pad, user in enumerate(users):
            given = {
                self._port("i_operations", pad): self._operation_words(user.operations),
                self._port("i_writes", pad): self._write_words(user.writes),
                self._port("i_reads", pad): np.array(user.reads, np.uint32).reshape(-1, 1),
            }
            inputs |= given
            stalls |= dict.fromkeys(given, user.stall)
            expected[self._port("o_answers", pad)] = len(user.operations)
            expected[self._port("o_data", pad)] = len(user.reads)
        crossed = self._model.run(inputs, expected, stalls=stalls, quiet_cycles=_PATIENCE)
        self.check()
        completions = crossed[taken]
        return UnitRun(
            _completions(completions.words),
            crossed[sent].first_cycle,
            completions.last_cycle,
            [
                [_ANSWER.fields(row) for row in crossed[self._port("o_answers", pad)].words]
                for pad in range(len(users))
            ],
            [
                _bytes(crossed[self._port("o_data", pad)].words).reshape(-1, self._beat)
                for pad in range(len(users))
            ],
        )

    def _port(self, name: str, pad: int) -> str:
        """Name of a port of the user of a scratchpad."""
        return f"{self._name}_{user_port(name, pad)}"

    def give(self, commands: Sequence[UnitCommand]) -> None:
        """Give commands, as `run` does, and leave their completions."""
        self._model.run({f"{self._name}_i_commands": self.words(commands)}, {})

    def take(self, count: int) -> list[tuple[int, int]]:
        """Take completions: identifier and code of each."""
        taken = f"{self._name}_o_completions"
        crossed = self._model.run({}, {taken: count}, quiet_cycles=_PATIENCE)
        self._check_rules()
        return _completions(crossed[taken].words)

    @property
    def groups(self) -> tuple[int, int]:
        """Groups of stores whose vectors have left the scratchpad, and that are in memory."""
        read, stored = (f"{self._name}_o_groups{end}" for end in ("_read", ""))
        return self._model.get(read), self._model.get(stored)

    def words(self, commands: Sequence[UnitCommand]) -> Words:
        """Payloads of commands, whose identifiers are their numbers."""
        return self._commands.rows(
            [
                {
                    "operation": each.operation.value,
                    "descriptor": each.descriptor,
                    "coordinates": each.coordinates,
                    "id": number,
                    **each.fields,
                }
                for number, each in enumerate(commands)
            ]
        )

    def fill(self, content: np.ndarray, start: int = 0, *, pad: int = 0) -> None:
        """Write whole vectors of a scratchpad, from an address on."""
        vectors = enumerate(content.reshape(-1, self._beat), start // self._beat)
        self._model.run({self._port("i_writes", pad): self._write_words(list(vectors))}, {})

    def _write_words(self, writes: Sequence[tuple[int, np.ndarray]]) -> Words:
        """Payloads that write whole vectors."""
        strobe = (1 << self._beat) - 1
        return self._writes.rows(
            [
                {
                    "vector": number,
                    "data": int.from_bytes(vector.tobytes(), "little"),
                    "strobe": strobe,
                }
                for number, vector in writes
            ]
        )

    def dump(self, *, pad: int = 0) -> np.ndarray:
        """All bytes of a scratchpad."""
        reads, answers = self._port("i_reads", pad), self._port("o_data", pad)
        numbers = np.arange(self._sizes.vectors, dtype=np.uint32).reshape(-1, 1)
        crossed = self._model.run({reads: numbers}, {answers: len(numbers)})
        return _bytes(crossed[answers].words)

    def operate(self, operation: BarrierOperation, barrier: int, **fields: int) -> dict[str, int]:
        """Apply an operation at a barrier; its answer by field, unsigned."""
        (answer,) = self.operate_all([{"operation": operation, "barrier": barrier} | fields])
        return answer

    def operate_all(
        self, operations: Sequence[Mapping[str, Any]], *, pad: int = 0
    ) -> list[dict[str, int]]:
        """Apply operations at a port of barriers, one per cycle; their answers, unsigned."""
        given, answers = self._port("i_operations", pad), self._port("o_answers", pad)
        words = self._operation_words(operations)
        crossed = self._model.run({given: words}, {answers: len(words)})
        return [_ANSWER.fields(row) for row in crossed[answers].words]

    def _operation_words(self, operations: Sequence[Mapping[str, Any]]) -> Words:
        """Payloads of operations; what is no `BarrierOperation` has the code 15."""
        return self._operations.rows(
            [{**each, "operation": getattr(each["operation"], "value", 15)} for each in operations]
        )

    def wait(self, barrier: int, parity: int, cycles: int = 0) -> dict[str, int]:
        """Wait for the phase of a parity, for some cycles; the result by field."""
        given, results = f"{self._name}_i_waits", f"{self._name}_o_waits"
        crossed = self._model.run(
            {given: _WAIT.rows([{"barrier": barrier, "parity": parity, "cycles": cycles}])},
            {results: 1},
            quiet_cycles=cycles + _PATIENCE,
        )
        return _RESULT.fields(crossed[results].words[0])

    def check(self) -> None:
        """Raise a `Violation` if a rule of AXI4 was broken, or a burst is open."""
        self._check_rules()
        if self.memory.owed:
            raise Violation(f"{self.memory.owed} bursts are open after the last completion")

    def _check_rules(self) -> None:
        broken = self._model.get(f"{self._name}_o_broken")
        rules = [rule.name for rule in AxiRule if broken >> rule.value & 1]
        if rules:
            raise Violation(f"AXI4 rules broken: {', '.join(rules)}")
