"""Main program of the command line: dispatch to a command, JSON report, exit code."""

import argparse
import contextlib
import importlib
import io
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from hw import __version__
from hw.arch.errors import BadInputError, TilewrightError
from sim.cli.envelope import envelope, write
from sim.cli.failures import as_refusal
from sim.cli.options import add_json
from sim.cli.own_files import require_not_named_again, require_own_files
from sim.cli.parser import Parser
from sim.files import require_writable
from sim.interrupt import interruptible

__all__ = ["COMMANDS", "main"]

#: Module of each sub-command, in the order that the help lists them.
COMMANDS = {
    "run": "sim.cli.commands.run",
    "compare": "sim.cli.commands.compare",
    "list": "sim.cli.commands.listing",
    "map": "sim.cli.commands.map",
    "verilog": "sim.cli.commands.verilog",
    "export": "sim.cli.commands.export",
    "area": "sim.cli.commands.area",
    "sweep": "sim.cli.commands.sweep",
    "bench": "sim.cli.commands.bench",
    "sim": "sim.cli.commands.sim",
    "prove": "sim.cli.commands.prove",
    "config": "sim.cli.commands.config",
    "doctor": "sim.cli.commands.doctor",
}

_INTERRUPTED = 130


def _parser() -> Parser:
    parser = Parser(
        prog="tilewright",
        description="Generate a dataflow accelerator, compile tile programs onto it, "
        "and check that the results of its RTL equal those of numpy bit by bit.",
        epilog="Exit codes: 0 verified, 1 wrong result, 2 bad input, 3 missing tool, 4 hang, "
        "5 device error, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"tilewright {__version__}")
    add_json(parser)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    for module in COMMANDS.values():
        importlib.import_module(module).add(subparsers)
    return parser


def _peek(argv: Sequence[str]) -> tuple[str | None, str | None]:
    """Command and report file, found before parsing: a refused command line has a report too."""
    target, rest = None, []
    words = iter(argv)
    for word in words:
        if word == "--json":
            target = "-"
            following = next(words, "--")
            if following == "-" or not following.startswith("-"):
                target = following
        elif word.startswith("--json="):
            target = word.partition("=")[2]
        elif not word.startswith("-"):
            rest.append(word)
    return (rest[0] if rest and rest[0] in COMMANDS else None), target


@contextlib.contextmanager
def _standard_output_to_error() -> Iterator[None]:
    """Context manager: redirect standard output to standard error, including subprocesses."""
    sys.stdout.flush()
    with contextlib.ExitStack() as stack:
        # Programs that we start, and C code, write to the descriptor and not to sys.stdout.
        with contextlib.suppress(OSError, io.UnsupportedOperation):
            error = sys.stderr.fileno()
            saved = os.dup(1)
            stack.callback(os.close, saved)
            stack.callback(os.dup2, saved, 1)
            os.dup2(error, 1)
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield


def _run(argv: Sequence[str]) -> dict[str, Any]:
    parser = _parser()
    args: argparse.Namespace = parser.parse_args(argv)
    if args.command is None:
        parser.error("COMMAND must be given")
    require_own_files(args)
    result = importlib.import_module(COMMANDS[args.command]).execute(args)
    return dict(result)


def _failure(error: BaseException) -> dict[str, Any]:
    """The ``error`` object of the report for an exception."""
    refusal = as_refusal(error)
    if refusal is not None:
        # A name may hold line breaks.
        return refusal.record() | {"message": " ".join(refusal.message.splitlines())}
    known = isinstance(error, KeyboardInterrupt)
    return {
        "code": _INTERRUPTED if known else 1,
        "kind": "interrupted" if known else "internal",
        "message": "interrupted"
        if known
        else f"internal fault: {type(error).__name__}: {error}; --debug shows where",
        "where": None,
        "value": None,
        "rule": None,
    }


def _close_standard_output() -> None:
    """Discard the buffered output after its reader has closed the pipe."""
    with contextlib.suppress(OSError, io.UnsupportedOperation):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _of_standard_output(error: BaseException) -> BaseException:
    """Convert an OSError of standard output to a BadInputError; return other errors unchanged.

    Errors of other files have a file name.
    """
    if not isinstance(error, OSError) or error.filename is not None:
        return error
    _close_standard_output()
    return BadInputError(
        f"standard output, or a temporary file, must have room: {error.strerror}",
        kind="unwritable-file",
        where="standard output",
    )


def _say(name: str, message: str) -> None:
    """Print one line to standard error, if that is open."""
    with contextlib.suppress(OSError):
        print(f"{name}: {message}", file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (by default the process's) and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    command, target = _peek(words)
    name = f"tilewright {command}" if command else "tilewright"
    result: dict[str, Any] = {}
    failure: dict[str, Any] | None = None
    try:
        with _standard_output_to_error() if target == "-" else contextlib.nullcontext():
            if target is not None and target != "-":
                require_writable(target, where="--json")
                require_not_named_again(target, words)
            with interruptible():
                result = _run(words)
            sys.stdout.flush()
    except BrokenPipeError:
        _close_standard_output()
        return _INTERRUPTED
    except (Exception, KeyboardInterrupt) as caught:
        error = _of_standard_output(caught)
        failure = _failure(error)
        result = error.result if isinstance(error, TilewrightError) else {}
        if "--debug" in words:
            traceback.print_exc()
        _say(name, failure["message"])
    if target is not None and (failure is None or failure["where"] != "--json"):
        report = envelope(command, result, failure)
        try:
            write(report, target)
        except BrokenPipeError:
            _close_standard_output()
            return _INTERRUPTED
        except OSError as error:
            if failure is None:
                _say(name, f"cannot write {target}: {error.strerror}")
            if target == "-":
                _close_standard_output()
            return BadInputError.code if failure is None else int(failure["code"])
    return 0 if failure is None else int(failure["code"])
