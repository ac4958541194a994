"""Trace recorder, which the operations call while the Python function runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import Any

from sw.ir.affine import Bound
from sw.ir.format_rules import Format
from sw.ir.infer import RuleError, fits_start, infer
from sw.ir.nodes import Loop, Node, Operand, Value
from sw.ir.types import Span, Tensor, TileType, Type
from sw.language.loop_alignment import Carry, MismatchError, align, describe
from sw.language.loop_passes import OpenLoop, Recording
from sw.language.program_error import ProgramError, caller, caller_span, code_span, integer_product
from sw.language.state import changed, own_attribute

__all__ = ["Recorder", "current", "refusal"]

_CURRENT: ContextVar[Recorder | None] = ContextVar("recorder", default=None)
_SYMBOL = re.compile(r"(\|?)(\?\d+(?:\.\d+)*)(\|?)")
_WORD = re.compile(r"\W")


def current(name: str) -> Recorder:
    """Return the recorder of the kernel that is being traced.

    Raises
    ------
    ProgramError
        If no kernel is being traced.
    """
    recorder = _CURRENT.get()
    if recorder is None:
        raise ProgramError(
            "operation", f"`{name}` must be called inside a kernel", caller_span(), value=name
        )
    return recorder


def refusal(kind: str, message: str, *, value: str = "") -> ProgramError:
    """Make an error at the user's line; symbols in the message are replaced by variable names."""
    recorder = _CURRENT.get()
    if recorder is None:
        return ProgramError(kind, message, caller_span(), value=value)
    return recorder.error(kind, message, caller_span(), value=value)


