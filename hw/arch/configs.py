"""Named configurations: fixed points of comparison, so a change of them changes every figure."""

from hw.arch.config import AgcuConfig, ChipConfig, PmuConfig

__all__ = ["named"]

#: Configurations by name.
named: dict[str, ChipConfig] = {
    "tiny": ChipConfig(
        rows=2,
        columns=2,
        width_bits=64,
        pmu=PmuConfig(capacity_bytes=4096),
        agcu=AgcuConfig(count=1),
    ),
    "small": ChipConfig(rows=4, columns=4),
    "large": ChipConfig(rows=6, columns=6, agcu=AgcuConfig(count=4)),
}
