"""The list of public logs, the scores of the tool on them, and the page."""

import importlib
import json
import re
from pathlib import Path

import pytest

field = importlib.import_module("benchmarks.field")
ROOT = Path(__file__).parents[2]
LOGS = json.loads(field.LIST.read_text(encoding="utf-8"))


def test_every_log_has_an_address_a_checksum_and_two_readers():
    left_out = {82, 84, 121}  # no single run of two of them has 30 entropies; 121 was a copy of 91
    assert [log["number"] for log in LOGS] == sorted({*range(1, LOGS[-1]["number"] + 1)} - left_out)
    assert len({log["sha256"] for log in LOGS}) == len(LOGS)
    for log in LOGS:
        assert re.fullmatch("[0-9a-f]{40}", log["commit"])
        assert re.fullmatch("[0-9a-f]{64}", log["sha256"])
        assert [set(labels) for labels in log["labels"]] == [set(field.KINDS)] * 2
        assert set(log["first_sight"] or ()) <= field.KINDS.keys()


def labelled(*pairs):
    return [{"labels": [{"fell": first}, {"fell": second}]} for first, second in pairs]


def test_scores_by_hand():
    """Seven logs: two that fell (one told), one that did not but was told, one not read, and three without a label."""
    logs = labelled((30, 28), (0, 5), (False, False), (False, False), (True, False), (None, True), (None, None))
    told = [["fell"], [], ["fell"], None, [], ["fell"], []]
    assert field.score(logs, told, ["fell"]) == (4, 2, 1, 1, 1)
    assert field.cells(field.score(logs, told, ["fell"])) == "1 of 4 (25%) | 50% | 1 of 2 | 1"


def test_the_page_has_the_scores_of_first_sight():
    page = field.PAGE.read_text(encoding="utf-8")
    for of in field.ASIDE.values():
        some = [log for log in LOGS if of(log["number"])]
        told = [log["first_sight"] for log in some]
        for kinds in ([kind] for kind in field.KINDS):
            assert field.cells(field.score(some, told, kinds)) in page
        assert field.cells(field.score(some, told, field.KINDS)) in page
    assert all(f"/blob/{log['commit']}/" in page for log in LOGS)


def test_a_file_that_is_another_is_refused(tmp_path):
    (tmp_path / f"01-{Path(LOGS[0]['path']).name}").write_text("another")
    with pytest.raises(ValueError, match=r"is not the file of field\.json: remove it, and it is fetched again"):
        field.place(LOGS[0], tmp_path)
