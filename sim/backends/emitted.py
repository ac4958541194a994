"""The Verilog of a chip, emitted once: kept until a parameter, a source or a tool changes."""

import dataclasses
import hashlib
import json
import time
from importlib import metadata
from pathlib import Path

import gen
import hw
from gen.verilog import Design, emit
from hw.chip import Chip
from hw.config import ChipConfig
from sim.backends.face import Setup
from sim.files import write_whole
from sim.native.build import cache_directory, locked

__all__ = ["design_of", "emitted_chip"]

#: Packages whose versions the text may depend on.
_TOOLS = ("amaranth", "pyosys")


def _sources() -> str:
    """Digest of everything that decides what is emitted, but the parameters."""
    digest = hashlib.sha256()
    for package in (hw, gen):
        for folder in map(Path, package.__path__):
            for path in sorted(folder.rglob("*.py")):
                digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    for name in _TOOLS:
        try:
            digest.update(f"{name} {metadata.version(name)}\0".encode())
        except metadata.PackageNotFoundError:
            digest.update(f"{name} none\0".encode())
    return digest.hexdigest()


def emitted_chip(config: ChipConfig, *, use_cache: bool = True) -> Design:
    """The chip's Verilog, as `gen.verilog.emit` gives it.

    Parameters
    ----------
    config : ChipConfig
    use_cache : bool
        Take what was emitted before of the same parameters by the same sources.
    """
    parts = json.dumps(config.resolved(), sort_keys=True), _sources()
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    path = cache_directory() / "verilog" / f"{key}.json"
    with locked(path.with_suffix(".lock")):
        if use_cache and path.exists():
            return Design(**json.loads(path.read_text(encoding="utf-8")))
        design = emit(Chip(config))
        write_whole(path, json.dumps(dataclasses.asdict(design)))
        return design


def design_of(setup: Setup) -> tuple[Design, float]:
    """The Verilog to simulate, and the seconds it took to come by."""
    started = time.monotonic()
    design = setup.design or emitted_chip(setup.config, use_cache=setup.use_cache)
    return design, time.monotonic() - started
