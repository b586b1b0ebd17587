// Dates and times on a line, drawn in SVG: a row for each property, and how many there are where they lie close.

import { button, countOf, element } from "./elements.js";
import { svg } from "./svg.js";

const LEFT = 8;
const ROW = 54;
const BARS = 90;
const LISTED = 40;
const ROWS = 12;
const DAY = 86_400_000;

/** The timeline of times {number, label, predicate, time, text}; `open(number)` shows a message. */
export function timelineElement(times, { open, note, width, nameOf = (predicate) => predicate }) {
  const sorted = times.toSorted((a, b) => a.time - b.time);
  const [first, last] = [sorted[0].time, sorted.at(-1).time];
  const span = Math.max(1000, last - first);
  const byPredicate = Map.groupBy(sorted, ({ predicate }) => predicate);
  const rows = [...byPredicate].sort(([, a], [, b]) => b.length - a.length).slice(0, ROWS);
  const height = rows.length * ROW + 24;
  const name = `timeline of ${countOf(times.length, "date")}`;
  const picture = svg("svg", { class: "timeline", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name });
  const x = (time) => LEFT + ((time - first) / span) * (width - 2 * LEFT);
  for (const { time, text } of ticksOf(first, span, width < 500 ? 4 : 6)) {
    picture.append(svg("path", { class: "grid", d: `M${x(time)} 0V${height - 18}` }));
    const anchor = x(time) > width - 60 ? "end" : "start";
    picture.append(svg("text", { class: "degrees", x: x(time) + 2, y: height - 5, "text-anchor": anchor }, text));
  }
  for (const [index, [predicate, those]] of rows.entries()) {
    const bottom = (index + 1) * ROW;
    picture.append(svg("text", { x: LEFT, y: bottom - ROW + 13 }, nameOf(predicate)));
    picture.append(...barsOf(those, { first, span, bottom, width, open }));
  }
  const said = [countOf(times.length, "date"), note].filter(Boolean).join(" ");
  return element("div", {}, element("p", { class: "note" }, said), picture, timeList(sorted, open));
}

function barsOf(times, { first, span, bottom, width: whole, open }) {
  const width = (whole - 2 * LEFT) / BARS;
  const bars = Map.groupBy(times, ({ time }) => Math.min(BARS - 1, Math.floor(((time - first) / span) * BARS)));
  const most = Math.max(...[...bars.values()].map(({ length }) => length));
  return [...bars].map(([place, those]) => {
    const tall = 4 + (those.length / most) * (ROW - 26);
    const [{ text, label, number }] = those;
    const title = those.length === 1 ? `${text} ${label}` : `${countOf(those.length, "date")}, the first ${text}`;
    const x = LEFT + place * width;
    const attributes = { class: "bar", x, y: bottom - 4 - tall, width: Math.max(2, width - 1), height: tall };
    const bar = svg("rect", attributes, svg("title", {}, title));
    bar.addEventListener("click", () => open(number));
    return bar;
  });
}

/** The marks of the line: years, months, days or times. */
function ticksOf(first, span, count) {
  const format = span > 4000 * DAY ? { year: "numeric" } : span > 60 * DAY ? { year: "numeric", month: "short" } : null;
  const options = format ?? (span > 2 * DAY ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit" });
  const written = new Intl.DateTimeFormat("en", { ...options, timeZone: "UTC" });
  return Array.from({ length: count }, (_, index) => {
    const time = first + (span * index) / (count - 1);
    return { time, text: written.format(new Date(time)) };
  });
}

function timeList(times, open) {
  const items = times.slice(0, LISTED).map(({ text, label, number }) => {
    const go = button(label || `message ${number}`, () => open(number), { class: "quiet", title: `message ${number}` });
    return element("li", {}, element("time", { datetime: text }, text), " ", go);
  });
  return element("ul", { class: "places", "aria-label": "Dates" }, ...items);
}
