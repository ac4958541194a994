"""Affine forms over loop indices, and tile axes whose extents they bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

__all__ = ["Affine", "Axis", "Bound", "Size", "size_symbol"]

#: Size of an axis: a number, or ``|i|`` for the block size of loop i before it is chosen.
Size = int | str


def size_symbol(index: str) -> str:
    """Return the symbol of the block size of the loop over ``index``."""
    return f"|{index}|"


@dataclass(frozen=True)
class Affine:
    """An affine form: integer coefficients times symbols, plus a constant.

    The symbol ``i`` is the first element of a block or the number of a point; ``|i|`` is the size
    of the block.

    Parameters
    ----------
    terms : tuple of (str, int)
        Non-zero coefficients by symbol, sorted by symbol.
    constant : int
        The constant term.
    """

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    @staticmethod
    def of(value: Affine | int | str) -> Affine:
        """Convert a number or a symbol to an affine form; return an affine form unchanged."""
        if isinstance(value, Affine):
            return value
        if isinstance(value, str):
            return Affine(((value, 1),))
        return Affine((), int(value))

    @staticmethod
    def _collect(terms: Iterable[tuple[str, int]], constant: int) -> Affine:
        sums: dict[str, int] = {}
        for symbol, factor in terms:
            sums[symbol] = sums.get(symbol, 0) + factor
        return Affine(tuple(sorted((s, f) for s, f in sums.items() if f)), constant)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols with a non-zero coefficient."""
        return tuple(symbol for symbol, _ in self.terms)

    def __add__(self, other: Affine | int) -> Affine:
        other = Affine.of(other)
        constant = self.constant + other.constant
        if self.terms and other.terms:
            return Affine._collect(self.terms + other.terms, constant)
        return Affine(self.terms or other.terms, constant)

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: Affine | int) -> Affine:
        return self + -Affine.of(other)

    def __mul__(self, factor: int) -> Affine:
        terms = tuple([(s, f * factor) for s, f in self.terms]) if factor else ()
        return Affine(terms, self.constant * factor)

    def substitute(self, values: Mapping[str, Affine]) -> Affine:
        """Replace symbols by affine forms."""
        if not any(symbol in values for symbol, _ in self.terms):
            return self
        total = Affine((), self.constant)
        for symbol, factor in self.terms:
            total = total + values.get(symbol, Affine.of(symbol)) * factor
        return total

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Return the value for these values of the symbols.

        Raises
        ------
        KeyError
            If a symbol has no value.
        """
        return self.constant + sum(values[symbol] * factor for symbol, factor in self.terms)

    def bounds(self, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
        """Return the least and the greatest value over these closed ranges of the symbols.

        Returns
        -------
        tuple of (int, int) or None
            None if a symbol has no range.
        """
        low = high = self.constant
        for symbol, factor in self.terms:
            if symbol not in ranges:
                return None
            ends = sorted(factor * end for end in ranges[symbol])
            low, high = low + ends[0], high + ends[1]
        return low, high

    def __str__(self) -> str:
        text = ""
        # Positive terms first, so that "100 - i" does not read "-i + 100".
        parts = [(factor, symbol) for symbol, factor in self.terms]
        if self.constant or not parts:
            parts.append((self.constant, ""))
        for factor, symbol in sorted(parts, key=lambda part: part[0] < 0):
            magnitude = abs(factor)
            body = symbol if magnitude == 1 and symbol else f"{magnitude}*{symbol}"
            body = body if symbol else str(magnitude)
            sign = "-" if factor < 0 else "+"
            text += f" {sign} {body}" if text else (f"-{body}" if factor < 0 else body)
        return text


@dataclass(frozen=True)
class Bound:
    """The minimum of several affine forms.

    Parameters
    ----------
    forms : tuple of Affine
        At least one; no duplicates.
    """

    forms: tuple[Affine, ...]

    @staticmethod
    def least(forms: Iterable[Affine]) -> Bound:
        """Make a bound from forms that may repeat."""
        return Bound(tuple(dict.fromkeys(forms)))

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols in the forms."""
        return tuple(symbol for form in self.forms for symbol in form.symbols)

    def __add__(self, other: Affine | int) -> Bound:
        return Bound.least(form + other for form in self.forms)

    def __sub__(self, other: Affine | int) -> Bound:
        return self + -Affine.of(other)

    def substitute(self, values: Mapping[str, Affine]) -> Bound:
        """Replace symbols by affine forms."""
        if values.keys().isdisjoint(self.symbols):
            return self
        return Bound.least(form.substitute(values) for form in self.forms)

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Return the number for these values of the symbols."""
        return min(form.evaluate(values) for form in self.forms)

    def __str__(self) -> str:
        if len(self.forms) == 1:
            return str(self.forms[0])
        return f"min({', '.join(str(form) for form in self.forms)})"


@dataclass(frozen=True, repr=False)
class Axis:
    """One axis of a tile: its size and its valid extent.

    The extent is the minimum of the size and the rests, and 0 if a rest is negative. Elements
    beyond the extent are not part of the tile.

    Parameters
    ----------
    size : int or str
        Allocated elements.
    rests : tuple of Affine
        Bounds that clip the axis; empty if it is full in every iteration.
    """

    size: Size
    rests: tuple[Affine, ...] = ()

    @property
    def full(self) -> bool:
        """Whether the axis has no tail."""
        return not self.rests

    @property
    def start(self) -> Affine:
        """The first element of the block that the axis is; 0 if it is none."""
        return Affine.of(self.size.strip("|")) if isinstance(self.size, str) else Affine()

    @property
    def one(self) -> bool:
        """Whether the axis has exactly one element, so that it broadcasts."""
        return self.size == 1 and self.full

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols in the size and the rests."""
        own = (self.size,) if isinstance(self.size, str) else ()
        return own + tuple(symbol for rest in self.rests for symbol in rest.symbols)

    def substitute(self, values: Mapping[str, Affine]) -> Axis:
        """Replace symbols by affine forms; the size's symbol only by a symbol or a number."""
        if values.keys().isdisjoint(self.symbols):
            return self
        size = self.size
        if isinstance(size, str) and size in values:
            form = values[size]
            size = form.constant if not form.terms else form.terms[0][0]
        return Axis(size, tuple(dict.fromkeys(rest.substitute(values) for rest in self.rests)))

    def room(self, values: Mapping[str, int]) -> int:
        """Return the size for these values of the symbols."""
        return values[self.size] if isinstance(self.size, str) else self.size

    def extent(self, values: Mapping[str, int]) -> int:
        """Return the number of valid elements for these values of the symbols."""
        rests = (rest.evaluate(values) for rest in self.rests)
        return max(0, min((self.room(values), *rests)))

    def __str__(self) -> str:
        clip = f"[{', '.join(str(rest) for rest in self.rests)}]" if self.rests else ""
        return f"{self.size}{clip}"

    __repr__ = __str__
