"""Kernels: traced functions with a signature and a float64 reference."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from hw.arch.errors import BadInputError
from sw.actions import register, registered
from sw.ir.format_rules import Format, format_of, fp32, rounded, takes_constant
from sw.ir.nodes import Full, Store
from sw.ir.program import Program
from sw.ir.rewrite import walk
from sw.ir.types import Dim, Role, Space, Span, Tensor, TensorType, TileType
from sw.language.bind import Bound, bind_arrays
from sw.language.float64_reference import Reference
from sw.language.program_error import ProgramError, caller_span, near_misses
from sw.language.recording_to_ir import make_program
from sw.language.schedule import Schedule
from sw.language.signature import Argument, Signature, parse_signature
from sw.language.tensor import TensorView
from sw.language.tile_value import whole
from sw.language.trace import Recorder
from sw.results import KernelProgram, RunResult
from sw.tuned import Tuning

__all__ = ["Kernel", "kernel", "register"]


class Kernel:
    """A tile program: a function with a signature.

    A call returns the golden arrays. :func:`kernel` makes kernels.

    Parameters
    ----------
    signature : Signature
        Its tensors.
    function : function
        The traced function; its parameters are the tensors by name, then options.
    span : Span
        Source position of its definition.
    sizes : mapping of str to int
        Default sizes of some dimensions, for commands that are given none.
    """

    def __init__(
        self,
        signature: Signature,
        function: Callable[..., None],
        span: Span,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self.signature = signature
        self.function = function
        self.name = function.__name__
        self.reference = Reference(self.name)
        self.__doc__ = function.__doc__
        self._span = span
        self.options = MappingProxyType(self._options())
        self.sizes = MappingProxyType(self._default_sizes(sizes or {}))

    def _options(self) -> dict[str, Any]:
        """Options: the parameters with a default. All other parameters must be tensors."""
        tensors = [each.name for each in self.signature.arguments]
        options: dict[str, Any] = {}
        for name, each in inspect.signature(self.function).parameters.items():
            if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY):
                raise self._error("signature", f"Parameter `{name}` must have a name", name)
            if each.default is not each.empty:
                if name in tensors or name in self.signature.dims:
                    raise self._error(
                        "signature",
                        f"Option `{name}` must not have the name of a tensor or a dimension",
                        name,
                    )
                options[name] = each.default
            elif name in tensors:
                tensors.remove(name)
            else:
                known = near_misses(name, tensors, "tensors left")
                raise self._error(
                    "signature",
                    f"Parameter `{name}` must be a tensor of the signature or have a default; "
                    f"{known}",
                    name,
                )
        if tensors:
            raise self._error(
                "signature",
                f"Tensor `{tensors[0]}` of the signature must be a parameter of `{self.name}`",
                tensors[0],
            )
        return options

    def _default_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        for name, size in sizes.items():
            if name not in self.signature.dims:
                known = near_misses(name, self.signature.dims, "dimensions")
                raise self._error(
                    "signature", f"Size `{name}` must be of a dimension; {known}", name
                )
            if whole(size) is None or size < 1:
                rule = f"Size `{name}` must be a whole number of 1 or more, not {size!r}"
                raise self._error("signature", rule, repr(size))
        return dict(sizes)

    def _error(self, kind: str, message: str, value: str = "") -> ProgramError:
        return ProgramError(kind, message, self._span, value=value)

    def trace(
        self,
        *,
        dtype: object = None,
        out: object = None,
        **values: Any,
    ) -> Program:
        """Trace the program for given sizes and formats.

        Parameters
        ----------
        dtype : Format, or mapping of str to Format
            Format of the inputs that declare none, or of each by name.
        out : Format, or mapping of str to Format, or None
            Format of the outputs that declare none. None selects the format stored, except that
            fp32 is rounded to the format of the first float input, to bf16 if that has 8 bits.
        values : int or option
            Size of each dimension, and options.

        Raises
        ------
        ProgramError
            If a size, format or option is missing or wrong, or the program breaks a rule.
        """
        sizes = self._sizes(values)
        options = {name: value for name, value in values.items() if name not in sizes}
        for name in options:
            if name not in self.options:
                known = near_misses(name, (*self.signature.dims, *self.options), "parameters")
                raise ProgramError(
                    "argument",
                    f"`{self.name}` has no parameter `{name}`; {known}",
                    None,
                    value=name,
                )
        recorder = Recorder(self.name, self.function.__code__)
        views: dict[str, TensorView] = {}
        floats: list[Format] = []
        for each in self.signature.arguments:
            dims = _dims(each, sizes)
            views[each.name] = TensorView(recorder, each.name, dims, each.role)
            declared = each.format or _chosen(out if each.role is Role.OUT else dtype, each.name)
            if declared is not None:
                recorder.tensors[each.name] = _tensor(each, dims, declared)
                if each.role is not Role.OUT and declared.is_float:
                    floats.append(declared)
            elif each.role is Role.OUT:
                recorder.undecided[each.name] = _Decision(each, dims, tuple(floats))
            else:
                raise ProgramError(
                    "argument",
                    f"Input `{each.name}` of `{self.name}` must have a format: give `dtype`",
                    None,
                )
        with recorder.active():
            returned = self.function(**views, **options)
        if returned is not None:
            raise self._error("output", f"Kernel `{self.name}` must store tiles and return nothing")
        program = make_program(recorder)
        decided = {name: self._decide(program, name, recorder) for name in recorder.undecided}
        formats = recorder.tensors | decided
        arguments = tuple(formats[each.name] for each in self.signature.arguments)
        local = (each for each in recorder.tensors.values() if each.type.role is Role.LOCAL)
        return replace(program, tensors=(*arguments, *local))

    def _decide(self, program: Program, name: str, recorder: Recorder) -> Tensor:
        """Fix an output's format: the one that all its stores agree on.

        Constants agree with any that holds numbers of theirs.
        """
        nodes = list(walk(program.nodes))
        constants = {each.result.name for each in nodes if isinstance(each, Full)}
        every = [each for each in nodes if isinstance(each, Store) and each.view.tensor == name]
        every.sort(key=lambda each: each.values[0].name in constants)
        if not every:
            raise self._error("output", f"Output `{name}` of `{self.name}` is never stored", name)
        formats = [_stored(each) for each in every]
        found = recorder.undecided[name](formats[0])
        for node, format_ in zip(every, formats, strict=True):
            constant = node.values[0].name in constants
            agrees = constant and takes_constant(format_, found.type.format)
            if not agrees and recorder.undecided[name](format_) != found:
                raise ProgramError(
                    "format",
                    f"Output `{name}` must be stored in one format, or declare its own",
                    node.span,
                    value=name,
                )
        return found

    def _sizes(self, values: Mapping[str, Any]) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for name in self.signature.dims:
            if name not in values:
                raise ProgramError(
                    "argument",
                    f"Dimension `{name}` of `{self.name}` must have a size: give `{name}=`",
                    None,
                    value=name,
                )
            number = whole(values[name])
            if number is None or number < 1:
                raise ProgramError(
                    "argument",
                    f"Dimension `{name}` must be a whole number of 1 or more, not {values[name]!r}",
                    None,
                    value=repr(values[name]),
                )
            sizes[name] = number
        return sizes

    def bind(self, *arrays: npt.ArrayLike, **named: npt.ArrayLike) -> Bound:
        """Check arrays against the signature, and return them with their sizes and formats.

        Parameters
        ----------
        arrays, named : array
            Inputs, including those updated in place, in the signature's order or by name.

        Raises
        ------
        ProgramError
            If arrays are missing, of the wrong rank or format, or disagree in a dimension.
        """
        return bind_arrays(self.name, self.signature, arrays, named)

    def _act(self, action: str) -> Callable[..., Any]:
        function = registered(action)
        if function is None:
            raise ProgramError(
                "argument", f"`{self.name}` cannot {action} before `import tilewright`", None
            )
        return function

    def __call__(self, *arrays: npt.ArrayLike, **options: Any) -> Any:
        """Return the golden outputs: one array, or a tuple of several."""
        return self._act("call")(self, *arrays, **options)

    def run(
        self,
        *arrays: npt.ArrayLike,
        config: Any = "small",
        schedule: Schedule | None = None,
        backend: str = "rtl",
        **options: Any,
    ) -> RunResult:
        """Compile and run the kernel; returns outputs and figures.

        Parameters
        ----------
        arrays : array
            Inputs in the signature's order.
        config : str or configuration
            The chip.
        schedule : Schedule or None
            Choices that override the program's.
        backend : str
            ``rtl``, ``cocotb``, ``emulator`` or ``golden``.
        options
            Options of the kernel and of the back end.
        """
        action = self._act("run")
        result: RunResult = action(
            self, *arrays, config=config, schedule=schedule, backend=backend, **options
        )
        return result

    def compile(
        self, config: Any = "small", *, schedule: Schedule | None = None, **values: Any
    ) -> KernelProgram:
        """Compile the kernel for a configuration.

        Parameters
        ----------
        config : str or configuration
            The chip.
        schedule : Schedule or None
            Choices that override the program's.
        values
            As of :meth:`trace`.
        """
        program: KernelProgram = self._act("compile")(self, config, schedule=schedule, **values)
        return program

    def tune(self, config: Any = "small", **options: Any) -> Tuning:
        """Find a faster schedule for a configuration; never slower than the compiler's own.

        Parameters
        ----------
        config : str or configuration
            The chip.
        options
            As of :meth:`compile`; ``trials``, the most schedules to compile (40), ``measured``, how
            many of them to run (3), and ``backend``, ``rtl`` or ``emulator``.
        """
        tuning: Tuning = self._act("tune")(self, config, **options)
        return tuning

    def __repr__(self) -> str:
        return f"<kernel {self.name}: {self.signature.text}>"


def kernel(
    signature: str, *, sizes: Mapping[str, int] | None = None
) -> Callable[[Callable[..., None]], Kernel]:
    """Decorator that makes a kernel of a function.

    Parameters
    ----------
    signature : str
        Inputs and outputs: ``"A[M, K], B[K, N] -> C[M, N]: bf16"``. A name on both sides is updated
        in place.
    sizes : mapping of str to int
        Default sizes of some dimensions, for commands that are given none.

    Raises
    ------
    ProgramError
        If the signature is malformed or does not match the function's parameters.
    """
    span = caller_span()
    if not isinstance(signature, str):
        raise ProgramError(
            "signature",
            'Signature must be text, as in `@tw.kernel("A[M, K] -> C[M]")`, not '
            f"{type(signature).__name__}",
            span,
        )
    parsed = parse_signature(signature, span)

    def made(function: Callable[..., None]) -> Kernel:
        if not inspect.isfunction(function):
            name = type(function).__name__
            raise ProgramError("signature", f"Kernel must be a function, not {name}", span)
        return Kernel(parsed, function, span, sizes)

    return made


def _stored(node: Store) -> Format:
    stored = node.values[0].type
    assert isinstance(stored, TileType)
    return stored.format


def _dims(argument: Argument, sizes: Mapping[str, int]) -> tuple[Dim, ...]:
    return tuple(
        Dim(each, sizes[each]) if isinstance(each, str) else Dim(f"_{number}", each)
        for number, each in enumerate(argument.dims)
    )


def _tensor(argument: Argument, dims: tuple[Dim, ...], format_: Format) -> Tensor:
    return Tensor(argument.name, TensorType(dims, format_, Space.MEMORY, argument.role))


@dataclass(frozen=True)
class _Decision:
    """Inference of the format of an output that declares none, from its stores and float inputs."""

    argument: Argument
    dims: tuple[Dim, ...]
    floats: tuple[Format, ...]

    def __call__(self, stored: Format) -> Tensor:
        format_ = rounded(self.floats[0]) if stored == fp32 and self.floats else stored
        return _tensor(self.argument, self.dims, format_)


def _chosen(choice: object, name: str) -> Format | None:
    """Format of one tensor under a choice for all tensors or by name."""
    if isinstance(choice, Mapping):
        choice = choice.get(name)
    if choice is None:
        return None
    try:
        return format_of(choice)
    except BadInputError as error:
        raise ProgramError("format", f"`{name}`: {error}", None, value=str(choice)) from error
