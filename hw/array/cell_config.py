"""Parameters of a MAC cell: operand formats and latency."""

from __future__ import annotations

from dataclasses import dataclass

from hw.arch.errors import BadInputError, shown
from hw.array.unit_parameters import HARD_BLOCKS, LATENCY
from hw.float.recode import Coding
from hw.numeric.formats import OPERANDS, PAIRS, SCALE_BITS, Format, bf16, int8

__all__ = ["NO_BLOCKS", "CellConfig", "HardBlocks"]

#: Formats that a cell has alone.
_ALONE = tuple(each for each in OPERANDS if not any(each in pair for pair in PAIRS))


@dataclass(frozen=True)
class HardBlocks:
    """Hard blocks of an FPGA that a cell is written for, as a parameter of its own.

    Without any, it adds nothing to a module's name.

    Parameters
    ----------
    names : tuple of str
    """

    names: tuple[str, ...] = ()


#: A cell whose multipliers are trees of gates.
NO_BLOCKS = HardBlocks()


@dataclass(frozen=True)
class CellConfig:
    """Elaboration parameters of a MAC cell.

    Parameters
    ----------
    formats : tuple of Format
        Operand formats, each once: one of `OPERANDS`, or a pair of `PAIRS`. Floats of a pair share
        their coding, so the operands of one product may differ in format.
    latency : int
        Register stages from ``i_p`` to ``o_p`` (`CELL_LATENCY`): cycles of skew between
        neighbouring rows.
    hard_blocks : tuple of str
        Hard blocks of an FPGA that the cell is written for: none, or ``("dsp",)``. Then products
        of int8 are multiplications for synthesis to place; those of floats always are.

    Raises
    ------
    BadInputError
        A parameter is outside its domain.
    """

    formats: tuple[Format, ...]
    latency: int
    hard_blocks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        formats = self.formats
        if (
            not isinstance(formats, tuple)
            or not formats
            or any(formats.count(format_) > 1 for format_ in formats)
            or not any(all(format_ in pair for format_ in formats) for pair in PAIRS)
            and not any(formats == (format_,) for format_ in _ALONE)
        ):
            names = getattr(formats, "name", formats)
            if isinstance(formats, tuple):
                names = tuple(getattr(format_, "name", format_) for format_ in formats)
            pairs = ", ".join(" and ".join(f.name for f in pair) for pair in PAIRS)
            alone = " or ".join(format_.name for format_ in _ALONE)
            raise BadInputError(
                f"Cell formats must be a tuple of one or both of {pairs}, or of {alone} alone, "
                f"not {shown(names)}"
            )
        LATENCY.require(self.latency)
        if self.hard_blocks not in HARD_BLOCKS:
            rule = " or ".join(map(repr, HARD_BLOCKS))
            raise BadInputError(
                f"Hard blocks of a cell must be {rule}, not {shown(self.hard_blocks)}"
            )

    @property
    def ordered(self) -> tuple[Format, ...]:
        """The formats in canonical order, used in module names and for the mode input."""
        return tuple(format_ for format_ in OPERANDS if format_ in self.formats)

    @property
    def coding(self) -> Coding | None:
        """How floats are recoded (:mod:`hw.float.recode`); None if no operand is recoded."""
        floats = tuple(
            format_ for format_ in self.formats if format_.is_float and format_ not in _ALONE
        )
        return Coding.of(floats) if floats else None

    @property
    def has_float_pairs(self) -> bool:
        """Whether operands are pairs of 8-bit floats."""
        return all(format_.is_float and format_.bits == 8 for format_ in self.formats)

    @property
    def operand_bits(self) -> int:
        """Width of an operand inside the array: recoded floats, or the lane unchanged."""
        if self.coding is None:
            return self.lane_bits
        bits = self.coding.bits * (2 if self.has_float_pairs else 1)
        return bits + SCALE_BITS * self.has_scale

    @property
    def has_hard_multipliers(self) -> bool:
        """Whether products of int8 are for the hard multipliers of an FPGA."""
        return bool(self.hard_blocks)

    @property
    def has_scale(self) -> bool:
        """Whether operands carry a microscaling scale in their highest bits."""
        return self.formats[0].has_scale

    @property
    def lane_bits(self) -> int:
        """Width of an operand before it is recoded."""
        return self.formats[0].lane_bits

    @property
    def has_mode(self) -> bool:
        """Whether the cell has the mode input, which selects bf16 or int8."""
        return bf16 in self.formats and int8 in self.formats
