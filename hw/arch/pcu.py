"""Program of a PCU: word layout, fields, packing and unpacking."""

import dataclasses
from typing import Any

from amaranth.hdl import Const
from amaranth.lib import data

from hw.arch.errors import BadInputError
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

    #: The streaming operand: tiles of activations.
    ACTIVATION = 0
    #: The stationary operand: tiles of weights.
    WEIGHT = 1
    #: Second operand of SIMD mode, which takes nothing yet.
    AUXILIARY = 2


class PcuOutput(PortNames):
    """Vector outputs of a PCU."""

    #: The sums of each pass, in packets.
    RESULT = 0


def _filter_layout() -> data.StructLayout:
    return data.StructLayout(
        {"modulus": range(MAX_MODULUS + 1), "index": range(MAX_MODULUS)},
    )


def pcu_layout() -> data.StructLayout:
    """Layout of a PCU's program."""
    return data.StructLayout(
        {
            "int8": 1,
            "to_bf16": 1,
            "weights_by_row": 1,
            "activation": _filter_layout(),
            "weight": _filter_layout(),
            "packet_vectors": range(PACKET_VECTORS.high + 1),
            "by_group": 1,
        }
    )


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
    """Program of a PCU in systolic mode.

    Parameters
    ----------
    fmt : Format
        Operand format, bf16 or int8.
    out : Format
        Result format: fp32 or bf16 for bf16, int32 for int8.
    weights_by_row : bool
        Weight vectors hold rows × columns, as another PCU emits them, instead of one column each.
    activation, weight : FilterProgram
        Packet selection of the two ports.
    packet_vectors : int
        Vectors of a result packet (`PACKET_VECTORS`), the last of a pass may have fewer; 0: a pass
        is one packet.
    by_group : bool
        The tiles of a group use accumulator rows one after another: as many column passes share
        the rows of the streaming operand. A `final` that passes the filter of the weights, taken or
        not, makes the next tile that is taken the first of a group. Else each tile is a group.

    Raises
    ------
    BadInputError
        If operands of this format cannot have results in that format, or ``packet_vectors`` is
        outside its domain.
    """

    fmt: Format
    out: Format
    weights_by_row: bool = False
    activation: FilterProgram = FilterProgram()
    weight: FilterProgram = FilterProgram()
    packet_vectors: int = 0
    by_group: bool = False

    def __post_init__(self) -> None:
        if self.fmt not in RESULT_FORMATS:
            raise BadInputError(f"PCU operands must be bf16 or int8, not {self.fmt.name}")
        if self.out not in RESULT_FORMATS[self.fmt]:
            names = " or ".join(fmt.name for fmt in RESULT_FORMATS[self.fmt])
            raise BadInputError(
                f"PCU results of {self.fmt.name} operands must be {names}, not {self.out.name}"
            )
        PACKET_VECTORS.require("Vectors of a PCU's result packet", self.packet_vectors)

    @property
    def inputs(self) -> tuple[int, ...]:
        return (PcuInput.ACTIVATION, PcuInput.WEIGHT)

    @property
    def outputs(self) -> tuple[int, ...]:
        return (PcuOutput.RESULT,)

    def pack(self) -> int:
        """Program word, laid out by `pcu_layout`."""
        fields: dict[int | str, Any] = {
            "int8": self.fmt == int8,
            "to_bf16": self.out == bf16,
            "weights_by_row": self.weights_by_row,
            "activation": dataclasses.asdict(self.activation),
            "weight": dataclasses.asdict(self.weight),
            "packet_vectors": self.packet_vectors,
            "by_group": self.by_group,
        }
        return Const.cast(pcu_layout().const(fields)).value

    @classmethod
    def unpack(cls, word: int) -> "PcuProgram":
        """Program of a word; the inverse of `pack`.

        Raises
        ------
        BadInputError
            If `pack` makes no such word.
        """
        fields: Any = pcu_layout().from_bits(word)
        if fields["int8"] and fields["to_bf16"]:
            raise BadInputError("PCU results of int8 operands must be int32, not bf16")
        fmt = int8 if fields["int8"] else bf16
        return cls(
            fmt=fmt,
            out=bf16 if fields["to_bf16"] else fmt.accumulator,
            weights_by_row=bool(fields["weights_by_row"]),
            activation=FilterProgram(
                int(fields["activation"]["modulus"]), int(fields["activation"]["index"])
            ),
            weight=FilterProgram(int(fields["weight"]["modulus"]), int(fields["weight"]["index"])),
            packet_vectors=int(fields["packet_vectors"]),
            by_group=bool(fields["by_group"]),
        )
