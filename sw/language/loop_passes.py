"""Passes over a loop's body: what is recorded in each, and when there are enough of them.

Two passes are enough unless tiles move between names, as in ``x1, x2 = x, x1``: then a name holds
a tile from before the loop for more than one pass. So passes are recorded until the names hold at
the end of a pass what they held at the end of the pass before, each tile counted from the pass
that made it. All later iterations are then as the last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType

from sw.ir.affine import Bound
from sw.ir.nodes import Node
from sw.ir.types import Span
from sw.language.loop_alignment import made_by
from sw.language.program_error import ProgramError
from sw.language.state import Snapshot, changed, first_use, snapshot, tiles

__all__ = ["OpenLoop", "Recording"]


@dataclass(eq=False)
class Recording:
    """Nodes recorded in one pass over a body; the outermost recording is the program."""

    loop: OpenLoop | None = None
    number: int = 1
    nodes: list[Node] = field(default_factory=list)
    loops: int = 0

    @property
    def symbol(self) -> str:
        """Symbol prefix of nested loops: by position, so that all passes agree."""
        return self.loop.symbol + "." if self.loop else "?"


@dataclass(eq=False)
class OpenLoop:
    """A loop whose body is being traced.

    ``states`` and ``tiles`` are what names hold: numbers and tiles, before the first pass and
    after each.
    """

    mode: str
    extent: int
    tile: int | None
    until: Bound | None
    span: Span
    symbol: str
    frame: FrameType | None = None
    offset: int = 0
    passes: list[Recording] = field(default_factory=list)
    states: list[Snapshot] = field(default_factory=list)
    tiles: list[dict[str, object]] = field(default_factory=list)

    def begin(self, frame: FrameType) -> Recording:
        """Begin a pass that runs in a frame."""
        if not self.passes:
            self.frame, self.offset = frame, frame.f_lasti
            self.states.append(snapshot(frame))
            self.tiles.append(dict(tiles(frame)))
        self.passes.append(Recording(self, len(self.passes) + 1))
        return self.passes[-1]

    def end(self, frame: FrameType, outside: Callable[[str], str | None]) -> None:
        """End a pass.

        Parameters
        ----------
        frame : FrameType
        outside : function
            Gives the name of what a recorded name stands for now, or None for a tile that cannot
            be read any more.
        """
        self.states.append(snapshot(frame))
        made = {
            value.name: (len(self.passes) - each.number, place)
            for each in self.passes
            for place, value in enumerate(made_by(each.nodes))
        }
        held = {place: outside(name) for place, name in tiles(frame).items()}
        self.tiles.append({place: made.get(name or "", name) for place, name in held.items()})

    @property
    def ended(self) -> bool:
        """Whether all later iterations are as those that are recorded.

        Tiles that only change places, as in ``a, b = b, a``, or that are kept, as in a list of an
        object, never come to rest: after as many passes as the first has left tiles, what the body
        reads of them has been read.
        """
        count = len(self.passes)
        return count >= 2 and (
            bool(self.moved) or self.tiles[-1] == self.tiles[-2] or count > len(self.tiles[1]) + 1
        )

    @property
    def moved(self) -> dict[str, tuple[str, str]]:
        """Numbers that differ between the ends of the last two passes, by name."""
        return changed(*self.states[-2:]) if len(self.passes) > 1 else {}

    def state_error(self) -> ProgramError | None:
        """Error of a number that changes from iteration to iteration, if there is one."""
        if not self.moved or self.frame is None:
            return None
        name, (was, now) = next(iter(self.moved.items()))
        return ProgramError(
            "state",
            f"`{name}` changes from iteration to iteration ({was}, then {now}): only tiles are "
            "carried; compute numbers from the loop's index",
            first_use(self.frame.f_code, self.offset, name),
            value=name,
        )
