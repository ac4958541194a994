"""tma-f: failed loads of a TMA unit to several scratchpads."""

import pytest

from hw.arch.error_codes import TmaError
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.scratchpads.pads_bench import AT, BASE, BOX, begin, counts, pads_bench

_LOAD = TmaOperation.LOAD


@pytest.mark.slow
@pytest.mark.must("tma-f", goal="an error on multicast raises the flag at every destination")
def test_an_error_raises_the_flag_at_every_destination(figure):
    """Bad responses on first and last beat, a bad box and a bad mask; every set of destinations."""
    pads = 3
    bench = pads_bench(pads)
    last = BASE + BOX.box_bytes - 16
    cases = [
        (BASE, 2, {}, TmaError.READ_SLVERR),
        (last, 3, {}, TmaError.READ_DECERR),
        (0, 0, {"local": 2040}, TmaError.DESTINATION),
        (0, 0, {"destinations": 8}, TmaError.DESTINATION),
    ]

    async def work(ctx):
        number = 0
        for place, response, bad, code in cases:
            for mask in range(1, 1 << pads):
                await begin(bench, ctx, 6)
                bench.memory.failing[:] = [(place, place + 16, response)] if response else []
                fields = {"destinations": mask | bad.get("destinations", 0), "barrier": 6}
                fields |= {"signals": 1, "local": bad.get("local", 0)}
                await bench.command(ctx, _LOAD, AT, id=number, **fields)
                number += 1
                await bench.completed(ctx, number)
                assert bench.completions[-1] == (number - 1, code.value)
                moved = -BOX.box_bytes if response else 0
                for pad, answer in enumerate(await counts(bench, ctx, 6)):
                    meant = mask >> pad & 1
                    assert (answer["flag"], answer["tx"]) == (meant, meant * moved), (mask, pad)
        figure(f"{number} failed loads to 1 to {pads} destinations")

    bench.run(work)
