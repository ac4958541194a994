"""Program of a PCU: word layout, fields, packing and unpacking."""

import dataclasses
from typing import Any

from amaranth.hdl import Const
from amaranth.lib import data

from hw.arch.checks import refusal
from hw.arch.errors import BadInputError
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import PhaseSource, lane_layout
from hw.arch.limits import MAX_MODULUS, PACKET_VECTORS
from hw.arch.ports import PortNames, UnitProgram
from hw.numeric.formats import Format, bf16, fp32, int8, int32

__all__ = [
    "RESULT_FORMATS",
    "FilterProgram",
    "PcuInput",
    "PcuOutput",
    "PcuProgram",
    "pcu_layout",
]

#: Result formats by operand format.
RESULT_FORMATS = {bf16: (bf16, fp32), int8: (int32,)}


class PcuInput(PortNames):
    """Vector inputs of a PCU."""

    #: The streaming operand: tiles of activations, or packets for the lanes.
    ACTIVATION = 0
    #: The stationary operand: tiles of weights.
    WEIGHT = 1
    #: Packets for the lanes.
    AUXILIARY = 2


class PcuOutput(PortNames):
    """Vector outputs of a PCU."""

    #: The sums of each pass, or the results of the lanes, in packets.
    RESULT = 0


def _filter_layout() -> data.StructLayout:
    return data.StructLayout(
        {"modulus": range(MAX_MODULUS + 1), "index": range(MAX_MODULUS)},
    )


def pcu_layout(lanes: int) -> data.StructLayout:
    """Layout of a PCU's program.

    Parameters
    ----------
    lanes : int
        Lanes of the PCU (`hw.arch.config.PcuConfig`); 0: no lane program.
    """
    fields: dict[str, Any] = {
        "int8": 1,
        "to_bf16": 1,
        "weights_by_row": 1,
        "activation": _filter_layout(),
        "weight": _filter_layout(),
        "packet_vectors": range(PACKET_VECTORS.high + 1),
        "by_group": 1,
    }
    if lanes:
        fields |= {"auxiliary": _filter_layout(), "lanes": lane_layout()}
    return data.StructLayout(fields)


@dataclasses.dataclass(frozen=True)
class FilterProgram:
    """Packet selection of a port: packets whose number is ``index`` modulo ``modulus``.

    Raises
    ------
    BadInputError
        If ``modulus`` is not from 1 to `MAX_MODULUS`, or ``index`` not below it.
    """

    modulus: int = 1
    index: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.modulus <= MAX_MODULUS:
            raise BadInputError(
                f"Filter modulus must be from 1 to {MAX_MODULUS}, not {self.modulus}"
            )
        if not 0 <= self.index < self.modulus:
            raise BadInputError(
                f"Filter index must be from 0 to {self.modulus - 1}, not {self.index}"
            )


