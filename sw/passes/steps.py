"""The pass list: passes over a whole kernel, then those over each of its parts."""

from __future__ import annotations

from typing import Any

from sw.passes.kernel_steps import KERNEL_PASSES
from sw.passes.part_steps import PART_PASSES
from sw.passes.pass_driver import Pass

__all__ = ["PASSES"]

#: Every pass, in the order in which it runs.
PASSES: tuple[Pass[Any], ...] = (*KERNEL_PASSES, *PART_PASSES)
