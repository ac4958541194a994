"""Verilator archives of a design's parts, each cached by its content."""

import dataclasses
import fnmatch
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gen.design import Design
from gen.lint import waivers
from sim.cache import cached
from sim.native.build import ANYWHERE, MAKE, require_build_tools, run_tool, verilate, verilator_root
from sim.progress import Progress

__all__ = ["LIBRARY", "Product", "build_parts"]

_FLAGS = (
    "--cc --no-timing --x-initial unique --default-language 1364-2005 -O3 --output-split 5000"
).split()
#: A recorded signal stays whole, so fields of it that drive one another look like a loop.
_TRACED = ("--trace-vcd", "-Wno-UNOPTFLAT")
_CFLAGS = "-fPIC -std=c++17 -DVL_USER_STOP -DVL_USER_FATAL".split()
_FAST = "-O2"
#: Levels of optimisation. What runs once is nearly half of a model's code: its initial values, and
#: its settling before the first cycle.
_LEVELS = (f"OPT_FAST={_FAST}", "OPT_SLOW=-O0", "OPT_GLOBAL=-O0")
_JOBS = 2
#: Modules that are not inlined. The rows of an array are most of a PCU: inlined into the tile,
#: they take twice as long to compile, and the code is slower.
_NOT_INLINED = ("stationary_row_*",)


@dataclasses.dataclass(frozen=True)
class Product:
    """Link target: a library or an executable from models and a harness.

    Members
    -------
    name : str
        File name.
    link : tuple of str
        Compiler arguments of the link step.
    runtime : tuple of str
        Additional C++ runtime sources of Verilator.
    options : tuple of str
        Additional Verilator options of the first part.
    control : str
        Verilator control file of the first part.
    """

    name: str
    link: tuple[str, ...]
    runtime: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    control: str = ""


#: A library that Python can load.
LIBRARY = Product("libmodel.so", ("-shared",))


def _archive(
    part: Design,
    options: Sequence[str],
    control: str,
    *,
    place: str,
    use_cache: bool,
    progress: Progress,
) -> Path:
    flags = [*_FLAGS, *options]
    if any(fnmatch.filter(part.definitions, pattern) for pattern in _NOT_INLINED):
        lines = [f'no_inline -module "{pattern}"' for pattern in _NOT_INLINED]
        control = "\n".join(["`verilator_config", *lines, control])
    # Messages of Verilator and of failed assertions name the file.
    verilog = f"{part.top}.v"
    sources = ["control.vlt", verilog] if control else [verilog]
    prefix = f"V{part.top}"

    def make(work: Path) -> None:
        (work / verilog).write_text(part.text)
        (work / "control.vlt").write_text(control)
        words = [
            *flags,
            *sources,
            *("--top-module", part.top, "--prefix", prefix, "-Mdir", "."),
            *("-CFLAGS", " ".join(_CFLAGS)),
        ]
        compiling = ["make", "-f", f"{prefix}.mk", f"-j{_JOBS}", *MAKE.split(), ANYWHERE, *_LEVELS]
        with progress.step(f"Verilator {place}: {part.top}"):
            verilate(words, work, part.top)
            run_tool([*compiling, f"{prefix}__ALL.a"], work, part.top)
        for path in work.iterdir():
            if path.suffix not in (".h", ".a"):
                path.unlink()

    content = [part.text, *flags, waivers(), MAKE, *_CFLAGS, *_LEVELS, *sources, control]
    return cached(
        "verilator",
        content,
        f"{prefix}__ALL.a",
        make,
        name=part.top,
        use_cache=use_cache,
        progress=progress,
    )[0]


def _runtime(sources: Sequence[str], use_cache: bool, progress: Progress) -> Path:
    """Compiled runtime of Verilator."""
    include = verilator_root() / "include"

    def make(work: Path) -> None:
        with progress.step("Verilator's own C++"), ThreadPoolExecutor(_JOBS) as pool:
            list(pool.map(lambda name: compile_one(work, name), sources))

    def compile_one(work: Path, name: str) -> None:
        options: list[str | Path] = [*_CFLAGS, _FAST, "-I", include, "-I", include / "vltstd"]
        run_tool(["g++", *options, "-c", include / f"{name}.cpp", "-o", f"{name}.o"], work, name)

    texts = [(include / f"{name}.cpp").read_text() for name in sources]
    return cached(
        "verilator",
        [*texts, *_CFLAGS, _FAST],
        f"{sources[-1]}.o",
        make,
        name="Verilator's own C++",
        use_cache=use_cache,
        progress=progress,
    )[0]


def build_parts(
    parts: Sequence[Design],
    harness: str,
    *,
    product: Product = LIBRARY,
    waves: bool = False,
    use_cache: bool = True,
    progress: Progress | None = None,
) -> tuple[Path, bool]:
    """Build a library or an executable from the models of several modules and one C++ harness.

    Parameters
    ----------
    parts : sequence of Design
        Modules; the class of module ``m`` is ``Vm``.
    harness : str
        C++ source; it includes ``Vm.h`` of each.
    product : Product
        Link target.
    waves : bool
        Whether models can record waveforms; the harness then uses ``VerilatedVcdC``.
    use_cache : bool
        Whether cached builds of the same content may be used.
    progress : Progress, optional
        Display of the part being built.

    Returns
    -------
    path, hit : Path, bool
        The linked file, and whether all of it came from the cache.

    Raises
    ------
    MissingToolError
        If Verilator, g++, make or perl is missing.
    RuntimeError
        If the build fails; the message ends with the tool's last lines.
    """
    options = list(_TRACED) if waves else []
    sources = ["verilated", "verilated_threads", *product.runtime]
    sources += ["verilated_vcd_c"] if waves else []

    shown = progress or Progress()
    # The longest first, two at a time: their C++ keeps both cores busy while one verilates.
    order = sorted(parts, key=lambda part: -len(part.text))

    def archive(part: Design) -> Path:
        first = part is parts[0]
        return _archive(
            part,
            [*options, *product.options] if first else options,
            product.control if first else "",
            place=f"{order.index(part) + 1} of {len(order)}",
            use_cache=use_cache,
            progress=shown,
        )

    def make(work: Path) -> None:
        require_build_tools()
        root = verilator_root()
        with ThreadPoolExecutor(_JOBS) as pool:
            runtime = pool.submit(_runtime, sources, use_cache, shown)
            archives = list(pool.map(archive, order))
            objects = runtime.result()
        (work / "harness.cpp").write_text(harness)
        folders = [root / "include", root / "include" / "vltstd", *archives]
        command = ["g++", *_CFLAGS, _FAST, *(f"-I{folder}" for folder in folders)]
        command += ["harness.cpp", "-o", product.name]
        command += [str(path) for folder in archives for path in folder.glob("*.a")]
        command += [str(path) for path in objects.glob("*.o")]
        with shown.step("linking the model"):
            run_tool([*command, *product.link, "-lpthread"], work, "the harness")

    content = [text for part in parts for text in (part.top, part.text)]
    content += [harness, *_FLAGS, *options, waivers(), MAKE, *_CFLAGS, *_LEVELS]
    content += [*_NOT_INLINED, *product.link, *product.runtime, *product.options, product.control]
    directory, hit = cached(
        "verilator",
        content,
        product.name,
        make,
        name="the model",
        use_cache=use_cache,
        progress=shown,
    )
    return directory / product.name, hit
