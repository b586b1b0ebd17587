// Dates and times on a line, drawn in SVG: a row for each property, and how many there are where they lie close.

import { Chart, TARGET } from "./chart.js";
import { ticksOf, yearText } from "./dates.js";
import { svg } from "./svg.js";

const LEFT = 8;
const ROW = 58;
const FOOT = 24;
const TICK = 110; // pixels that the text of a tick may take
const ROWS = 12;
const DAY = 86_400_000;
const CLOSEST = 1000; // milliseconds that are seen at least

/** The timeline of times, with the list of them; see `Chart` for `options`, and `predicateOf` writes a property. */
export function timelineElement(times, { said = [], predicateOf, ...options }) {
  const sorted = times.toSorted((a, b) => a.time - b.time);
  const scene = new TimeScene(sorted, predicateOf);
  const isBefore = sorted.some(({ year }) => year < 1);
  const era = isBefore ? ["Years are those of XSD 1.1: -0001 is 2 BC, and 0000 is 1 BC"] : [];
  const rest = scene.rest ? [`The picture has the ${ROWS} properties with most dates, the list all ${ROWS + scene.rest}`] : [];
  const written = ({ text, year }) => (year < 1 ? `${text} (${yearText(year)})` : text);
  const detailOf = (thing) => `${predicateOf(thing.predicate)} ${written(thing)}`;
  return new Chart(scene, { ...options, things: sorted, what: "date", said: [...said, ...era, ...rest], detailOf }).element;
}

class TimeScene {
  constructor(sorted, predicateOf) {
    this.name = "timeline";
    this.predicateOf = predicateOf;
    const byPredicate = [...Map.groupBy(sorted, ({ predicate }) => predicate)].sort(([, a], [, b]) => b.length - a.length);
    this.rows = byPredicate.slice(0, ROWS);
    this.rest = byPredicate.length - this.rows.length;
  }

  /** A view of some times: {first, last}. */
  fit(times) {
    const all = times.map(({ time }) => time);
    const [first, last] = all.reduce(([least, most], each) => [Math.min(least, each), Math.max(most, each)], [Infinity, -Infinity]);
    return first === last ? { first: first - DAY, last: last + DAY } : { first, last };
  }

  zoomed({ first, last }, factor, mark) {
    const middle = mark === null ? (first + last) / 2 : (mark.from + mark.to) / 2;
    const half = Math.max(CLOSEST, (last - first) / factor) / 2;
    return { first: middle - half, last: middle + half };
  }

  moved({ first, last }, dx) {
    const by = (dx * (last - first)) / (this.width - 2 * LEFT);
    return { first: first - by, last: last - by };
  }

  draw(view, width) {
    this.width = width;
    const height = this.rows.length * ROW + FOOT;
    const picture = svg("svg", { class: "timeline", viewBox: `0 0 ${width} ${height}` });
    const x = (time) => LEFT + ((time - view.first) / (view.last - view.first)) * (width - 2 * LEFT);
    for (const { time, text } of ticksOf(view.first, view.last, Math.max(2, Math.floor(width / TICK)))) {
      picture.append(svg("path", { class: "grid", d: `M${x(time)} 0V${height - 18}` }));
      const isLate = x(time) > width - TICK;
      picture.append(svg("text", { class: "degrees", x: x(time) + (isLate ? -2 : 2), y: height - 5, "text-anchor": isLate ? "end" : "start" }, text));
    }
    const marks = [];
    let count = 0;
    for (const [index, [predicate, times]] of this.rows.entries()) {
      const bottom = (index + 1) * ROW;
      const seen = times.filter(({ time }) => time >= view.first && time <= view.last);
      count += seen.length;
      picture.append(svg("text", { class: "property", x: LEFT, y: bottom - ROW + 13 }, this.predicateOf(predicate)));
      marks.push(...marksOf(seen, { x, bottom, width }));
    }
    return { picture, marks, count };
  }
}

/** The bars of a row, each wide enough for a finger; one of a single time stands where that is. */
function marksOf(times, { x, bottom, width }) {
  const most = Math.max(1, Math.floor((width - 2 * LEFT) / TARGET));
  const wide = (width - 2 * LEFT) / most;
  const bars = [...Map.groupBy(times, ({ time }) => Math.min(most - 1, Math.floor((x(time) - LEFT) / wide)))];
  const highest = bars.reduce((high, [, { length }]) => Math.max(high, length), 1);
  return bars.map(([place, things]) => {
    const [from, to] = [things[0].time, things.at(-1).time];
    const left = LEFT + place * wide;
    const tall = 6 + (things.length / highest) * (ROW - TARGET - 8);
    const bar = from === to ? { x: x(from) - 2, width: 4 } : { x: left + 1, width: wide - 2 };
    return {
      ...{ x: left + wide / 2, y: bottom, from, to, things },
      shapes: [
        svg("rect", { class: "target", x: left, y: bottom - ROW + 18, width: wide, height: ROW - 20 }),
        svg("rect", { class: "bar", ...bar, y: bottom - 2 - tall, height: tall }),
      ],
    };
  });
}
