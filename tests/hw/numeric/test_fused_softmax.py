"""Golden fused softmax: against attention in float64, and the properties that it must have."""

import dataclasses

import numpy as np
import pytest

from hw.arch.errors import BadInputError
from hw.arch.lanes.key_mask import KeyMask, key_mask_layout
from hw.numeric import elementwise, functions, reference
from hw.numeric.formats import bf16, fp32
from hw.numeric.fused_softmax import (
    ScoreBlock,
    ScoresModel,
    normalized,
    packet_words,
    rescaled,
    score_scale,
    seen,
)

C, BITS = 8, 16


def rounded(x):
    return reference.cast(np.asarray(x, np.float32), bf16)


@dataclasses.dataclass
class Attention:
    """Attention of C queries: operands, and the rows that golden gives, queries × d."""

    queries: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    mask: KeyMask = dataclasses.field(default_factory=KeyMask)
    block: int = 64
    group: int = 0
    bits: int = BITS

    @property
    def scale(self):
        return self.queries.shape[1] ** -0.5

    @property
    def scores(self):
        return reference.matmul(self.keys, self.queries.T)

    def blocks(self, scores=None):
        """Blocks of powers, and the running maxima after each."""
        scores = self.scores if scores is None else scores
        model = ScoresModel(
            score_scale(self.scale), self.mask, columns=len(self.queries), function_bits=self.bits
        )
        for _ in range(self.group):
            model.block(scores[:1], begins=True)
        found, maxima = [], []
        for first in range(0, len(scores), self.block):
            found.append(model.block(scores[first : first + self.block], begins=first == 0))
            maxima.append(model.maxima)
        return found, np.array(maxima)

    def golden(self, scores=None):
        return normalized(self.values, self.blocks(scores)[0], self.bits).T.astype(np.float64)

    @property
    def visible(self):
        return seen(
            self.mask,
            group=self.group,
            first_row=0,
            rows=len(self.keys),
            columns=len(self.queries),
        )

    def exact(self):
        """Softmax attention in float64, of the same operands."""
        with np.errstate(invalid="ignore"):
            scores = self.keys.astype(np.float64) @ self.queries.T.astype(np.float64) * self.scale
        scores = np.where(self.visible, scores, -np.inf)
        with np.errstate(invalid="ignore"):
            powers = np.exp(scores - scores.max(axis=0))
            return (powers / powers.sum(axis=0)).T @ self.values.astype(np.float64)

    def exact_maximum(self):
        """The same arithmetic with the exact maximum of all scores, known before the first key."""
        factor = score_scale(self.scale)
        scores = np.where(self.visible, self.scores, np.float32(-np.inf))
        scaled = elementwise.multiply(factor, scores.max(axis=0))
        powers = functions.exp2(elementwise.fma(factor, scores, -scaled), self.bits)
        whole = ScoreBlock(np.zeros(len(self.queries), np.uint8), reference.cast(powers, bf16))
        return normalized(self.values, [whole], self.bits).T.astype(np.float64)


def attention(rng, *, keys=256, d=32, spread=1.0, **fields):
    return Attention(
        rounded(rng.normal(0, 1, (C, d))),
        rounded(rng.normal(0, spread, (keys, d))),
        rounded(rng.normal(0, 1, (keys, d))),
        **fields,
    )


def rms(x):
    return float(np.sqrt(np.mean(np.square(x))))


def error_ratio(rng, **fields):
    """Error against float64 by that with the exact maximum, and the error by the output's size."""
    found = {"golden": [], "exact_maximum": []}
    for _ in range(8):
        case = attention(rng, **fields)
        truth = case.exact()
        for name, errors in found.items():
            errors.append(getattr(case, name)() - truth)
    error = rms(found["golden"])
    return error / rms(found["exact_maximum"]), error / rms(truth)


@pytest.mark.few(1)
@pytest.mark.parametrize("spread", [1.0, 4.0])
def test_an_integer_maximum_costs_at_most_a_tenth_of_the_error(spread):
    ratio, error = error_ratio(np.random.default_rng(10), keys=1024, d=64, spread=spread)
    assert ratio <= 1.1
    assert error < 2.0**-7


