// Places on a map, drawn in SVG from the data and the outline of the land that comes with the page: no tiles are asked for.

import { button, countOf, element } from "./elements.js";
import { LAND } from "./land.js";
import { svg } from "./svg.js";

const TALL = 0.56; // of the width
const MARGIN = 0.08; // of the width, around the places
const NARROWEST = 0.5; // degrees
const LISTED = 40;
const CELL = 8; // pixels: places nearer than that are one mark

/** The map of places {number, label, points}; `open(number)` shows a message. */
export function mapElement(places, { open, note, width }) {
  const view = viewOf(places.flatMap(({ points }) => points), width);
  const name = `map of ${countOf(places.length, "place")}`;
  const picture = svg("svg", { class: "map", viewBox: `0 0 ${view.width} ${view.height}`, role: "img", "aria-label": name });
  picture.append(svg("path", { class: "land", d: landPath(view) }), ...gridParts(view));
  for (const { x, y, places: there } of marksOf(places, view)) {
    const [first] = there;
    const title = there.length === 1 ? first.label : `${first.label} and ${countOf(there.length - 1, "other place")}`;
    const radius = 4 + Math.min(8, Math.log2(there.length));
    const mark = svg("circle", { class: "place", cx: x, cy: y, r: radius }, svg("title", {}, title));
    mark.addEventListener("click", () => open(first.number));
    picture.append(mark);
  }
  for (const { points } of places.slice(0, 500)) {
    if (points.length < 2) continue;
    picture.append(svg("polyline", { class: "shape", points: points.map((point) => at(point, view).join(",")).join(" ") }));
  }
  const said = [countOf(places.length, "place"), note].filter(Boolean).join(" ");
  return element("div", {}, element("p", { class: "note" }, said), picture, placeList(places, open));
}

function placeList(places, open) {
  const items = places.slice(0, LISTED).map(({ number, label, points: [[x, y]] }) => {
    const go = button(label, () => open(number), { class: "quiet", title: `message ${number}` });
    return element("li", {}, go, " ", element("span", { class: "note" }, `${y.toFixed(3)}, ${x.toFixed(3)}`));
  });
  return element("ul", { class: "places", "aria-label": "Places" }, ...items);
}

/** The part of the world that has all points: {width, height, west, north, scale}, in pixels and pixels a degree. */
function viewOf(points, width) {
  const height = Math.round(width * TALL);
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const [west, east] = [least(xs), -least(xs.map((x) => -x))];
  const [south, north] = [least(ys), -least(ys.map((y) => -y))];
  const wide = Math.max(NARROWEST, (east - west) * (1 + 2 * MARGIN));
  const tall = Math.max(NARROWEST, (north - south) * (1 + 2 * MARGIN));
  const scale = Math.min(width / Math.min(wide, 360), height / Math.min(tall, 180));
  const [middleX, middleY] = [(west + east) / 2, (south + north) / 2];
  return { width, height, west: middleX - width / scale / 2, north: middleY + height / scale / 2, scale };
}

function least(numbers) {
  return numbers.reduce((least, each) => Math.min(least, each), Infinity);
}

function at([x, y], { west, north, scale }) {
  return [(x - west) * scale, (north - y) * scale].map((each) => Math.round(each * 10) / 10);
}

function landPath(view) {
  return LAND.map((ring) => {
    const points = [];
    for (let index = 0; index < ring.length; index += 2) points.push(at([ring[index], ring[index + 1]], view).join(" "));
    return `M${points.join("L")}Z`;
  }).join("");
}

/** Lines of longitude and latitude, with their degrees. */
function gridParts(view) {
  const { width, height, west, north, scale } = view;
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60].find((each) => each * scale > 70) ?? 60;
  const digits = step < 1 ? 1 : 0;
  const parts = [];
  for (let x = Math.ceil(west / step) * step; x <= west + width / scale; x += step) {
    const [left] = at([x, 0], view);
    parts.push(svg("path", { class: "grid", d: `M${left} 0V${height}` }));
    parts.push(svg("text", { class: "degrees", x: left + 3, y: height - 5 }, degrees(x, digits, "E", "W")));
  }
  for (let y = Math.floor(north / step) * step; y >= north - height / scale; y -= step) {
    const [, top] = at([0, y], view);
    parts.push(svg("path", { class: "grid", d: `M0 ${top}H${width}` }));
    parts.push(svg("text", { class: "degrees", x: 3, y: top - 3 }, degrees(y, digits, "N", "S")));
  }
  return parts;
}

function degrees(value, digits, positive, negative) {
  const number = Math.abs(value).toFixed(digits);
  return `${number}°${Number(number) === 0 ? "" : value > 0 ? positive : negative}`;
}

/** Places that are nearer than a mark is wide are one. */
function marksOf(places, view) {
  const marks = new Map();
  for (const place of places) {
    const [x, y] = at(centre(place.points), view);
    const key = `${Math.round(x / CELL)} ${Math.round(y / CELL)}`;
    if (!marks.has(key)) marks.set(key, { x, y, places: [] });
    marks.get(key).places.push(place);
  }
  return marks.values();
}

function centre(points) {
  const sums = points.reduce(([a, b], [x, y]) => [a + x, b + y], [0, 0]);
  return sums.map((sum) => sum / points.length);
}
