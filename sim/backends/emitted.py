"""Cached Verilog of a chip, emitted again if a parameter, a source or a tool changes."""

import dataclasses
import hashlib
import json
import time
from importlib import metadata
from pathlib import Path

import gen
import hw
from gen.design import Definition, Design, Port
from gen.verilog import emit
from hw.arch.config import ChipConfig
from hw.chip import Chip
from sim.backends.interface import Setup
from sim.cache import cache_directory, cached, key_of
from sim.progress import Progress

__all__ = ["design_of", "emitted_chip", "is_emitted"]

#: Packages whose versions the text may depend on.
_TOOLS = ("amaranth", "pyosys")
_KIND, _FILE = "verilog", "design.json"


def _sources() -> str:
    """Digest of everything but the parameters that determines the emitted text."""
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


def _content(config: ChipConfig) -> list[str]:
    return [json.dumps(config.resolved(), sort_keys=True), _sources()]


def emitted_chip(
    config: ChipConfig, *, use_cache: bool = True, progress: Progress | None = None
) -> Design:
    """The Verilog of a chip as `gen.verilog.emit` returns it, from the cache if possible.

    Parameters
    ----------
    config : ChipConfig
    use_cache : bool
        Whether text from the same parameters and sources may be taken from the cache.
    progress : Progress, optional
    """
    shown = progress or Progress()

    def make(work: Path) -> None:
        with shown.step("emitting the chip's Verilog"):
            design = emit(Chip(config))
        (work / _FILE).write_text(json.dumps(dataclasses.asdict(design)), encoding="utf-8")

    directory, _ = cached(
        _KIND,
        _content(config),
        _FILE,
        make,
        name="the chip's Verilog",
        use_cache=use_cache,
        progress=shown,
    )
    kept = json.loads((directory / _FILE).read_text(encoding="utf-8"))
    kept["definitions"] = {
        name: Definition(
            **each | {"ports": {port: Port(*facts) for port, facts in each["ports"].items()}}
        )
        for name, each in kept["definitions"].items()
    }
    return Design(**kept)


def is_emitted(setup: Setup) -> bool:
    """Whether the Verilog to simulate exists already."""
    emitted = cache_directory() / _KIND / key_of(_content(setup.config)) / _FILE
    return setup.design is not None or (setup.use_cache and emitted.exists())


def design_of(setup: Setup) -> tuple[Design, float]:
    """The Verilog to simulate, and the seconds it took to emit."""
    started = time.monotonic()
    design = setup.design or emitted_chip(
        setup.config, use_cache=setup.use_cache, progress=setup.progress
    )
    return design, time.monotonic() - started
