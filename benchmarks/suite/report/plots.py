"""SVG plots of results: first what is drawn, as plain data, then the drawing with matplotlib.

A plot carries a digest of its data, so that a stored plot can be compared with the results also where another version
of matplotlib would draw it differently. Its colours do not depend on the scheme of the page: it brings its background.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final, TypeVar

from benchmarks.suite.report.figures import Measure, has_failed, measured
from benchmarks.suite.report.standings import Field, Standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """Points of one competitor on logarithmic axes, the fitted line, and where it failed."""

    label: str
    is_ours: bool
    points: Sequence[Point]
    fitted: Sequence[Point]  # two ends, or none
    failed: Sequence[Point]  # at the time limit


@dataclass(frozen=True)
class Scaling:
    """A figure against the number of solutions."""

    title: str
    unit: str
    lines: Sequence[Line]

    def draw(self) -> str:
        """Return the plot as SVG."""
        return _svg(self, _draw_scaling)


@dataclass(frozen=True)
class Bar:
    """Groups of one competitor, in percent of those expected."""

    label: str
    is_ours: bool
    shares: Mapping[str, float]


@dataclass(frozen=True)
class Bars:
    """Groups of all competitors: right, split and missing of those expected, and beyond them merged and wrong ones."""

    title: str
    bars: Sequence[Bar]

    def draw(self) -> str:
        """Return the plot as SVG."""
        return _svg(self, _draw_bars)


Plot = Scaling | Bars
P = TypeVar("P", Scaling, Bars)

# what is plotted against the number of solutions: title, unit, the figure, its divisor
_SCALED: Final[Mapping[str, tuple[str, str, Measure, float]]] = {
    "time": ("Time to the last result", "seconds", lambda row: row.seconds, 1),
    "first": ("Time to the first result", "seconds", lambda row: row.first_seconds, 1),
    "memory": ("Peak memory of all processes", "MiB", lambda row: row.peak_bytes, 2**20),
}
KINDS: Final = (*_SCALED, "groups")
_GROUPS: Final = (
    "right",
    "split",
    "missing",
    "merged",
    "wrong",
)  # the first three add up to those expected


def plots(fields: Sequence[Field]) -> dict[str, Plot]:
    """Return the plots of results by the name of their file, without `.svg`.

    A field with one size has no scaling; a field in which nothing ended has no bars.
    """
    found: dict[str, Plot] = {}
    for field in fields:
        for name, (title, unit, measure, divisor) in _SCALED.items():
            lines = [
                line
                for standing in field.standings
                if (line := _line(standing, measure, divisor, with_failures=name == "time")).points
                or line.failed
            ]
            if len(field.sizes) > 1 and any(line.points for line in lines):
                found[file_name(name, field)] = Scaling(title, unit, lines)
        if bars := [bar for standing in field.standings if (bar := _bar(standing)) is not None]:
            found[file_name("groups", field)] = Bars("Groups", bars)
    return found


def file_name(kind: str, field: Field) -> str:
    """Return the name of the file of a field's plot, without `.svg`."""
    return re.sub(r"[^a-z0-9]+", "-", f"{kind} {field.dataset} {field.engine}".lower()).strip("-")


def digest(plot: Plot) -> str:
    """Return a digest of what is drawn, which the SVG carries, too."""
    data = json.dumps(asdict(plot), sort_keys=True)
    return f"data sha256:{hashlib.sha256(data.encode()).hexdigest()}"


def stored_digest(svg: str) -> str | None:
    """Return the digest that an SVG carries; None if it is no plot of a report."""
    found = re.search(r"data sha256:[0-9a-f]{64}", svg)
    return found and found[0]


def _line(standing: Standing, measure: Measure, divisor: float, *, with_failures: bool) -> Line:
    points, failed = [], []
    for row in standing.rows:
        solutions = standing.solutions.get((row.dataset, row.size, row.query), 0)
        if solutions <= 0:
            continue
        value = measured(row, measure)
        if value:
            points.append((float(solutions), value / divisor))
        elif with_failures and has_failed(row):
            failed.append((float(solutions), standing.limits[str(row.size)]))
    fit = standing.fit(measure)
    fitted: list[Point] = []
    label = standing.title
    if fit is not None:
        fitted = [(float(x), fit.at(x) / divisor) for x in (fit.low, fit.high)]
        label = f"{label} (n{_superscript(fit.exponent)})"
    return Line(label, standing.is_ours, sorted(points), fitted, sorted(failed))


def _superscript(exponent: float) -> str:
    return f"{exponent:.2f}".replace("-0.00", "0.00").translate(
        str.maketrans("0123456789.-", "⁰¹²³⁴⁵⁶⁷⁸⁹·⁻")
    )


def _bar(standing: Standing) -> Bar | None:
    groups = standing.groups
    if groups is None or not groups.expected:
        return None
    return Bar(
        standing.title,
        standing.is_ours,
        {kind: round(100 * getattr(groups, kind) / groups.expected, 6) for kind in _GROUPS},
    )