class Recorder:
    """Records the operations of one trace.

    Parameters
    ----------
    name : str
        Name of the kernel.
    code : CodeType
        Code of the kernel, whose locals are named without the function's name.
    """

    def __init__(self, name: str, code: CodeType) -> None:
        self.name = name
        self.tensors: dict[str, Tensor] = {}
        self.undecided: dict[str, Callable[[Format], Tensor]] = {}
        #: Constants that no format is given for.
        self.untyped: set[str] = set()
        self.root = Recording()
        self.variables: dict[str, str] = {}
        self.sizes: dict[str, int | None] = {}
        self._code = code
        self._stack = [self.root]
        self._home: dict[str, Recording] = {}
        self._results: dict[str, Value] = {}
        self._exit: ProgramError | None = None
        #: The stage of a ring that is being recorded; bodies outside it, and nodes before it.
        self.stage: str | None = None
        self.stage_start = 0, 0
        self.at_end: list[Callable[[], None]] = []

    @property
    def bodies(self) -> tuple[Recording, ...]:
        """Bodies that are being recorded, outermost first."""
        return tuple(self._stack)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Context manager that makes it the recorder of all operations."""
        token = _CURRENT.set(self)
        try:
            yield
            self.check_exit()
            for require in self.at_end:
                require()
        finally:
            _CURRENT.reset(token)

    def expect_store(self, name: str, stored: Format) -> None:
        """Defer the format of an output that declares none.

        The format is decided after the trace: in a first pass a carried tile may still have a
        narrower format than in the second.
        """
        if name in self.undecided:
            self.tensors[name] = self.undecided[name](stored)

    # Values.

    def fresh(self, type_: Type) -> Value:
        """Make a value; its name is final only after the trace."""
        return Value(str(len(self._home) + 1), type_)

    def adopt(self, value: Value) -> Value:
        """Register a value as defined in the body that is being recorded."""
        self._home[value.name] = self._stack[-1]
        return value

    @property
    def _final(self) -> bool:
        """Whether the current recording may be kept: no open loop is in its first pass."""
        return all(each.loop is None or each.number > 1 for each in self._stack)

    def use(self, value: Value, span: Span) -> Value:
        """Return the value's representative here: for the last tile of a carrying loop, its result.

        Raises
        ------
        ProgramError
            If the value was made in a loop that has ended.
        """
        while value.name in self._results:
            value = self._results[value.name]
        home = self._home[value.name]
        if not self._visible(home) and home.loop is not None:
            loop = home.loop
            raise self.error(
                "scope",
                f"{self.quote(value)} was made inside the loop over `{loop.symbol}` "
                f"(line {loop.span.line}) and is read after it: only a tile that the loop carries "
                "outlives it",
                span,
                value=self.variables.get(value.name, ""),
            )
        return value

    def _visible(self, home: Recording) -> bool:
        """Whether tiles of a recording can be read here: of an open body, or an earlier pass."""
        return any(home in (body, *(body.loop.passes if body.loop else ())) for body in self._stack)

    def record(self, kind: type[Node], *operands: Operand, **attributes: Any) -> tuple[Value, ...]:
        """Record a node, and return its results.

        Raises
        ------
        ProgramError
            If its operands violate a rule.
        """
        frame = caller()
        span = code_span(frame.f_code, frame.f_lasti)
        self.check_exit()
        self.learn_names(frame)
        taken = tuple(self.use(x, span) if isinstance(x, Value) else x for x in operands)
        node = kind(taken, (), span, **attributes)
        try:
            types = infer(node, self.tensors, strict=self._final)
        except RuleError as error:
            made = (each for body in self._stack for each in body.nodes)
            hint = integer_product(node, made) if error.kind == "format" else ""
            raise self.error(error.kind, f"{error}{hint}", span) from error
        results = []
        for type_ in types:
            results.append(self.adopt(self.fresh(type_)))
        self._stack[-1].nodes.append(node.replace(results=tuple(results)))
        return tuple(results)

    def _held(self, name: str) -> str | None:
        """Name of what a recorded tile stands for here, or None if it cannot be read here."""
        while name in self._results:
            name = self._results[name].name
        home = self._home.get(name)
        return name if home is None or self._visible(home) else None

    # Names.

    def learn_names(self, frame: FrameType) -> None:
        """Name unnamed values and indices by the locals of a frame."""
        prefix = "" if frame.f_code is self._code else f"{_WORD.sub('', frame.f_code.co_name)}."
        for variable, thing in frame.f_locals.items():
            name = own_attribute(thing, "traced_name")
            if name is not None and thing.recorder is self and name not in self.variables:
                self.variables[name] = prefix + variable

    def quote(self, value: Operand) -> str:
        """Return the name of a value in messages."""
        if not isinstance(value, Value):
            return f"`{value}`"
        variable = self.variables.get(value.name)
        return f"`{variable}`" if variable else "a tile"

    def _readable(self, message: str) -> str:
        def name(match: re.Match[str]) -> str:
            bar, symbol, _ = match.groups()
            variable = self.variables.get(symbol, "index")
            size = self.sizes.get(symbol)
            text = f"{bar}{variable}{bar}"
            return f"{text}={size}" if bar and size is not None else text

        return _SYMBOL.sub(name, message)

    def error(self, kind: str, message: str, span: Span | None, *, value: str = "") -> ProgramError:
        """Make an error; symbols in the message are replaced by variable names.

        In the second pass over a body, the message names the numbers that differ from the first
        pass, as a possible cause.
        """
        message = self._readable(message)
        for recording in self._stack:
            loop = recording.loop
            if recording.number == 2 and loop is not None:
                moved = changed(loop.states[0], loop.states[1])
                for name, (was, now) in moved.items():
                    message += f"; `{name}` was {was} in the first iteration and is {now} now"
        return ProgramError(kind, message, span, value=value)

    # Loops.

    @property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """Ranges of the indices of all open loops."""
        loops = (each.loop for each in self._stack if each.loop is not None)
        return {loop.symbol: (0, loop.extent - 1) for loop in loops}

    def open_loop(
        self, mode: str, extent: int, tile: int | None, until: Bound | None, span: Span
    ) -> OpenLoop:
        """Open a loop inside the body that is being recorded."""
        self.check_exit()
        parent = self._stack[-1]
        symbol = f"{parent.symbol}{parent.loops}"
        parent.loops += 1
        self.sizes[symbol] = tile
        return OpenLoop(mode, extent, tile, until, span, symbol)

    def begin_pass(self, loop: OpenLoop, frame: FrameType) -> None:
        """Begin the recording of a pass over the body."""
        self._stack.append(loop.begin(frame))

    def end_pass(self, loop: OpenLoop, frame: FrameType) -> None:
        """End a pass; after the last, align all and record the loop."""
        self.check_exit()
        if self._stack[-1].loop is not loop:
            raise self.error("loop", "Loops must end in the order they were begun", loop.span)
        self.learn_names(frame)
        loop.end(frame, self._held)
        self._stack.pop()
        if loop.ended:
            self._close(loop)
            loop.frame = None

    def leave(self, loop: OpenLoop, frame: FrameType) -> None:
        """Note that a loop was left early, for the next operation to report."""
        if self._exit is None:
            span = code_span(frame.f_code, frame.f_lasti)
            self._exit = ProgramError(
                "exit",
                self._readable(
                    f"Loop over `{loop.symbol}` must not be left by `break` or `return`: its body "
                    "is recorded once for all iterations"
                ),
                span,
            )

    def check_exit(self) -> None:
        """Raise the error of a loop that was left early, if any."""
        if self._exit is not None:
            raise self._exit

    def _close(self, loop: OpenLoop) -> None:
        try:
            recorded = [each.nodes for each in loop.passes]
            aligned = align(recorded, lambda kind: self.adopt(self.fresh(kind)), loop.span)
        except MismatchError as error:
            raise (loop.state_error() or self._mismatch(loop, error)) from error
        if (state := loop.state_error()) is not None:
            raise state
        results: list[Value] = []
        for each in aligned.carries:
            self._check_carry(loop, each, aligned.nodes)
            result = self.adopt(self.fresh(each.entry.type))
            if each.made.name in self._results and (loop.until is not None or each.lag > 1):
                raise self.error(
                    "carry",
                    f"{self.quote(each.made)} ends the loop for two tiles that start differently,"
                    " and the loop may end before it is made: give each its own",
                    loop.span,
                )
            self._results.setdefault(each.made.name, result)
            variable = self.variables.get(each.start.name) or self.variables.get(each.made.name)
            if variable:
                self.variables.update({each.entry.name: variable, result.name: variable})
            results.append(result)
        self._stack[-1].nodes.append(
            Loop(
                operands=tuple(each.start for each in aligned.carries),
                results=tuple(results),
                span=loop.span,
                mode=loop.mode,
                index=loop.symbol,
                extent=loop.extent,
                tile=loop.tile,
                until=loop.until,
                carries=tuple(each.entry for each in aligned.carries),
                nodes=aligned.nodes,
                nexts=tuple(each.next for each in aligned.carries),
            )
        )

    def _check_carry(self, loop: OpenLoop, carry: Carry, nodes: Sequence[Node]) -> None:
        made = (node.span for node in nodes if carry.made in node.results)
        span = next(made, None) or loop.span
        kinds = (carry.start.type, carry.first.type, carry.next.type)
        name = self.quote(carry.made)
        before, after, later = (kind for kind in kinds if isinstance(kind, TileType))
        if not before.same_shape(after) or not after.same_shape(later):
            raise self.error(
                "carry", f"Carried tile {name} must keep its shape: {before} becomes {after}", span
            )
        if after != later or not fits_start(before, after):
            became = after if after != before else later
            raise self.error(
                "carry",
                f"Carried tile {name} must start in the format it goes on in: it starts in "
                f"{before.format.name} and goes on in {became.format.name}",
                span,
            )

    def _mismatch(self, loop: OpenLoop, error: MismatchError) -> ProgramError:
        node = error.second or error.first
        span = (node.span if node is not None else None) or loop.span
        names = ""
        if error.operands:
            names = f" ({', then '.join(self.quote(each) for each in error.operands)})"
        why = "".join(
            f"; `{name}` was {was} in the first and is {now} in the second"
            for name, (was, now) in changed(loop.states[0], loop.states[1]).items()
        )
        kind, message = describe(error, names)
        return ProgramError(kind, self._readable(message + why), span)