MASKS = {
    "length": KeyMask(length=200),
    "causal": KeyMask(length=256, causal=True, offset=150),
    "window": KeyMask(length=256, causal=True, offset=150, window=40),
    "window alone": KeyMask(offset=150, window=40),
    "first key": KeyMask(length=240, causal=True, first_key=-20, offset=180),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_masked_attention_is_that_of_the_keys_seen(mask, seed):
    rng = np.random.default_rng(seed)
    case = attention(rng, mask=mask)
    visible = case.visible
    assert 0 < visible.sum() < visible.size
    assert np.abs(case.golden() - case.exact()).max() < 2.0**-6
    # A key that no query sees may be anything.
    hidden = ~visible.any(axis=1)
    assert hidden.any()
    changed = case.scores
    changed[hidden] = np.resize(np.array([np.nan, np.inf, 1e5], np.float32), (hidden.sum(), 1))
    assert (case.golden(changed) == case.golden()).all()


def test_the_mask_is_that_of_its_rules(seed):
    """Key by key and query by query, in Python's integers."""
    rng = np.random.default_rng(seed)
    for _ in range(60):
        low = [int(each) for each in rng.integers(-40, 60, 4)]
        mask = KeyMask(
            length=int(rng.integers(0, 90)),
            causal=bool(rng.integers(2)),
            window=int(rng.integers(0, 30)),
            offset=low[0],
            query_step=low[1],
            first_key=low[2],
            key_step=low[3],
            groups=int(rng.integers(0, 4)),
        )
        group, start = int(rng.integers(0, 6)), int(rng.integers(0, 50))
        got = seen(mask, group=group, first_row=start, rows=30, columns=C)
        number = group % mask.groups if mask.groups else group
        for row in range(30):
            key = mask.first_key + mask.key_step * number + start + row
            for column in range(C):
                last = mask.query_step * number + column + mask.offset
                expected = key >= 0
                expected &= not mask.length or key < mask.length
                expected &= not mask.causal or key <= last
                expected &= not mask.window or key > last - mask.window
                assert got[row, column] == expected, (mask, row, column)


def test_masks_fit_their_fields_and_come_back(seed):
    rng = np.random.default_rng(seed)
    half = 1 << 17
    for _ in range(50):
        offset, query_step, first_key, key_step = (int(n) for n in rng.integers(-half, half, 4))
        mask = KeyMask(
            length=int(rng.integers(half)),
            causal=bool(rng.integers(2)),
            window=int(rng.integers(half)),
            offset=offset,
            query_step=query_step,
            first_key=first_key,
            key_step=key_step,
            groups=int(rng.integers(1 << 16)),
        )
        word = key_mask_layout().const(mask.fields())
        assert KeyMask.of_fields(key_mask_layout().from_bits(word.as_value().value)) == mask


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"length": 1 << 17}, "Length of a key mask must be an integer from 0 to 131071"),
        ({"window": -1}, "Window of a key mask must be an integer from 0 to 131071"),
        ({"offset": 1 << 17}, "Offset of a key mask must be an integer from -131072 to 131071"),
        ({"groups": 1 << 16}, "Groups of a key mask must be an integer from 0 to 65535"),
        ({"causal": 1}, "Causal of a key mask must be True or False"),
    ],
)
def test_masks_that_counters_cannot_hold_are_refused(fields, message):
    with pytest.raises(BadInputError, match=message):
        KeyMask(**fields)


def test_fields_of_no_mask_are_refused():
    fields = KeyMask(first_key=100).fields() | {"distance": 1 << 19}
    with pytest.raises(BadInputError, match="Offset of a key mask"):
        KeyMask.of_fields(fields)


def test_maxima_are_integers_that_never_fall(seed):
    rng = np.random.default_rng(seed)
    blocks, maxima = attention(rng, spread=3.0, block=16).blocks()
    assert (maxima == np.rint(maxima)).all() and (np.diff(maxima, axis=0) >= 0).all()
    assert (np.diff(maxima, axis=0) > 0).any()
    rises = np.stack([block.rises for block in blocks]).astype(int)
    assert (rises[0] == 255).all()
    assert (rises[1:] == np.diff(maxima, axis=0)).all()
    assert all(block.powers.astype(np.float32).max() <= 1 for block in blocks)


def test_a_shift_of_all_scores_by_whole_powers_changes_nothing(seed):
    """Scores scaled by c are integers and eighths, so shifted ones are exact."""
    rng = np.random.default_rng(seed)
    case = attention(rng)
    eighths = rng.integers(-80, 80, (256, C)) / 8

    def shifted(by):
        model = ScoresModel(np.float32(1), KeyMask(), columns=C, function_bits=BITS)
        scores = (eighths + by).astype(np.float32)
        return [model.block(scores[n : n + 64], begins=n == 0) for n in range(0, 256, 64)]

    plain = normalized(case.values, shifted(0), BITS)
    for by in (-3000, 17, 100_000):
        assert (normalized(case.values, shifted(by), BITS) == plain).all()


