"""Program of a PCU: fields, packing and unpacking."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from hw.arch.checks import refusal
from hw.arch.errors import BadInputError
from hw.arch.lanes.lane_function import LaneFunction
from hw.arch.lanes.lane_program import LaneProgram
from hw.arch.lanes.phase_word import PhaseSource, lane_layout
from hw.arch.lanes.softmax_program import SoftmaxProgram, SoftmaxRole
from hw.arch.limits import MAX_MODULUS, PACKET_VECTORS
from hw.arch.ports import PortNames, UnitProgram
from hw.arch.words.pcu_word import format_modes, pcu_layout, rounded_formats
from hw.numeric.formats import Format, bf16, fp32
from hw.numeric.product_formats import DEFAULT_CELLS, RESULT_FORMATS, result_formats

__all__ = [
    "FilterProgram",
    "PcuInput",
    "PcuOutput",
    "PcuProgram",
]


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
        Format of the activations, and of the weights unless ``weight_fmt`` says otherwise.
    out : Format
        Result format, one of `result_formats` of the operands.
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
    weight_fmt : Format or None
        Format of the weights if it differs: another float of the same width.
    softmax : SoftmaxProgram or None
        Part in fused softmax, for which the lanes have a program of their own.

    Raises
    ------
    BadInputError
        If no cell multiplies operands of these formats, they cannot have results in that format,
        ``packet_vectors`` is outside its domain, or lanes and matrix unit cannot work together like
        this.
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
    weight_fmt: Format | None = None
    softmax: SoftmaxProgram | None = None

    def __post_init__(self) -> None:
        if self.weight_fmt == self.fmt:
            # One spelling, so that equal programs are equal.
            object.__setattr__(self, "weight_fmt", None)
        for each in self.operands:
            if each not in RESULT_FORMATS:
                names = _named(RESULT_FORMATS, "or")
                raise BadInputError(f"PCU operands must be {names}, not {each.name}")
        operands = _named(dict.fromkeys(self.operands))
        results = result_formats(*self.operands)
        if not results:
            raise BadInputError(
                f"PCU operands must have one format or be floats of one width, not {operands}"
            )
        if self.out not in results:
            raise BadInputError(
                f"PCU results of {operands} operands must be {_named(results, 'or')}, "
                f"not {self.out.name}"
            )
        PACKET_VECTORS.require("Vectors of a PCU's result packet", self.packet_vectors)
        self._check_lanes()
        self._check_softmax()

    def _check_softmax(self) -> None:
        """Check that matrix unit and lanes are as a part in fused softmax needs them."""
        if self.softmax is None:
            return
        role = self.softmax.role
        scores = role is SoftmaxRole.SCORES
        rules: list[tuple[str, object, object]] = [
            ("Lane program", self.lanes, None),
            ("Operand format", self.fmt, bf16),
            ("Weight format", self.weight_fmt, None),
            ("Format of sums", self.out, fp32),
            ("Tiles by group", self.by_group, False),
        ]
        if scores:
            rules.append(("Vectors of a result packet", self.packet_vectors, 0))
        else:
            rules.append(("Weights by row", self.weights_by_row, True))
        for noun, value, needed in rules:
            if value != needed:
                shown = needed.name if isinstance(needed, Format) else needed
                raise refusal(f"{noun} of a {role.name.lower()} unit", f"be {shown}", value)

    def _check_lanes(self) -> None:
        """Check that the streams of the lanes and those of the matrix unit fit together."""
        unused = FilterProgram()
        if PcuInput.AUXILIARY not in self.inputs and self.auxiliary != unused:
            rule = "take every packet, as no lane program takes the stream"
            raise refusal("Filter of the auxiliary port", rule, self.auxiliary)
        if self.lanes is None:
            return
        sources = _sources(self.lanes)
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
    def sums(self) -> bool:
        """Whether the matrix unit works."""
        return self.lanes is None or PhaseSource.ACCUMULATORS in _sources(self.lanes)

    @property
    def operands(self) -> tuple[Format, Format]:
        """Formats of the activations and of the weights."""
        return self.fmt, self.weight_fmt or self.fmt

    @property
    def inputs(self) -> tuple[int, ...]:
        taken = [PcuInput.ACTIVATION, PcuInput.WEIGHT] if self.sums else []
        if PhaseSource.ACTIVATION in _sources(self.lanes):
            taken.append(PcuInput.ACTIVATION)
        if self.lanes and self.lanes.takes_auxiliary:
            taken.append(PcuInput.AUXILIARY)
        return tuple(taken)

    @property
    def outputs(self) -> tuple[int, ...]:
        return (PcuOutput.RESULT,)

    def modes(self, cells: tuple[Format, ...] = DEFAULT_CELLS) -> dict[int | str, int]:
        """Values of the `format_modes` of a PCU with these cells.

        Raises
        ------
        BadInputError
            If its cells lack a format of the operands.
        """
        if not self.sums:
            return dict.fromkeys(format_modes(cells), 0)
        for each in self.operands:
            if each not in cells:
                rule = f"be {_named(cells, 'or')}, which the cells of the PCU have"
                raise refusal("Operands of a PCU's program", rule, each)
        activation, weight = self.operands
        named = {"": activation, "activation": activation, "weight": weight, "to": self.out}
        modes = (mode.rpartition("_") for mode in format_modes(cells))
        return {f"{of}{dash}{name}": int(named[of].name == name) for of, dash, name in modes}

    def pack(
        self,
        lanes: int,
        cells: tuple[Format, ...] = DEFAULT_CELLS,
        functions: tuple[LaneFunction, ...] = (),
    ) -> int:
        """Program word, laid out by `pcu_layout`.

        Parameters
        ----------
        lanes : int
            Lanes of the PCU.
        cells : tuple of Format
            Operand formats of its cells.
        functions : tuple of LaneFunction
            Function units of its lanes.

        Raises
        ------
        BadInputError
            If it has no lanes and the program is for them, its cells lack an operand's format, or
            its lanes a function unit.
        """
        fields: dict[int | str, Any] = {
            **self.modes(cells),
            "weights_by_row": self.weights_by_row,
            "activation": dataclasses.asdict(self.activation),
            "weight": dataclasses.asdict(self.weight),
            "packet_vectors": self.packet_vectors,
            "by_group": self.by_group,
        }
        if (self.lanes or self.softmax) and not lanes:
            raise refusal("Lanes of a PCU with a lane program", "be at least 1", lanes)
        if self.lanes:
            fields["auxiliary"] = dataclasses.asdict(self.auxiliary)
        layout = pcu_layout(lanes, cells, len(functions))
        word: int = layout.pack(fields)
        if self.softmax:
            word |= self.softmax.pack() << layout["softmax"].offset
            word |= self.softmax.lane_word(functions) << layout["lanes"].offset
        elif self.lanes:
            word |= self.lanes.pack(functions) << layout["lanes"].offset
        return word

    @classmethod
    def unpack(
        cls,
        word: int,
        lanes: int,
        cells: tuple[Format, ...] = DEFAULT_CELLS,
        functions: tuple[LaneFunction, ...] = (),
    ) -> "PcuProgram":
        """Program of a word; the inverse of `pack`.

        Raises
        ------
        BadInputError
            If `pack` makes no such word.
        """
        layout = pcu_layout(lanes, cells, len(functions))
        fields: Any = layout.unpack(word)
        softmax = program = None
        if lanes:
            size = lane_layout(len(functions)).bits
            lane_bits = word >> layout["lanes"].offset & (1 << size) - 1
            softmax = SoftmaxProgram.unpack(word >> layout["softmax"].offset, lane_bits, functions)
            program = None if softmax else LaneProgram.unpack(lane_bits, functions)
        chosen = {mode for mode in format_modes(cells) if fields[mode]}
        formats = _chosen_formats(cells, chosen)
        if program and PhaseSource.ACCUMULATORS not in _sources(program):
            if chosen:
                raise refusal("Format modes", "be 0 where no phase takes sums", sorted(chosen))
            formats = {}
        return cls(
            **formats,
            weights_by_row=bool(fields["weights_by_row"]),
            activation=_filter(fields["activation"]),
            weight=_filter(fields["weight"]),
            packet_vectors=int(fields["packet_vectors"]),
            by_group=bool(fields["by_group"]),
            auxiliary=_filter(fields["auxiliary"]) if program else FilterProgram(),
            lanes=program,
            softmax=softmax,
        )


def _chosen_formats(cells: tuple[Format, ...], chosen: set[str]) -> dict[str, Format]:
    """Formats of a program for a PCU with these cells, by field, from the modes that are 1."""
    second = cells[-1].name
    fmt, weight_fmt = (
        cells[-1] if chosen & {second, f"{of}_{second}"} else cells[0]
        for of in ("activation", "weight")
    )
    outs = [each for each in rounded_formats(cells) if f"to_{each.name}" in chosen]
    if len(outs) > 1:
        raise refusal("Results of a PCU", "have one format", _named(outs))
    return {"fmt": fmt, "weight_fmt": weight_fmt, "out": (*outs, fmt.accumulator)[0]}


def _sources(lanes: LaneProgram | None) -> set[PhaseSource]:
    """Sources of the lanes' phases."""
    return {phase.source for phase in lanes.phases} if lanes else set()


def _filter(fields: Any) -> FilterProgram:
    return FilterProgram(int(fields["modulus"]), int(fields["index"]))


def _named(formats: Iterable[Format], last: str = "and") -> str:
    """Names of formats as words of a sentence."""
    *names, end = (each.name for each in formats)
    return f"{', '.join(names)} {last} {end}" if names else end
