"""Page of what is here of the papers: it is that of its data, and its data leaves nothing out and points to nothing."""

import re
from copy import deepcopy

import pytest
from benchmarks.pages.coverage import DOCS, ITEMS, entries, measured, page, read_papers

from entrostat.settings.plain_yaml import load_yaml

CONTENT = load_yaml(ITEMS)


def test_the_page_is_that_of_the_registries():
    """Remedy: python -m benchmarks.pages.coverage > docs/coverage.md"""
    committed = (DOCS / "coverage.md").read_text()
    assert re.sub(r"about [\d,]+ GPU", "about 0 GPU", committed) == page(lambda name: 0.0)


@pytest.mark.slow
def test_the_estimates_on_the_page_are_those_of_the_plans():
    """Remedy: python -m benchmarks.pages.coverage > docs/coverage.md"""
    assert (DOCS / "coverage.md").read_text() == page()


def test_no_row_is_missing_without_a_reason():
    rows = [
        line.split(" | ")
        for line in page(lambda name: 0.0).splitlines()
        if line.startswith("| ") and line.count(" | ") == 3
    ]
    told = [row for row in rows if row[0] != "| item"]
    assert len(told) == sum(len(paper["items"]) for paper in CONTENT["papers"])
    for row in told:
        assert row[3].strip(" |")
        assert row[2] != "–" or row[3].startswith("no: ")
    assert len({(row[0], row[1]) for row in told}) == len(told)


def test_what_the_registries_hold_of_a_paper_is_counted():
    """Recipes by their files, claims by the paper that they name, figures by their names."""
    steer = next(paper for paper in read_papers(CONTENT) if paper.claims == "STEER")
    found = list(entries(steer))
    assert ("claim", "four-quadrants-det") in found
    assert ("figure", "steer-table-5") in found  # one that a bandit cannot show
    assert ("recipe", "steer/qwen2.5-math-7b-lower-4-0.2") in found
    assert not [name for kind, name in found if kind == "recipe" and not name.startswith("steer/")]


def test_a_recipe_that_was_run_says_so():
    row = next(
        row for paper in read_papers(CONTENT) for row in paper.rows if (paper.claims, row.item) == ("OPEFO", "figure 5")
    )
    assert "1 recipe not run at full size" in measured(row, {})
    told = measured(row, {"opefo/qwen2.5-math-7b": "52.1 of 52.4 points"})
    assert told.endswith("opefo/qwen2.5-math-7b: 52.1 of 52.4 points")


WRONG = {
    "claim nothing": "there is no claim 'nothing'",
    "figure steer-99": "there is no figure 'steer-99'",
    "recipe steer/nothing*": "no recipe is called 'steer/nothing*'",
    "controller nothing": "there is no controller 'nothing'",
    "advantage nothing": "there is no advantage 'nothing'",
    "eval nothing": "there are no evaluation settings 'nothing'",
    "command nothing": "llmtrain has no command 'nothing'",
    "code entrostat.entropy_change:nothing": "there is no entrostat.entropy_change:nothing",
    "code nothing.at_all:nothing": "there is no nothing.at_all:nothing",
    "page theory.md": "'page theory.md' points nowhere: begin with claim, figure",
}


@pytest.mark.parametrize("pointer", WRONG)
def test_a_pointer_to_nothing_is_one_line(pointer):
    content = deepcopy(CONTENT)
    content["papers"][2]["items"][0]["here"].append(pointer)
    with pytest.raises(ValueError, match=re.escape(f"coverage.yaml: STEER, equation 1: {WRONG[pointer]}")) as caught:
        read_papers(content)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"here": []}, "STEER, equation 1: neither a pointer nor a reason"),
        ({"here": ["figure steer-6"]}, "STEER, equation 1: neither a pointer nor a reason"),  # no picture, no reason
        ({"why": "x"}, "STEER, equation 1: unknown keys why"),
    ],
)
def test_an_item_without_anything_is_refused(change, said):
    content = deepcopy(CONTENT)
    content["papers"][2]["items"][0] |= change
    with pytest.raises(ValueError, match=said):
        read_papers(content)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("claim steer-remainder", "no item points to the claim 'steer-remainder'"),
        ("figure steer-9", "no item points to the figure 'steer-9'"),
        ("recipe steer/", "no item points to the recipe 'steer/qwen"),
    ],
)
def test_what_no_item_points_to_is_named(word, said):
    content = deepcopy(CONTENT)
    for item in content["papers"][2]["items"]:
        if "here" in item:
            item["here"] = ["controller ppo", *(one for one in item["here"] if not one.startswith(word))]
    with pytest.raises(ValueError, match=said):
        read_papers(content)