@dataclasses.dataclass(frozen=True)
class PcuProgram(UnitProgram):
    """Program of a PCU: of its matrix unit, its lanes, or of lanes that take the sums.

    Without a lane program the results are the sums. With one the sums, if a phase takes them, go
    to the lanes as fp32 or int32, and the results are those of the lanes. The activation stream
    feeds the lanes if a phase takes it, else the matrix unit.

    Parameters
    ----------
    fmt : Format
        Operand format, bf16 or int8.
    out : Format
        Result format: fp32 or bf16 for bf16, int32 for int8.
    weights_by_row : bool
        Weight vectors hold rows × columns, as another PCU emits them, instead of one column each.
    activation, weight, auxiliary : FilterProgram
        Packet selection of the three ports.
    packet_vectors : int
        Vectors of a result packet (`PACKET_VECTORS`), the last of a pass, or of a packet of the
        lanes, may have fewer; 0: it is not cut.
    by_group : bool
        The tiles of a group use accumulator rows one after another: as many column passes share
        the rows of the streaming operand. A `final` that passes the filter of the weights, taken or
        not, makes the next tile that is taken the first of a group. Else each tile is a group.
    lanes : LaneProgram or None
        Program of the lanes; None: they are off.

    Raises
    ------
    BadInputError
        If operands of this format cannot have results in that format, ``packet_vectors`` is
        outside its domain, or lanes and matrix unit cannot work together like this.
    """

    fmt: Format = bf16
    out: Format = fp32
    weights_by_row: bool = False
    activation: FilterProgram = FilterProgram()
    weight: FilterProgram = FilterProgram()
    packet_vectors: int = 0
    by_group: bool = False
    auxiliary: FilterProgram = FilterProgram()
    lanes: LaneProgram | None = None

    def __post_init__(self) -> None:
        if self.fmt not in RESULT_FORMATS:
            raise BadInputError(f"PCU operands must be bf16 or int8, not {self.fmt.name}")
        if self.out not in RESULT_FORMATS[self.fmt]:
            names = " or ".join(fmt.name for fmt in RESULT_FORMATS[self.fmt])
            raise BadInputError(
                f"PCU results of {self.fmt.name} operands must be {names}, not {self.out.name}"
            )
        PACKET_VECTORS.require("Vectors of a PCU's result packet", self.packet_vectors)
        self._check_lanes()

    def _check_lanes(self) -> None:
        """Check that the streams of the lanes and those of the matrix unit fit together."""
        unused = FilterProgram()
        if PcuInput.AUXILIARY not in self.inputs and self.auxiliary != unused:
            rule = "take every packet, as no lane program takes the stream"
            raise refusal("Filter of the auxiliary port", rule, self.auxiliary)
        if self.lanes is None:
            return
        sources = self._sources
        if {PhaseSource.ACTIVATION, PhaseSource.ACCUMULATORS} <= sources:
            rule = "not take activations beside sums, which need them in the matrix unit"
            raise refusal("Phases of a lane program", rule, "ACTIVATION and ACCUMULATORS")
        if self.sums:
            if self.out != self.fmt.accumulator:
                rule = f"be {self.fmt.accumulator.name} where the lanes take them"
                raise refusal(f"Sums of {self.fmt.name} operands", rule, self.out.name)
            return
        for noun, value, plain in (
            ("Operand format", self.fmt, bf16),
            ("Result format of the matrix unit", self.out, fp32),
            ("Weights by row", self.weights_by_row, False),
            ("Tiles by group", self.by_group, False),
            ("Filter of the weight port", self.weight, unused),
            *(
                []
                if PhaseSource.ACTIVATION in sources
                else [("Filter of the activation port", self.activation, unused)]
            ),
        ):
            if value != plain:
                shown = plain.name if isinstance(plain, Format) else plain
                raise refusal(noun, f"be {shown} where no phase takes sums", value)

    @property
    def _sources(self) -> set[PhaseSource]:
        """Sources of the lanes' phases."""
        return {phase.source for phase in self.lanes.phases} if self.lanes else set()

    @property
    def sums(self) -> bool:
        """Whether the matrix unit works."""
        return self.lanes is None or PhaseSource.ACCUMULATORS in self._sources

    @property
    def inputs(self) -> tuple[int, ...]:
        taken = [PcuInput.ACTIVATION, PcuInput.WEIGHT] if self.sums else []
        if PhaseSource.ACTIVATION in self._sources:
            taken.append(PcuInput.ACTIVATION)
        if self.lanes and self.lanes.takes_auxiliary:
            taken.append(PcuInput.AUXILIARY)
        return tuple(taken)

    @property
    def outputs(self) -> tuple[int, ...]:
        return (PcuOutput.RESULT,)

    def pack(self, lanes: int) -> int:
        """Program word, laid out by `pcu_layout`.

        Parameters
        ----------
        lanes : int
            Lanes of the PCU.

        Raises
        ------
        BadInputError
            If it has no lanes, and the program is for them.
        """
        fields: dict[int | str, Any] = {
            "int8": self.fmt == int8,
            "to_bf16": self.out == bf16,
            "weights_by_row": self.weights_by_row,
            "activation": dataclasses.asdict(self.activation),
            "weight": dataclasses.asdict(self.weight),
            "packet_vectors": self.packet_vectors,
            "by_group": self.by_group,
        }
        layout = pcu_layout(lanes)
        word: int = Const.cast(layout.const(fields)).value
        if self.lanes is None:
            return word
        if not lanes:
            raise refusal("Lanes of a PCU with a lane program", "be at least 1", lanes)
        modulus, index = (_filter_layout()[name].offset for name in ("modulus", "index"))
        word |= (self.auxiliary.modulus << modulus | self.auxiliary.index << index) << layout[
            "auxiliary"
        ].offset
        return word | self.lanes.pack() << layout["lanes"].offset

    @classmethod
    def unpack(cls, word: int, lanes: int) -> "PcuProgram":
        """Program of a word; the inverse of `pack`.

        Raises
        ------
        BadInputError
            If `pack` makes no such word.
        """
        layout = pcu_layout(lanes)
        fields: Any = layout.from_bits(word)
        if fields["int8"] and fields["to_bf16"]:
            raise BadInputError("PCU results of int8 operands must be int32, not bf16")
        fmt = int8 if fields["int8"] else bf16
        program = LaneProgram.unpack(word >> layout["lanes"].offset) if lanes else None
        return cls(
            fmt=fmt,
            out=bf16 if fields["to_bf16"] else fmt.accumulator,
            weights_by_row=bool(fields["weights_by_row"]),
            activation=_filter(fields["activation"]),
            weight=_filter(fields["weight"]),
            packet_vectors=int(fields["packet_vectors"]),
            by_group=bool(fields["by_group"]),
            auxiliary=_filter(fields["auxiliary"]) if program else FilterProgram(),
            lanes=program,
        )


def _filter(fields: Any) -> FilterProgram:
    return FilterProgram(int(fields["modulus"]), int(fields["index"]))
