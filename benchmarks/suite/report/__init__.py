"""The report of the benchmark suite: a Markdown page, SVG plots and a sortable table, from a file of results."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.suite.records import Results
from benchmarks.suite.report import plots
from benchmarks.suite.report.pages import index
from benchmarks.suite.report.sortable import sortable
from benchmarks.suite.report.standings import fields

# where the documentation has the report and the results it is made of
STORED: Final = Path(__file__).parents[3] / "docs" / "benchmarks"


def report(source: Path = STORED / "results.json", output: Path = STORED) -> None:
    """Write the report of a file of results, and the results beside it, to a folder.

    Plots of earlier results are removed. Without `results.json` in the documentation, its pages say that nothing has
    been measured.

    Raises:
        FileNotFoundError: if there is no such file of results.
    """
    results = (
        None if source == STORED / "results.json" and not source.exists() else Results.read(source)
    )
    drawn = (
        {}
        if results is None
        else {name: plot.draw() for name, plot in plots.plots(fields(results)).items()}
    )
    output.mkdir(parents=True, exist_ok=True)
    for name, text in texts(results).items():
        (output / name).write_text(text, encoding="utf-8")
    for picture in output.glob("*.svg"):
        if plots.stored_digest(picture.read_text(encoding="utf-8")):
            picture.unlink()
    for name, svg in drawn.items():
        (output / f"{name}.svg").write_text(svg, encoding="utf-8")
    if results is not None:
        results.write(output / "results.json")


def texts(results: Results | None) -> dict[str, str]:
    """Return what the report says, without its plots, by the name of its files."""
    drawn = {} if results is None else plots.plots(fields(results))
    page = {"index.md": index(results, drawn)}
    return page if results is None else {**page, "table.html": sortable(results.rows)}
