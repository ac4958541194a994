"""Table of units in an FPGA."""

from collections.abc import Iterator

from docs.tools.markdown import table
from docs.tools.reports import report

__all__ = ["FPGA_UNITS", "fpga_units"]

#: Options of `tilewright area` for each unit of the table.
FPGA_UNITS = (
    "--component array --rows 4 --cols 4 --format int8",
    "--component array --rows 4 --cols 4 --format int8 --multiplier dsp",
    "--component switch --set width_bits=64 --set tracks=1",
    "--component token_switch --set tracks=2",
    "--component barrier",
    "--component barrier_bank --set barriers=4 --set arrivals=7 --set tx_bytes=200 --set ports=1",
    "--component config_segment --set width_bits=64",
)


def fpga_units() -> str:
    """Resources and clock of units in an ECP5, from the report of each."""

    def rows() -> Iterator[tuple[object, ...]]:
        for options in FPGA_UNITS:
            (unit,) = report(f"tilewright area --target ecp5 {options}")["units"]
            figures = (unit[name] for name in ("luts", "flip_flops", "dsps", "block_rams"))
            yield f"`{options}`", *figures, f"{unit['clock_mhz']:.1f}"

    heads = ("unit", "LUTs", "flip-flops", "DSPs", "block RAMs", "clock, MHz")
    return table(heads, rows())