_CARD: Final = "#f5f7fa"
_TEXT: Final = "#1f2933"
_OURS: Final = "#1d4ed8"
_OF_OURS: Final = ("-", "--", "-.", ":")
# Okabe and Ito's colours without the blue that is near ours; told apart by their marks as well
_OTHERS: Final = (
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#b58900",
    "#56b4e9",
    "#52606d",
    "#8b5a2b",
    "#7b2d8b",
)
_MARKS: Final = "osD^vP<>hp"
_OF_KIND: Final[Mapping[str, tuple[str, str]]] = {  # colour and hatch
    "right": ("#1d4ed8", ""),
    "merged": ("#e69f00", "//"),
    "split": ("#56b4e9", "\\\\"),
    "wrong": ("#d55e00", "xx"),
    "missing": ("#8895a7", ".."),
}
_STYLE: Final[dict[str, Any]] = {
    "svg.hashsalt": "construct-messages",  # equal results give equal files
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.parse_math": False,  # names are shown as they are
    "text.color": _TEXT,
    "axes.labelcolor": _TEXT,
    "axes.edgecolor": "#9aa4b2",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _TEXT,
    "ytick.color": _TEXT,
    "figure.facecolor": _CARD,
    "axes.facecolor": _CARD,
    "savefig.facecolor": _CARD,
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
}


def _svg(plot: P, draw: Callable[[P, Figure], None]) -> str:
    import matplotlib  # the text of a report needs none of it
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)  # type: ignore[arg-type] # names of settings are a type of their own
        figure = Figure(layout=ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.12))
        draw(plot, figure)
        written = StringIO()
        metadata = {"Date": None, "Title": plot.title, "Description": digest(plot)}
        FigureCanvasSVG(figure).print_svg(written, metadata=metadata)  # type: ignore[no-untyped-call] # matplotlib's
    # no white space at the ends of lines
    return "".join(f"{line.rstrip()}\n" for line in written.getvalue().splitlines())


def _draw_scaling(plot: Scaling, figure: Figure) -> None:
    figure.set_size_inches(9.5, 5 + 0.1 * len(plot.lines))
    axes: Axes = figure.add_subplot()
    axes.set(xscale="log", yscale="log", xlabel="solutions", ylabel=plot.unit)
    axes.set_title(plot.title, loc="left", fontweight="bold")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.12g}")
        axis.set_minor_formatter("")
    axes.grid(which="major", color="#d9dee5", linewidth=0.6)
    ours, others = cycle(_OF_OURS), cycle(zip(cycle(_OTHERS), _MARKS, strict=False))
    for line in plot.lines:
        if line.is_ours:
            colour, mark, style, width, order = _OURS, "*", next(ours), 2.4, 4
        else:
            (colour, mark), style, width, order = next(others), "-", 1.3, 3
        xs, ys = zip(*line.points, strict=True) if line.points else ((), ())
        axes.plot(
            xs, ys, mark, color=colour, alpha=0.45, markersize=4, markeredgewidth=0, zorder=order
        )
        ends = zip(*line.fitted, strict=True) if line.fitted else ((), ())
        axes.plot(
            *ends,
            color=colour,
            linestyle=style,
            linewidth=width,
            marker=mark,
            markersize=6,
            label=line.label,
            zorder=order + 1,
        )
        if line.failed:
            axes.plot(
                *zip(*line.failed, strict=True), "x", color=colour, markersize=7, zorder=order
            )
    if any(line.failed for line in plot.lines):
        axes.plot([], [], "x", color=_TEXT, label="failed; drawn at the time limit")
    _draw_slope(plot, axes)
    figure.legend(
        loc="outside lower center",
        ncols=2,
        fontsize=8,
        title="program (fitted growth)",
        title_fontsize=8,
    )


def _draw_slope(plot: Scaling, axes: Axes) -> None:
    """Draw what grows linearly, for the eye."""
    points = [point for line in plot.lines for point in line.points]
    low, high = min(x for x, _ in points), max(x for x, _ in points)
    bottom = min(y for _, y in points)
    if high > low:
        top = min(max(y for _, y in points), bottom * high / low)
        start = math.sqrt(low * high * bottom / top)  # in the middle
        axes.plot(
            [start, start * top / bottom],
            [bottom, top],
            "--",
            color="#9aa4b2",
            linewidth=1,
            label="linear (n¹)",
        )


def _draw_bars(plot: Bars, figure: Figure) -> None:
    figure.set_size_inches(9.5, 1.2 + 0.3 * len(plot.bars))
    axes: Axes = figure.add_subplot()
    axes.set_title(plot.title, loc="left", fontweight="bold")
    positions = range(len(plot.bars))
    starts = [0.0] * len(plot.bars)
    for kind in _GROUPS:
        colour, hatch = _OF_KIND[kind]
        widths = [bar.shares[kind] for bar in plot.bars]
        axes.barh(
            positions,
            widths,
            left=starts,
            height=0.7,
            color=colour,
            hatch=hatch,
            edgecolor=_CARD,
            linewidth=0,
            label=kind,
        )
        starts = [start + width for start, width in zip(starts, widths, strict=True)]
    widest = 250  # what is far beyond would hide the rest
    box = {"boxstyle": "round,pad=0.2", "facecolor": _CARD, "edgecolor": "none"}
    axes.set_xlim(0, min(max(*starts, 100.0) * 1.05, widest))
    for position, end in zip(positions, starts, strict=True):
        if end > widest:
            axes.annotate(
                f"{end:,.0f} % →", (widest, position), ha="right", va="center", fontsize=8, bbox=box
            )
    axes.set_xlabel("percent of the groups expected; beyond 100: delivered, but not expected")
    axes.set_yticks(positions, [bar.label for bar in plot.bars])
    axes.invert_yaxis()
    axes.axvline(100, color=_TEXT, linewidth=0.8)
    for label, bar in zip(axes.get_yticklabels(), plot.bars, strict=True):
        label.set_fontweight("bold" if bar.is_ours else "normal")
    figure.legend(loc="outside lower center", ncols=len(_GROUPS), fontsize=8)