def test_a_block_without_visible_keys_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    case = attention(rng, keys=192, mask=KeyMask(length=64))
    blocks, maxima = case.blocks()
    assert all((block.rises == 0).all() for block in blocks[1:])
    assert all((bf16.bits_of(block.powers) == 0).all() for block in blocks[1:])
    assert (maxima == maxima[0]).all()
    alone = Attention(case.queries, case.keys[:64], case.values[:64])
    assert (case.golden() == alone.golden()).all()


def test_rows_that_see_no_key_are_nan(seed):
    rng = np.random.default_rng(seed)
    case = attention(rng, mask=KeyMask(causal=True, offset=-3))
    got = case.golden()
    assert np.isnan(got[:3]).all() and np.isfinite(got[3:]).all()


def test_rows_of_equal_scores_are_means(seed):
    rng = np.random.default_rng(seed)
    case = attention(rng, keys=128)
    for score in (0.0, -7.25, 1e5, -1e5):
        got = case.golden(np.full((128, C), score, np.float32))
        mean = case.values.astype(np.float64).mean(axis=0)
        assert np.abs(got - mean).max() < 2.0**-7


@pytest.mark.parametrize(
    "score", [-np.inf, -1e7, np.nan, np.inf], ids=["-inf", "far below", "nan", "inf"]
)
def test_a_row_without_a_finite_denominator_is_nan_and_others_are_not(score, seed):
    """All of -inf, or of scaled scores below -2^20; or a single NaN or infinity."""
    rng = np.random.default_rng(seed)
    case = attention(rng, keys=128)
    scores = case.scores
    if score == -np.inf or score == -1e7:
        scores[:, 2] = score
    else:
        scores[100, 2] = score
    others = np.arange(C) != 2
    got = case.golden(scores)
    assert np.isnan(got[2]).all()
    assert (got[others] == case.golden()[others]).all()


def test_scores_of_a_hundred_thousand_are_exact_enough(seed):
    """Differences of a few beside 10^5: the fused multiply-add rounds only the difference."""
    rng = np.random.default_rng(seed)
    case = attention(rng, keys=128)
    near = rng.integers(-512, 512, (128, C)) / 128
    for big in (1e5, -1e5):
        scores = (big + near).astype(np.float32)
        assert (scores == big + near).all()
        truth = np.exp(near * case.scale)
        truth = (truth / truth.sum(axis=0)).T @ case.values.astype(np.float64)
        assert np.abs(case.golden(scores) - truth).max() < 2.0**-6


def test_old_sums_are_scaled_by_their_exponents():
    sums = np.array([1.5, -3, 2.0**-126, 2.0**-149, -0.0, np.inf, -np.inf, np.nan], np.float32)
    sums = np.append(sums, np.float32(-(2.0**127))).reshape(-1, 1)

    def by(rise):
        return rescaled(sums, np.array([rise], np.uint8))[:, 0]

    assert fp32.bits_of(by(0)).tolist() == fp32.bits_of(sums[:, 0]).tolist()
    assert by(1).tolist()[:7] == [0.75, -1.5, 0, 0, 0, np.inf, -np.inf]
    assert np.isnan(by(255)[7]) and (by(255)[:5] == 0).all() and by(255)[8] == 0
    assert by(253)[8] == -(2.0**-126) and by(254)[8] == 0 and not np.signbit(by(254)[8])


def test_packets_are_a_vector_of_rises_and_two_keys_a_vector(seed):
    rng = np.random.default_rng(seed)
    block = ScoreBlock(rng.integers(0, 256, C).astype(np.uint8), rounded(rng.uniform(0, 1, (6, C))))
    words = packet_words(block)
    assert words.shape == (4, C)
    assert words[0].tobytes() == block.rises.tobytes() + bytes(3 * C)
    assert words[1:].tobytes() == bf16.bits_of(block.powers).astype(np.uint16).tobytes()


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan])
def test_a_scale_without_a_maximum_is_refused(scale):
    with pytest.raises(BadInputError, match="Scale of scores must be positive and finite"):
        score_scale(scale)
