"""Exports: the numbers as CSV and Parquet, the picture as SVG and PNG, and the command that repeats it."""

import io
import math
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
import vl_convert

from toybandit import Config
from toybandit.config import CUSTOM

from .charts import Picture

WIDTH = 800
"""Width of an exported picture, pixels."""


def csv(frame: pd.DataFrame) -> bytes:
    """Return the frame as CSV, UTF-8."""
    return frame.to_csv(index=False).encode()


def parquet(frame: pd.DataFrame) -> bytes:
    """Return the frame as Parquet."""
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def svg(picture: Picture) -> bytes:
    """Return the picture as SVG on white."""
    return vl_convert.vegalite_to_svg(_with_data(picture)).encode()


def png(picture: Picture) -> bytes:
    """Return the picture as PNG on white, twice the size of the SVG."""
    return vl_convert.vegalite_to_png(_with_data(picture), scale=2)


def _with_data(picture: Picture) -> dict[str, Any]:
    """Return the specification with its numbers in it, WIDTH pixels wide."""
    spec = {**picture.spec, "background": "white"}
    numbers = picture.frame.replace([math.inf, -math.inf], math.nan).astype(object)
    spec["data"] = {"values": numbers.where(numbers.notna(), None).to_dict("records")}
    if "vconcat" in spec:
        return {**spec, "vconcat": [{**part, "width": WIDTH} for part in spec["vconcat"]]}
    return {**spec, "width": WIDTH}


def run_command(config: Config, seeds: Sequence[int]) -> str:
    """Return the command line that simulates `config` for these consecutive seeds.

    Raises ValueError if the environment is a custom one.
    """
    words = ["toybandit", "run", "--env", config.env, "--controller", config.controller]
    plain = Config()
    for name, value in vars(config).items():
        if name in ("env", "controller", "controller_args", "success", "success_beta", "logits", "kernel"):
            continue
        if value != getattr(plain, name):
            words += [f"--{name.replace('_', '-')}", str(value)]
    for name, value in config.controller_args.items():
        words += ["--set", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    if config.env == CUSTOM:
        raise ValueError("a custom environment needs a YAML file, which a command line cannot hold")
    return shlex.join([*words, "--seeds", str(len(seeds)), "--first-seed", str(seeds[0])])


@st.fragment
def draw(picture: Picture, name: str, commands: Sequence[str]) -> None:
    """Draw downloads and commands in an expander that is closed at first; a file is made when it is downloaded.

    name: name of the files. commands: command lines that give the same numbers; empty if there are none.
    """
    title = "Export, and repeat on the command line" if commands else "Export"
    box = st.expander(title, icon=":material/download:", key=f"{name}-export", on_change="rerun")
    if box.open:
        with box:
            _draw_open(picture, name, commands)


def _draw_open(picture: Picture, name: str, commands: Sequence[str]) -> None:
    files: dict[str, tuple[Callable[[], bytes], str]] = {
        "CSV": (partial(csv, picture.frame), "text/csv"),
        "Parquet": (partial(parquet, picture.frame), "application/vnd.apache.parquet"),
        "SVG": (partial(svg, picture), "image/svg+xml"),
        "PNG": (partial(png, picture), "image/png"),
    }
    with st.container(horizontal=True):
        for label, (make, mime) in files.items():
            st.download_button(label, make, f"{name}.{label.lower()}", mime, key=f"{name}-{label}", on_click="ignore")
    if commands:
        st.caption("The same numbers from the command line:")
        st.code("\n".join(commands), language="shell", wrap_lines=True)
