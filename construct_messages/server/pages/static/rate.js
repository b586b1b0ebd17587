// The chart of a stream's rate: the server draws it first (streams/html_view.py), and here it goes on.

const MINUTE = 60_000;
const HEIGHT = 24;

/** The `d` of an SVG path: a stroke for each minute. */
export function pathOf(counts) {
  const peak = Math.max(...counts);
  const strokes = counts.map((count, place) => {
    return count ? `M${2 * place + 1} ${HEIGHT}V${HEIGHT - Math.ceil((count * HEIGHT) / peak)}` : "";
  });
  return strokes.join("");
}

/** What a chart shows, in words. */
export function describedRate(counts) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return "none in the last hour";
  return `${total.toLocaleString("en")} in the last hour, up to ${Math.max(...counts).toLocaleString("en")} a minute`;
}

export class RateChart {
  /** `figure` is the chart that the server has drawn. */
  constructor(figure) {
    this.figure = figure;
    this.counts = figure.dataset.counts.split(" ").map(Number);
    this.end = Math.ceil((Date.now() + 1) / MINUTE) * MINUTE; // of the minute that goes on
    this.isDrawn = true;
    setInterval(() => document.hidden || this.draw(), 1000);
  }

  /** Counts an element that has come now. */
  add() {
    this.move();
    this.counts[this.counts.length - 1] += 1;
    this.isDrawn = false;
  }

  /** Begins the minutes that have begun. */
  move() {
    for (; Date.now() >= this.end; this.end += MINUTE) {
      this.counts = [...this.counts.slice(1), 0];
      this.isDrawn = false;
    }
  }

  draw() {
    this.move();
    if (this.isDrawn) return;
    this.isDrawn = true;
    this.figure.querySelector("path").setAttribute("d", pathOf(this.counts));
    this.figure.querySelector("figcaption").textContent = describedRate(this.counts);
  }
}
