"""Waivers of Verilator's lint for emitted Verilog, shipped with the package.

One list serves every build and every user: the warnings of a simulation build are those of a
user's own ``verilator --lint-only -Wall``.
"""

import re
from pathlib import Path

__all__ = ["WAIVER_FILE", "waived_rules", "waivers"]

#: The waivers, each with its cause.
WAIVER_FILE = Path(__file__).with_name("waivers.vlt")

_RULE = re.compile(r"^lint_off -rule (\S+)$", re.MULTILINE)


def waivers(file: str | None = None) -> str:
    """Text of the waivers.

    Parameters
    ----------
    file : str, optional
        Pattern of the only file that they apply to, as Verilator matches names.
    """
    text = WAIVER_FILE.read_text(encoding="utf-8")
    return text if file is None else _RULE.sub(rf'\g<0> -file "{file}"', text)


def waived_rules() -> tuple[str, ...]:
    """Codes of the waived warnings."""
    return tuple(_RULE.findall(waivers()))
