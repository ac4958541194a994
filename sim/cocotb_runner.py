"""Runner of cocotb testbenches of blocks, on Verilator or Icarus."""

import contextlib
import dataclasses
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
from gen.tools import require_programs
from gen.verilog import Design, emit
from hw.emit.shared import Shareable
from sim.cache import cached
from sim.cocotb_model import build_model
from sim.files import write_whole
from sim.native.build import require_build_tools
from sim.progress import Progress

__all__ = ["SIMULATORS", "BenchResult", "bench_names", "port_names", "run_bench"]

#: Simulators that run testbenches.
SIMULATORS = ("verilator", "icarus")

#: Outputs of a run are kept here, below the working directory.
_OUTPUT = Path("build") / "sim"
_ICARUS_PROGRAM = "sim.vvp"
# The emitted text is plain Verilog; this overrides the runner's default.
_ICARUS_FLAGS = ("-g2005",)

# A testbench limits its simulated time; this limit ends a simulator that hangs.
_LIMIT_SECONDS = 1800


class _Bench(Protocol):
    """Interface of a testbench module in `sim.tb`."""

    def design(self) -> Shareable:
        """The component under test."""


class _BuildError(Exception):
    """Failed build of a model, with reason and tool output."""

    def __init__(self, reason: str, printed: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.printed = printed


class _Started(Runner):
    """cocotb runner with a time limit and without terminal input."""

    def _set_env_common(self) -> None:
        super()._set_env_common()
        # The flags of a make that runs this process must not reach the make of the model.
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
    """Runner of Verilator executables, which `sim.cocotb_model` builds."""


class _Icarus(_Started, Icarus):
    """Runner of Icarus, with VCD waveforms, that stops at the first failed check."""

    def _test_command(self) -> list[list[str]]:
        (command,) = super()._test_command()
        program, *words = ("-vcd" if word == "-fst" else word for word in command)
        # A failed check stops the simulation; with this it exits with an error.
        return [[program, "-N", *words]]


@dataclasses.dataclass(frozen=True)
class BenchResult:
    """Result of the testbench of one block.

    Members
    -------
    block, simulator, seed
        Identification of the run.
    tests, passed, failed : int
        Tests run; a failed build or a crashed simulator counts as one failed test.
    seconds, build_seconds : float
        Time of the simulation, and of emission and build.
    cache_hit : bool
        Whether the model came from the cache.
    failures : tuple of str
        One line per failed test.
    log : Path
        Output of the simulator.
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
        """Command that repeats the run."""
        chosen = "" if self.simulator == SIMULATORS[0] else f" --simulator {self.simulator}"
        return f"tilewright sim {self.block} --seed {self.seed}{chosen}"


def bench_names() -> list[str]:
    """Names of the blocks that have a testbench."""
    folders = map(Path, sim.tb.__path__)
    return sorted(path.stem for folder in folders for path in folder.glob("[!_]*.py"))


def port_names(component: Shareable) -> list[str]:
    """Names of the top-level ports in the emitted Verilog; zero-width ports are absent."""
    names = ["clk", "rst"]
    for path, _, value in component.signature.flatten(component):
        if len(Value.cast(value)):
            names.append("__".join(map(str, path)))
    return names


def _make_runner(simulator: str) -> Runner:
    if simulator == "verilator":
        require_build_tools()
        return _Verilator()
    require_programs("iverilog", "vvp", where=f"--simulator {simulator}")
    return _Icarus()


def _build_icarus(
    runner: Runner, design: Design, *, waves: bool, use_cache: bool, progress: Progress
) -> tuple[Path, bool]:
    """Folder of the Icarus executable of a design, and whether it was a cache hit."""

    def make(work: Path) -> None:
        (work / "design.v").write_text(design.text)
        log = work / "build.log"
        try:
            with progress.step(f"Icarus: {design.top}"):
                runner.build(
                    sources=[work / "design.v"],
                    hdl_toplevel=design.top,
                    build_args=_ICARUS_FLAGS,
                    build_dir=work / "obj",
                    timescale=("1ns", "1ps"),
                    waves=waves,
                    log_file=log,
                )
        except RuntimeError as error:
            raise _BuildError(f"build: {error}", log.read_text(errors="replace")) from None
        os.replace(work / "obj" / _ICARUS_PROGRAM, work / _ICARUS_PROGRAM)
        shutil.rmtree(work / "obj")

    return cached(
        "cocotb",
        [cocotb_version, design.text, *_ICARUS_FLAGS, str(waves)],
        _ICARUS_PROGRAM,
        make,
        name=design.top,
        use_cache=use_cache,
        progress=progress,
    )


def _program_of(
    runner: Runner,
    design: Design,
    ports: Sequence[str],
    *,
    waves: bool,
    use_cache: bool,
    progress: Progress,
) -> tuple[Path, bool]:
    """Folder of the executable of a design, and whether it was a cache hit."""
    if not isinstance(runner, Verilator):
        return _build_icarus(runner, design, waves=waves, use_cache=use_cache, progress=progress)
    try:
        return build_model(design, ports, waves=waves, use_cache=use_cache, progress=progress)
    except RuntimeError as error:
        reason = str(error).partition(":")[0]
        raise _BuildError(f"build: {reason}", str(error)) from None


def _tests_of(results: Path) -> tuple[int, list[str]]:
    """Number of tests run, and one line per failed test."""
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
    """Run the executable; returns tests run, one line per failed test, and the log."""
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
            # cocotb's runner exits this way when it runs under pytest.
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
    progress: Progress | None = None,
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
        VCD file for waveforms.
    component, design : Shareable, Design
        Unit under test instead of the testbench's own, or its Verilog; `environment` then tells
        the testbench its parameters.
    program : Path
        Folder with the design's Verilator executable, instead of a build.
    environment : mapping of str to str
        Additional environment variables of the simulator.
    use_cache : bool
        Whether a cached build of the same content may be used.
    progress : Progress, optional

    Raises
    ------
    MissingToolError
        If the simulator or one of its tools is not installed.
    """
    runner = _make_runner(simulator)
    shown = progress or Progress()
    started = time.monotonic()
    directory, hit = program, True
    try:
        if design is None or directory is None:
            module: types.ModuleType = importlib.import_module(f"{sim.tb.__name__}.{block}")
            component = component or cast(_Bench, module).design()
            # Emitted even if another design is tested: Amaranth warns of forgotten components.
            with shown.step(f"emitting the Verilog of {block.lstrip('_')}"):
                emitted = emit(component)
            design = design or emitted
            directory, hit = _program_of(
                runner,
                design,
                port_names(component),
                waves=waves is not None,
                use_cache=use_cache,
                progress=shown,
            )
        built = time.monotonic()
        with shown.step("simulating with cocotb"):
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
