"""Liveness proofs of the kernels' images, and planted faults that the proof must detect."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import Any

from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.progress import Progress
from sw.chip_program import ChipProgram
from sw.compiler import compile_kernel
from sw.kernels.gemm import gemm
from sw.kernels.matmul import matmul
from sw.prove import prove

__all__ = ["prove_images"]

#: Kernels and chips, with extents that are ragged in every loop.
_CASES = (
    (matmul, "tiny", {"M": 37, "N": 13, "K": 41}),
    (matmul, "small", {"M": 300, "N": 200, "K": 250}),
    (gemm, "tiny", {"M": 37, "N": 13, "K": 41}),
    (gemm, "small", {"M": 300, "N": 200, "K": 250}),
)


def _without_credits(program: ChipProgram) -> Iterator[ChipProgram]:
    """Variants of a program with the initial credits of one token port removed."""
    for number, agcu in program.agcus.items():
        for port, count in enumerate(agcu.credits):
            if count:
                credits = (*agcu.credits[:port], 0, *agcu.credits[port + 1 :])
                broken = dataclasses.replace(agcu, credits=credits)
                yield dataclasses.replace(program, agcus={**program.agcus, number: broken})


def prove_images(progress: Progress) -> Iterator[dict[str, Any]]:
    """Prove each image; returns the rows of the ``prove`` report.

    Each image is decoded before its token-level run. The planted faults remove the initial credits
    of a token port; the faulty program must deadlock.
    """
    for kernel, config, dims in _CASES:
        with progress.step(f"proving: {kernel.name} on {config}"):
            image = compile_kernel(kernel, named[config], dims=dims, dtype=bf16).parts[0].image
            started = time.monotonic()
            program = ChipProgram.unpack(named[config], image)
            live = prove(program).live
            faults = list(_without_credits(program))
            caught = sum(not prove(fault).live for fault in faults)
        yield {
            "block": "images",
            "name": f"{kernel.name} on {config} ends, whatever the timing",
            "method": "token-level run of the decoded image",
            "parameters": dict(dims),
            "status": "proved" if live and caught == len(faults) else "not proved",
            "cover_reached": None,
            "faults_caught": f"{caught} of {len(faults)}",
            "seconds": round(time.monotonic() - started, 3),
        }
