"""The page of a run in a notebook: verdict first, then figures, picture and counters."""

import html.parser
import re

import pytest

from sim.run.report import FIELDS
from sim.run.result import page

COUNTERS = {
    "pcu_0_0": {"kind": "pcu", "busy": 75, "wait_input": 15, "wait_room": 0, "idle": 10}
    | {"macs": 4096, "commands": None, "boxes": None, "bytes": None},
    "agcu_0": {"kind": "agcu", "busy": 0, "wait_input": 0, "wait_room": 0, "idle": 100}
    | {"macs": None, "commands": 3, "boxes": 3, "bytes": 192},
}


def report(**fields):
    given = {
        "kernel": "matmul",
        "config": "a<b",
        "backend": "rtl",
        "dtype": "bf16",
        "out_dtype": "bf16",
        "params": {"M": 3},
        "verified": True,
        "cycles": 1234,
        "predicted_cycles": 1300,
        "utilization": 0.4142,
        "peak_macs_per_cycle": 16,
        "max_abs_err": 199.0,
        "error_of_bound": 0.41,
        "dram_bytes_read": 10,
        "dram_bytes_written": 20,
        "counters": COUNTERS,
        "image_sha256": "c0ffee" * 8,
    }
    return dict.fromkeys(FIELDS) | given | fields


class Balanced(html.parser.HTMLParser):
    """A parser that checks that every element is closed."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_verdict_is_first_and_hashes_are_folded_up():
    text = page(report(), (), ("a note",), "<svg>chip</svg>")
    Balanced(text)
    said = re.sub("<[^>]*>", "|", text)
    order = [
        said.index(each)
        for each in ("VERIFIED", "1,234", "41.4%", "0.41 of its bound", "a note", "chip", "pcu_0_0")
    ]
    assert order == sorted(order)
    assert said.index("c0ffee") > said.index("every field") > order[-1]
    assert "a&lt;b" in text and "<b" not in text


def test_a_run_that_is_not_verified_says_why_at_once():
    text = page(report(verified=False), ("3 of 9 elements of C differ",), (), "")
    assert text.index("NOT VERIFIED") < text.index("3 of 9 elements of C differ")
    assert text.index("3 of 9 elements of C differ") < text.index("1,234")


def test_a_bar_has_the_shares_of_the_states():
    text = page(report(), (), (), "")
    bar = text[text.index("pcu_0_0") : text.index("agcu_0")]
    assert re.findall(r'title="([^"]*) cycles" style="width:([\d.]*)%', bar) == [
        ("busy: 75", "75.00"),
        ("wait input: 15", "15.00"),
        ("idle: 10", "10.00"),
    ]
    assert text.count("<tr><td") >= 2 and "4,096" in bar


def test_a_state_of_a_unit_is_in_the_table_if_it_is_counted():
    counted = {name: unit | {"launch": 7} for name, unit in COUNTERS.items()}
    assert ">launch</th>" in page(report(counters=counted), (), (), "")
    assert ">launch</th>" not in page(report(), (), (), "")


def test_without_products_the_memory_is_the_figure():
    text = page(report(utilization=None, memory_utilization=0.853), (), (), "")
    assert "85.3%" in text and "of its peak" in text
    assert "85.3%" not in page(report(memory_utilization=0.853), (), (), "")


@pytest.mark.parametrize("backend", ["emulator", "golden"])
def test_a_back_end_without_time_has_fewer_figures(backend):
    missing = dict.fromkeys(
        ("cycles", "utilization", "counters", "dram_bytes_read", "predicted_cycles")
    )
    text = page(report(backend=backend, **missing), (), (), "")
    Balanced(text)
    assert "cycles" not in text and "0.41 of its bound" in text
