"""Exports, read back."""

import io
import json
import shlex
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from entrostat.settings.commandline import parse_flags
from entrostat_app.shared import charts, exports
from entrostat_app.shared.charts import Panel, Picture
from toybandit import Config
from toybandit.run import RunFlags

PICTURE = charts.linked([Panel(title="one", frame=charts.table({"a": [1.0, 2.5], "b": [0.1, 0.2]}))], "rollout")


def test_csv_and_parquet_hold_the_frame():
    pd.testing.assert_frame_equal(pd.read_csv(io.BytesIO(exports.csv(PICTURE.frame))), PICTURE.frame, check_dtype=False)
    pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(exports.parquet(PICTURE.frame))), PICTURE.frame)


def test_svg_and_png_are_pictures():
    root = ET.fromstring(exports.svg(PICTURE))
    assert root.tag.endswith("svg")
    assert float(root.attrib["width"]) >= exports.WIDTH
    lines = [path for e in root.iter() if "mark-line" in e.attrib.get("class", "") for path in e]
    assert len(lines) == 2  # one for each series
    image = Image.open(io.BytesIO(exports.png(PICTURE)))
    assert image.width >= 2 * exports.WIDTH
    assert len(image.convert("L").getcolors()) > 10


def test_a_picture_keeps_small_numbers_and_leaves_out_what_is_none():
    frame = charts.table({"a": [1e-300, 2.5e-13, np.nan, np.inf]})
    frame["text"] = [None, "x", "y", "z"]
    spec = exports._with_data(Picture({}, frame, ""))
    assert [row["value"] for row in spec["data"]["values"]] == [1e-300, 2.5e-13, None, None]
    assert [row["text"] for row in spec["data"]["values"]] == [None, "x", "y", "z"]
    json.dumps(spec, allow_nan=False)


@pytest.mark.parametrize(
    "config",
    [
        Config(),
        Config(
            env="on", controller="entropic", target=0.6, states=4, lr=0.25, controller_args={"tau": 0, "auto": True}
        ),
        Config(env="exact", controller="clip_higher+steer", rollouts=10, controller_args={"steer.lambda_min": 0.5}),
        Config(env="det", update="adam", gradient="exact", passes=1),
    ],
)
def test_the_command_makes_the_configuration_again(config):
    words = shlex.split(exports.run_command(config, (3, 4)))
    assert words[:2] == ["toybandit", "run"]
    flags = parse_flags(RunFlags, words[2:], prog="toybandit run", description="")
    assert flags.config() == config
    assert (flags.first_seed, flags.seeds) == (3, 2)
