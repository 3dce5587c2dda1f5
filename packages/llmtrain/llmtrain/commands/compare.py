"""llmtrain compare: comparison of runs in a table and a figure."""

from entrostat.commandline import Arguments


def main(args: list[str]) -> int:
    """Compare runs in a table and a figure of entropy, reward and pass@k."""
    parser = Arguments(prog="llmtrain compare", description=main.__doc__)
    parser.add_argument("runs", nargs="+", help="folders of runs")
    parser.add_argument("--out", default="compare.png", help="figure to write (.png, .svg or .pdf)")
    given = parser.parse_args(args)
    from rich.console import Console

    from ..studies.comparison import Run, figure, picture, table

    runs = [Run.read(path) for path in given.runs]
    out = picture(given.out)
    figure(runs, out)
    Console().print(table(runs))
    print(f"figure: {out}")
    return 0
