"""Many random commands on a native TMA unit, and what they have covered."""

import random
from collections import Counter
from collections.abc import Sequence

from hw.arch.tma_sizes import TmaSizes
from tests.hw.tma.campaign.random_boxes import in_turn
from tests.hw.tma.campaign.random_modes import MODES, Decks, Mode
from tests.hw.tma.campaign.random_rounds import draw_round
from tests.native.stream_model import StreamModel

__all__ = ["Coverage", "run_commands"]

#: Commands of a round, which begins with a reset.
_COMMANDS = 25


class Coverage:
    """Counts of the commands of a campaign.

    Members
    -------
    modes, several, ranks, sides : Counter
        Commands by mode, those to several scratchpads by mode, with a descriptor by its rank, and
        leaving a tensor on a side.
    pairs : set
        Pairs of element stride, swizzle, rank and element size.
    commands, described, beats, cycles, remote : int
        Commands that move something, those of them with a descriptor, beats of R and W, cycles,
        and operations at barriers of another user's scratchpad.
    """

    def __init__(self) -> None:
        self.modes: Counter[str] = Counter()
        self.several: Counter[str] = Counter()
        self.ranks: Counter[int] = Counter()
        self.sides: Counter[str] = Counter()
        self.pairs: set[object] = set()
        self.beats = self.cycles = self.remote = 0

    @property
    def commands(self) -> int:
        return self.modes.total()

    @property
    def described(self) -> int:
        return self.ranks.total()

    def add(self, round_) -> None:
        """Count the commands of a round."""
        for pad, plan in enumerate(round_.plans):
            self.remote += sum(each.get("scratchpad", pad) != pad for each in plan.operations)
        for item in (item for item in round_.items if item.case):
            case = item.case
            self.modes[case.mode.name] += 1
            self.several[case.mode.name] += case.mode.loads and item.destinations.bit_count() > 1
            if case.descriptor is None:
                continue
            self.ranks[case.descriptor.rank] += 1
            below, above = case.mode.leaves(case)
            self.sides["below"] += below
            self.sides["above"] += above
            if case.combination:
                self.pairs |= case.combination.pairs


def run_commands(
    model: StreamModel,
    sizes: TmaSizes,
    seed: int,
    commands: int,
    *,
    modes: Sequence[Mode] = MODES,
    name: str = "tma",
) -> Coverage:
    """Run so many random commands of some modes on a unit of a model, in rounds.

    What fails has a note with the number of its round and the round's seed.
    """
    rng = random.Random(seed)
    decks, covered = Decks(rng), Coverage()
    given = in_turn(rng, {mode: mode.share for mode in modes})
    while covered.commands < commands:
        round_ = draw_round(decks, given, sizes, seed=rng.randrange(1 << 30), commands=_COMMANDS)
        try:
            traffic = round_.run(model, name)
        except Exception as error:
            error.add_note(f"round {covered.commands // _COMMANDS} of seed {seed}: {round_}")
            raise
        covered.add(round_)
        covered.beats += traffic.beats
        covered.cycles += traffic.cycles
    return covered
