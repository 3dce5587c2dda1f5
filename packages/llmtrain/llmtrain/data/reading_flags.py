"""Flags of commands that read question files."""

import argparse

from entrostat.settings.commandline import Arguments

from .read import Read, read
from .row_filter import RowFilter


def add_flags(parser: Arguments) -> None:
    """Add the flags for reading files."""
    parser.add_argument("--prompt-key", default="", help="column of the prompt (dotted for a field within a column)")
    parser.add_argument(
        "--answer-key", default="", help="column of the ground truth, such as reward_model.ground_truth"
    )
    parser.add_argument("--source-key", default="", help="column by which results are told apart, such as level")
    parser.add_argument("--split", default="train", help="split of a folder or a hub data set (default %(default)s)")
    parser.add_argument(
        "--keep", nargs="+", default=[], metavar="COLUMN=VALUE", help="rows to keep, such as ability=math"
    )
    parser.add_argument("--skip-bad", action="store_true", help="skip and count rows that cannot be used")


def read_as_told(name: str, given: argparse.Namespace) -> Read:
    """Read a question file with the settings of the flags."""
    keys = {"prompt_key": given.prompt_key, "answer_key": given.answer_key, "source_key": given.source_key}
    keep = RowFilter(given.keep)
    found = read(name, split=given.split, skip_bad=given.skip_bad, keep=keep, **keys)
    keep.check()
    return found
