"""Public types of ``kernel.run`` and ``kernel.compile`` results, implemented by `sim.run`.

The language returns these abstract types because it knows no back end.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

if TYPE_CHECKING:
    from sw.language.schedule import Schedule

__all__ = ["KernelProgram", "RunResult"]

Array = npt.NDArray[Any]


class RunResult(abc.ABC):
    """Result of a run: outputs by name, and the figures of the report.

    ``r.C`` is the output ``C``; the members below are the fields of the report, in its order.
    Fields that do not apply to the run are None. All members are read-only.

    Members
    -------
    kernel, config, backend : str
    dtype, out_dtype : str
        Formats of the first input and of the first output.
    params : mapping of str to value
        Sizes and options.
    schedule : mapping of str to mapping
        Choices of user, program and compiler.
    seed : int
    latency, jitter, stall : int, int, float
        Conditions of the memory.
    verified : bool
        Whether every check passed: bytes equal golden, and golden's error is within its bound.
    bit_exact : bool
        Whether all bytes of memory equal golden.
    error_bound, max_abs_err : float
        Largest bound on golden's error against float64, and the largest error.
    error_of_bound : float
        Largest ratio of an element's error to its bound.
    max_rel_err : float
        Largest error relative to the largest value of its output.
    cycles : int
        From the launch to the last answer of memory.
    macs, macs_issued : int
        Multiply-accumulates without and with those on padding.
    peak_macs_per_cycle : int
    utilization : float
        Fraction of the chip's peak: macs / (cycles × peak). None without products.
    memory_utilization : float
        Fraction of the peak of the memory ports: bytes read or written, whichever are more, per
        cycle over the width of all ports.
    predicted_cycles : int
        Predicted at the latency of the run, of a cold launch or of the warm one.
    launch_to_first_mac, launches : int
    parts, entries : int
        Images of the kernel, and entries of the launch list that run them once.
    dram_bytes_read, dram_bytes_written : int
    units_used : mapping of str to int
        Units by kind.
    config_sha256, image_sha256, verilog_sha256, input_sha256, output_sha256, golden_sha256 : str
    image_bytes : int
    counters : mapping of str to mapping
        Counters by unit.
    cycles_per_second : float
        Speed of the simulation.
    compile_seconds, emit_seconds, build_seconds, run_seconds : float
    cache_hit : bool
        Whether the model came from the cache.
    """

    __slots__ = ()

    kernel: str
    config: str
    backend: str
    dtype: str
    out_dtype: str
    params: Mapping[str, Any]
    schedule: Mapping[str, Mapping[str, Any]]
    seed: int
    latency: int | None
    jitter: int | None
    stall: float | None
    verified: bool
    bit_exact: bool | None
    error_bound: float | None
    max_abs_err: float | None
    error_of_bound: float | None
    max_rel_err: float | None
    cycles: int | None
    macs: int
    macs_issued: int | None
    peak_macs_per_cycle: int | None
    utilization: float | None
    memory_utilization: float | None
    predicted_cycles: int | None
    launch_to_first_mac: int | None
    launches: int | None
    parts: int | None
    entries: int | None
    dram_bytes_read: int | None
    dram_bytes_written: int | None
    units_used: Mapping[str, int] | None
    config_sha256: str
    image_sha256: str | None
    image_bytes: int | None
    verilog_sha256: str | None
    input_sha256: str
    output_sha256: str
    golden_sha256: str
    counters: Mapping[str, Mapping[str, Any]] | None
    cycles_per_second: float | None
    compile_seconds: float
    emit_seconds: float | None
    build_seconds: float | None
    run_seconds: float | None
    cache_hit: bool | None

    @property
    @abc.abstractmethod
    def outputs(self) -> dict[str, Array]:
        """Outputs by name."""

    @property
    @abc.abstractmethod
    def problems(self) -> tuple[str, ...]:
        """Reasons why it is not verified, one line per reason; empty if it is."""

    @property
    @abc.abstractmethod
    def notes(self) -> tuple[str, ...]:
        """Remarks that do not affect the verdict: skipped checks, reduced hints."""

    @abc.abstractmethod
    def profile(self) -> Any:
        """Profile of the run, as data and as a page; notebooks display it."""

    @abc.abstractmethod
    def json(self) -> dict[str, Any]:
        """The fields as plain JSON data."""

    @abc.abstractmethod
    def __getattr__(self, name: str) -> Array:
        """An output by its name."""


class KernelProgram(abc.ABC):
    """A kernel compiled for a chip: schedule, images, prediction, and a method to run it."""

    @property
    @abc.abstractmethod
    def schedule(self) -> Schedule:
        """Every choice, the compiler's included."""

    @property
    @abc.abstractmethod
    def image(self) -> bytes:
        """The image that the chip loads, of a kernel of one part."""

    @property
    @abc.abstractmethod
    def images(self) -> tuple[bytes, ...]:
        """The image of each part, in the order of the launches."""

    @property
    @abc.abstractmethod
    def predicted_cycles(self) -> int:
        """Predicted cycles of a cold launch at a memory latency of 100 cycles."""

    @abc.abstractmethod
    def with_options(self, **options: Any) -> KernelProgram:
        """The kernel with other values of its options; parts that are the same are kept."""

    @abc.abstractmethod
    def ir(self, after: str) -> str:
        """Text form of the program after a pass."""

    @abc.abstractmethod
    def report(self) -> str:
        """Choices and predicted cost as text."""

    @abc.abstractmethod
    def map(self) -> str:
        """SVG picture of the units and routes in use; notebooks display it."""

    @abc.abstractmethod
    def map_text(self) -> str:
        """Chip map as text: units, streams with their rates, and what bounds the speed."""

    @abc.abstractmethod
    def run(self, *arrays: npt.ArrayLike, backend: str = "rtl", **options: Any) -> RunResult:
        """Run it on arrays of the sizes and formats it was compiled for."""
