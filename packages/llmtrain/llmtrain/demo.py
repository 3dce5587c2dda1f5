"""python -m llmtrain.demo: the older name of `llmtrain demo`."""

import sys

from .cli import main

if __name__ == "__main__":
    print("python -m llmtrain.demo is now: llmtrain demo", file=sys.stderr)
    sys.exit(main(["demo", *sys.argv[1:]]))
