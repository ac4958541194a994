"""Runner of cocotb testbenches of blocks, on Verilator or Icarus."""

import contextlib
import dataclasses
import importlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TextIO, cast
from xml.etree import ElementTree

from amaranth.hdl import Value
from cocotb import __version__ as cocotb_version
from cocotb_tools.runner import Icarus, Runner, Verilator

import sim.tb
from gen.design import Design
from gen.tools import require_programs
from gen.verilog import emit
from hw.emit.shared import Shareable
from sim.cache import cached
from sim.cocotb.executable import build_model
from sim.files import write_whole
from sim.native.build import require_build_tools
from sim.progress import Progress

__all__ = ["SIMULATORS", "BenchResult", "bench_names", "port_names", "run_bench", "run_program"]

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


class _Started(Runner):
    """cocotb runner with a time limit and without terminal input."""

    def _set_env_common(self) -> None:
        super()._set_env_common()
        # The flags of a make that runs this process must not reach the make of the model.
        self.env.pop("MAKEFLAGS", None)
        here = str(Path(__file__).resolve().parents[2])
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
    """Runner of Verilator executables, which `sim.cocotb.executable` builds."""


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
    tests : int
        Tests run; a failed build or a crashed simulator counts as one failed test.
    failures : tuple of str
        One line per failed test.
    seconds : float
        Time of the simulation.
    log : Path
        Output of the simulator.
    build_seconds : float
        Time of emission and build.
    cache_hit : bool
        Whether the model came from the cache.
    """

    block: str
    simulator: str
    seed: int
    tests: int
    failures: tuple[str, ...]
    seconds: float
    log: Path
    build_seconds: float = 0.0
    cache_hit: bool = True

    @property
    def failed(self) -> int:
        """Number of failed tests."""
        return len(self.failures)

    @property
    def passed(self) -> int:
        """Number of passed tests."""
        return self.tests - self.failed

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


def _build_icarus(
    design: Design, *, waves: bool, use_cache: bool, progress: Progress
) -> tuple[Path, bool]:
    """Folder of the Icarus executable of a design, and whether it was a cache hit."""

    def make(work: Path) -> None:
        (work / "design.v").write_text(design.text)
        log = work / "build.log"
        try:
            with progress.step(f"Icarus: {design.top}"):
                _Icarus().build(
                    sources=[work / "design.v"],
                    hdl_toplevel=design.top,
                    build_args=_ICARUS_FLAGS,
                    build_dir=work / "obj",
                    timescale=("1ns", "1ps"),
                    waves=waves,
                    log_file=log,
                )
        except RuntimeError as error:
            raise RuntimeError(f"{error}:\n{log.read_text(errors='replace')}") from None
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


def run_program(
    module: str,
    top: str,
    directory: Path,
    *,
    simulator: str = "verilator",
    seed: int = 1,
    waves: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> BenchResult:
    """Run a module of cocotb tests on an executable that has been built.

    Parameters
    ----------
    module : str
        Dotted name of the module; its last part names the block and the log.
    top : str
        Name of the design's top.
    directory : Path
        Folder of the executable.
    simulator, seed, waves, environment
        As of `run_bench`.
    """
    block = module.rpartition(".")[2]
    log = _log_of(block)
    runner = _Verilator() if simulator == "verilator" else _Icarus()
    started = time.monotonic()
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
                test_module=module,
                hdl_toplevel=top,
                hdl_toplevel_lang="verilog",
                build_dir=directory,
                test_dir=folder,
                results_xml=str(results),
                seed=seed,
                plusargs=plusargs,
                waves=waves is not None,
                log_file=folder / "log",
                extra_env={"COCOTB_ANSI_OUTPUT": "0", **(environment or {})},
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
    seconds = time.monotonic() - started
    return BenchResult(block, simulator, seed, ran, tuple(failures), seconds, log)


def run_bench(
    block: str,
    *,
    seed: int = 1,
    simulator: str = "verilator",
    waves: Path | None = None,
    component: Shareable | None = None,
    design: Design | None = None,
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
    if simulator == "verilator":
        require_build_tools()
    else:
        require_programs("iverilog", "vvp", where=f"--simulator {simulator}")
    shown = progress or Progress()
    started = time.monotonic()
    module = f"{sim.tb.__name__}.{block}"
    component = component or cast(_Bench, importlib.import_module(module)).design()
    # Emitted even if another design is tested: Amaranth warns of forgotten components.
    with shown.step(f"emitting the Verilog of {block}"):
        emitted = emit(component)
    design = design or emitted
    options: Any = {
        "waves": waves is not None,
        "use_cache": use_cache,
        "progress": shown,
    }
    try:
        if simulator == "verilator":
            directory, hit = build_model(design, port_names(component), **options)
        else:
            directory, hit = _build_icarus(design, **options)
    except RuntimeError as error:
        log, reason = _log_of(block), str(error).partition(":")[0]
        write_whole(log, str(error))
        result = BenchResult(block, simulator, seed, 1, (f"build: {reason}",), 0.0, log)
        return dataclasses.replace(
            result, build_seconds=time.monotonic() - started, cache_hit=False
        )
    built = time.monotonic()
    with shown.step("simulating with cocotb"):
        result = run_program(
            module,
            design.top,
            directory,
            simulator=simulator,
            seed=seed,
            waves=waves,
            environment=environment,
        )
    return dataclasses.replace(result, build_seconds=built - started, cache_hit=hit)
