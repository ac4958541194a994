"""Parameters of a kernel as text: sizes and options with their defaults, formats of its inputs."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING

from sim.cli.kernel_options import FORMATS

if TYPE_CHECKING:
    from sw.language import Kernel

__all__ = ["describe_parameters", "traced_formats"]


def traced_formats(kernel: Kernel) -> list[str]:
    """Names for ``--dtype`` with which the kernel can be traced at its default sizes."""
    from hw.numeric.formats import named
    from sim.cli.settings import default_sizes

    found = []
    for name in FORMATS:
        sizes = default_sizes(kernel)
        # A user's kernel may print, and may raise anything.
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            kernel.trace(dtype=named[name], out=None, **sizes)
            found.append(name)
    return found


def describe_parameters(kernel: Kernel) -> str:
    """Keys of ``--set`` with their defaults, and the formats of ``--dtype``."""
    from sim.cli.settings import default_sizes

    defaults = default_sizes(kernel) | dict(kernel.options)
    keys = ", ".join(f"{name} = {value}" for name, value in defaults.items())
    if all(each.format is not None for each in kernel.signature.inputs):
        formats = "formats of the signature"
    else:
        formats = f"formats {', '.join(traced_formats(kernel)) or 'unknown: run it for the reason'}"
    return "; ".join(filter(None, (keys, formats)))
