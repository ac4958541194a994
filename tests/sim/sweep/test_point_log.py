"""Log of a sweep's points: killed writers, foreign files, two sweeps at once."""

import json

import pytest

from hw.arch.errors import BadInputError
from sim.sweep.point_log import PointLog, opened

RECORD = {"key": "a", "point": {"kernel": "matmul"}, "status": "verified"}


def test_a_point_added_is_there_afterwards(tmp_path):
    with opened(tmp_path / "new") as log:
        log.add(RECORD)
        log.add(RECORD | {"key": "b"})
    assert list(PointLog(tmp_path / "new").records) == ["a", "b"]


def test_a_line_without_its_end_is_dropped(tmp_path):
    file = tmp_path / "points.jsonl"
    file.write_text(json.dumps(RECORD) + "\n" + json.dumps(RECORD | {"key": "b"})[:-4])
    log = PointLog(tmp_path)
    assert list(log.records) == ["a"]
    log.add(RECORD | {"key": "c"})
    assert list(PointLog(tmp_path).records) == ["a", "c"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"points.jsonl:2 must be JSON: "),
        ("[]", r"points.jsonl:2 must be a point of a sweep; its field `key` is missing"),
        ('{"key": "b", "point": 3, "status": "x"}', "its field `point` is missing or no dict"),
    ],
)
def test_a_foreign_line_is_refused_by_its_number_and_field(tmp_path, line, message):
    file = tmp_path / "points.jsonl"
    file.write_text(f"{json.dumps(RECORD)}\n{line}\n")
    before = file.read_bytes()
    with pytest.raises(BadInputError, match=message):
        PointLog(tmp_path)
    assert file.read_bytes() == before


def test_one_sweep_at_a_time_uses_a_folder(tmp_path):
    with opened(tmp_path), pytest.raises(BadInputError, match="another one uses"):
        with opened(tmp_path):
            pass
