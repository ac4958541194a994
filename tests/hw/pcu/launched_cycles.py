"""Cycles of a case's kernel in RTL, for tests that compare them."""

from sim.native.chip_model import MemoryConditions

__all__ = ["launched_cycles"]


def launched_cycles(model, case, seed, **conditions):
    """Run a case (``memory``, its ``layout``, ``equal()``), whose memory must be right."""
    run = model.run(
        case.memory,
        list_address=case.layout.list_address,
        conditions=MemoryConditions(seed=seed, **conditions),
        max_cycles=200_000,
    )
    assert run.status == "done" and case.equal()
    return run.cycles - run.launch_cycles
