"""Flags of commands that read files of questions."""

import argparse

from entrostat.commandline import Arguments

from .read import Read, read


def add_flags(parser: Arguments) -> None:
    """Add the flags that say how files are read."""
    parser.add_argument("--prompt-key", default="", help="column of the prompt (dotted for a field within one)")
    parser.add_argument(
        "--answer-key", default="", help="column of the ground truth, such as reward_model.ground_truth"
    )
    parser.add_argument("--split", default="train", help="of a folder or a data set of the hub (default %(default)s)")
    parser.add_argument("--skip-bad", action="store_true", help="leave out rows that cannot be used, and count them")


def read_as_told(name: str, given: argparse.Namespace) -> Read:
    """Read a file of questions as the flags say."""
    keys = {"prompt_key": given.prompt_key, "answer_key": given.answer_key}
    return read(name, split=given.split, skip_bad=given.skip_bad, **keys)
