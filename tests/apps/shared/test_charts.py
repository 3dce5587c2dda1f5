"""Frames and specifications of pictures."""

import numpy as np
import pytest

from entrostat_app.shared import charts
from entrostat_app.shared.charts import Panel
from entrostat_app.shared.palette import COLOURS


def test_table_is_long():
    frame = charts.table({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0]})
    assert frame.to_dict("list") == {
        "x": [0, 1, 2, 0, 1],
        "series": ["a", "a", "a", "b", "b"],
        "value": [1.0, 2.0, 3.0, 4.0, 5.0],
    }
    assert charts.table({"a": [1.0, 2.0]}, x=[10, 20])["x"].tolist() == [10, 20]


def test_bands_are_the_least_and_the_greatest_run():
    frame = charts.bands({"a": np.array([[1.0, 4.0], [3.0, 0.0]])})
    assert frame["value"].tolist() == [2.0, 2.0]
    assert frame["low"].tolist() == [1.0, 0.0]
    assert frame["high"].tolist() == [3.0, 4.0]


@pytest.mark.parametrize(("low", "high"), [(0, 80), (0, 1), (-3, 7), (0.1, 0.2), (0, 1234)])
def test_ticks_are_round_and_few(low, high):
    ticks = charts.round_ticks(low, high)
    assert 3 <= len(ticks) <= 9
    assert low - 1e-9 <= min(ticks)
    assert max(ticks) <= high + 1e-9


def test_panels_share_a_frame_and_an_axis():
    panels = [Panel(title=title, frame=charts.table({"x": [1.0, 2.0, 3.0]})) for title in ("one", "two")]
    picture = charts.linked(panels, "rollout")
    assert len(picture.spec["vconcat"]) == 2
    assert picture.frame["panel"].tolist() == ["one"] * 3 + ["two"] * 3
    assert picture.spec["resolve"]["scale"]["x"] == "shared"


def test_a_specification_is_made_once_for_its_shape():
    first = charts.linked([Panel(title="one", frame=charts.table({"x": [1.0, 2.0]}))], "rollout")
    again = charts.linked([Panel(title="one", frame=charts.table({"x": [5.0, 9.0]}))], "rollout")
    other = charts.linked([Panel(title="one", frame=charts.table({"y": [5.0, 9.0]}))], "rollout")
    assert first.spec is again.spec
    assert other.spec is not first.spec


def test_names_are_at_the_ends_of_a_few_lines_apart():
    close = {"a": [1.0, 2.0], "b": [1.0, 2.01], "c": [1.0, np.nan]}
    ends = charts.linked([Panel(title="one", frame=charts.table(close))], "rollout", height=150).frame
    told = ends.dropna(subset="label").set_index("series")
    assert told["x"].to_dict() == {"a": 1, "b": 1, "c": 0}
    assert told["label"]["b"] - told["label"]["a"] == pytest.approx(charts.ROW / 150 * 1.01)
    assert told["label"].loc[["a", "b"]].mean() == pytest.approx(2.005)
    assert told["label"]["c"] == 1.0


@pytest.mark.parametrize("names", [["a", "x" * 30], list("abcdef"), ["alone"]])
def test_long_names_and_many_lines_have_a_legend(names):
    panel = Panel(title="one", frame=charts.table({name: [1.0, 2.0] for name in names}))
    picture = charts.linked([panel], "rollout")
    assert picture.frame["label"].isna().all()
    legends = [layer["encoding"]["color"].get("legend") for layer in picture.spec["vconcat"][0]["layer"][:1]]
    assert bool(legends[0]) == (len(names) > 1)


def luminance(colour: str) -> float:
    """Return the relative luminance as defined in WCAG."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("ground", ["#ffffff", "#0e1117"])
def test_lines_stand_out_on_light_and_dark(ground):
    for colour in COLOURS:
        light, dark = sorted((luminance(colour), luminance(ground)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) > 2
