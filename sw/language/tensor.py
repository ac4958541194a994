"""Tensors of a kernel and their views."""

from __future__ import annotations

import dis
from typing import NoReturn

from hw.arch.errors import BadInputError
from sw.ir.affine import Affine, Axis, size_symbol
from sw.ir.format_rules import Format, format_of
from sw.ir.types import Dim, Entry, Role, Space, Tensor, TensorType, View
from sw.language.idioms import NotAnArray, operator
from sw.language.index import BlockIndex, StopNumber
from sw.language.program_error import caller
from sw.language.tile_value import Tile, as_affine, whole
from sw.language.trace import Recorder, current, refusal

__all__ = ["DimSize", "TensorView", "local"]


class DimSize(int):
    """Size of a dimension: an int that has the dimension's name."""

    name: str

    def __new__(cls, name: str, size: int) -> DimSize:
        made = super().__new__(cls, size)
        made.name = name
        return made


class TensorView(NotAnArray):
    """A tensor of the kernel, or a part of it.

    Indexing makes smaller views: a number or a point index drops the axis; a block index or a slice
    of fixed length keeps it.

    Parameters
    ----------
    recorder : Recorder
        Recorder of the trace.
    name : str
        The tensor's name.
    dims : tuple of Dim
        Its dimensions.
    role : Role
        Input, output, both, or local to the kernel.
    entries : tuple of Entry or None
        Selection along each axis; None selects all.
    """

    _noun = "A tensor"
    _first = "load a tile of it by `tw.load_tile` and "

    __add__ = __radd__ = operator("+")
    __sub__ = __rsub__ = operator("-")
    __mul__ = __rmul__ = operator("*")
    __truediv__ = __rtruediv__ = operator("/")
    __matmul__ = operator("@")
    __neg__ = operator("-")

    def __init__(
        self,
        recorder: Recorder,
        name: str,
        dims: tuple[Dim, ...],
        role: Role,
        entries: tuple[Entry, ...] | None = None,
    ) -> None:
        self.recorder = recorder
        self.name = name
        self.dims = dims
        self.role = role
        self._entries = entries or tuple(Entry(Affine(), Axis(dim.size)) for dim in dims)

    @property
    def view(self) -> View:
        """The corresponding IR view."""
        return View(self.name, self._entries)

    @property
    def shape(self) -> tuple[int | Axis, ...]:
        """Sizes of the axes: numbers that have the names of dimensions, or blocks."""
        sizes: list[int | Axis] = []
        for entry, dim in self._kept():
            if entry == Entry(Affine(), Axis(dim.size)):
                sizes.append(DimSize(dim.name, dim.size))
            else:
                axis = entry.axis or Axis(1)
                sizes.append(axis.size if isinstance(axis.size, int) and axis.full else axis)
        return tuple(sizes)

    @property
    def dtype(self) -> Format:
        """Format of an element; of an output that declares none, known only after the trace."""
        if self.name in self.recorder.undecided:
            raise refusal(
                "format",
                f"Format of output `{self.name}` is not known yet: declare it in the signature, "
                f"`-> {self.name}[...]: bf16`",
                value=self.name,
            )
        return self.recorder.tensors[self.name].type.format

    def _kept(self) -> list[tuple[Entry, Dim]]:
        return [pair for pair in zip(self._entries, self.dims) if pair[0].axis is not None]

    def __getitem__(self, key: object) -> TensorView:
        keys = list(key) if isinstance(key, tuple) else [key]
        kept = self._kept()
        if len(keys) > len(kept):
            self._fail(f"has {len(kept)} axes and is indexed by {len(keys)}")
        entries = []
        for entry, dim in zip(self._entries, self.dims):
            if entry.axis is not None and keys:
                entry = self._index(entry, entry.axis, dim, keys.pop(0))
            entries.append(entry)
        return TensorView(self.recorder, self.name, self.dims, self.role, tuple(entries))

    def __setitem__(self, key: object, value: object) -> NoReturn:
        keys = list(key) if isinstance(key, tuple) else [key]
        keys += [slice(None)] * (len(self._kept()) - len(keys))
        part = f"{self.name}[{', '.join(map(_key_text, keys))}]"
        raise refusal(
            "operation",
            f"`{self.name}` is written by `tw.store_tile({part}, tile)`, not by an assignment",
            value=self.name,
        )

    def __iter__(self) -> NoReturn:
        self._fail("cannot be iterated over: use `tw.each` or `tw.metapipe`")

    def __len__(self) -> int:
        size = self.shape[0] if self.shape else 1
        if not isinstance(size, int):
            self._fail("has a block for its first axis, and no length")
        return size

    def __repr__(self) -> str:
        return str(self.view)

    def _fail(self, message: str) -> NoReturn:
        raise refusal("view", f"`{self.name}` {message}", value=self.name)

    def _index(self, entry: Entry, axis: Axis, dim: Dim, key: object) -> Entry:
        if isinstance(key, slice) and all(x is None for x in (key.start, key.stop, key.step)):
            return entry
        if not isinstance(axis.size, int) or not axis.full:
            self._fail(f"is already cut into blocks along {dim.name}")
        size = axis.size
        if isinstance(key, BlockIndex):
            if key.extent > size:
                self._fail(f"has {size} elements along {dim.name}, and its loop {key.extent}")
            return Entry(entry.start + Affine.of(key.traced_name), key.axis)
        if isinstance(key, slice):
            start, part = self._slice(key, size, dim)
            return Entry(entry.start + start, part)
        if isinstance(key, Tile):
            self._fail("cannot be indexed by a tile: rows by number take `tw.gather`")
        number = whole(key)
        if number is not None and -size <= number < 0:
            key = number + size
        form = as_affine(key)
        if form is None:
            self._fail(f"must be indexed by numbers, indices and slices, not {key!r}")
        self._check(form, 1, size, dim)
        return Entry(entry.start + form)

    def _slice(self, key: slice, size: int, dim: Dim) -> tuple[Affine, Axis]:
        if key.step not in (None, 1):
            self._fail(f"must be sliced in steps of 1, not {key.step!r}")
        if isinstance(key.stop, StopNumber):
            return self._moved_block(key, size, dim)
        ends = []
        for item, default in ((key.start, 0), (key.stop, size)):
            end = as_affine(default if item is None else item)
            if end is None:
                self._fail(f"must be sliced by numbers and sums of indices, not {item!r}")
            # Negative numbers count from the end, as everywhere in Python.
            ends.append(end + size if not end.terms and end.constant < 0 else end)
        length = ends[1] - ends[0]
        if length.terms or length.constant < 1:
            self._fail(
                f"must be sliced to a fixed number of elements, 1 or more, not {length}: for "
                "blocks of a loop use its index"
            )
        self._check(ends[0], length.constant, size, dim)
        return ends[0], Axis(length.constant)

    def _moved_block(self, key: slice, size: int, dim: Dim) -> tuple[Affine, Axis]:
        """A slice as long as a block, from its start and its stop with the same sum added."""
        start, ends = as_affine(key.start), key.stop.form.forms
        for symbol in start.symbols if start is not None else ():
            assert start is not None
            block = start + Affine.of(size_symbol(symbol))
            if block not in ends:
                continue
            low = start.bounds(self.recorder.ranges)
            highs = [end.bounds(self.recorder.ranges) for end in ends if end != block]
            last = min((high[1] for high in highs if high), default=None)
            reach = None if low is None or last is None else (low[0], last)
            self._require_inside(reach, start, size, dim)
            return start, Axis(size_symbol(symbol), tuple(e - start for e in ends if e != block))
        self._fail(
            f"must be sliced from a block's start to its stop, with the same number added to both, "
            f"not {key.start!r} to {key.stop!r}"
        )

    def _check(self, start: Affine, length: int, size: int, dim: Dim) -> None:
        bounds = start.bounds(self.recorder.ranges)
        self._require_inside(bounds and (bounds[0], bounds[1] + length), start, size, dim)

    def _require_inside(
        self, reach: tuple[int, int] | None, start: Affine, size: int, dim: Dim
    ) -> None:
        """Refuse a first element and an end that are not on the axis, or are not known."""
        if reach is None or reach[0] < 0 or reach[1] > size:
            read = f"{reach[0]} to {reach[1] - 1}" if reach else str(start)
            self._fail(f"has elements 0 to {size - 1} along {dim.name}, and is read at {read}")


def _key_text(key: object) -> str:
    if isinstance(key, slice):
        ends = ("" if end is None else str(end) for end in (key.start, key.stop))
        return ":".join(ends)
    return key.traced_name if isinstance(key, BlockIndex) else str(key)


def local(*dims: int, dtype: object, spill: bool = False) -> TensorView:
    """Make a tensor that is no argument of the kernel; called outside all loops.

    It is stored whole before the loop that loads it (docs/language.md, Local tensors).

    Parameters
    ----------
    dims : int
        Its sizes: numbers, or dimensions of tensors.
    dtype : format
        Format of an element.
    spill : bool
        Whether it may pass through memory. Otherwise its tiles stay on the chip.

    Raises
    ------
    ProgramError
        If it is made inside a loop, or a size, the format or `spill` is none.
    """
    recorder = current("local")
    if len(recorder.bodies) > 1:
        raise refusal(
            "loop",
            "`local` must be called outside all loops: give it the loop's dimension as an axis",
        )
    sizes = []
    for number, each in enumerate(dims):
        size = whole(each)
        if size is None or size < 1:
            raise refusal(
                "shape", f"`local` takes numbers of 1 or more, not {each!r}", value=repr(each)
            )
        sizes.append(Dim(each.name if isinstance(each, DimSize) else f"_{number}", size))
    if not sizes:
        raise refusal("shape", "`local` takes a size for each axis, not none")
    if not isinstance(spill, bool):
        raise refusal("operation", f"spill must be True or False, not {spill!r}", value=repr(spill))
    try:
        format_ = format_of(dtype)
    except BadInputError as error:
        raise refusal("format", f"`local`: {error}", value=str(dtype)) from error
    name = _unused(recorder, _assigned() or "local")
    space = Space.MEMORY if spill else Space.CHIP
    recorder.tensors[name] = Tensor(name, TensorType(tuple(sizes), format_, space, Role.LOCAL))
    return TensorView(recorder, name, tuple(sizes), Role.LOCAL)


def _assigned() -> str:
    """Variable that takes the result of the user's call; empty if no variable does."""
    frame = caller()
    later = (each for each in dis.get_instructions(frame.f_code) if each.offset > frame.f_lasti)
    following = next((each for each in later if each.opname != "CACHE"), None)
    stored = following is not None and following.opname == "STORE_FAST"
    return str(following.argval) if following is not None and stored else ""


def _unused(recorder: Recorder, stem: str) -> str:
    """Name of a further tensor: a variable's, with a number if it is taken."""
    name, number = stem, 1
    while name in recorder.tensors or name in recorder.undecided:
        number += 1
        name = f"{stem}.{number}"
    return name
