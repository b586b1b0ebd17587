// Places on a map, drawn in SVG from the data and the outline of the land that comes with the page: no tiles are asked for.
//
// Latitude and longitude are the axes (equirectangular). Longitudes of a view go on beyond 180, so that places on both
// sides of the 180th meridian can be side by side.

import { Chart, TARGET } from "./chart.js";
import { boundsOf } from "./facets.js";
import { LAND } from "./land.js";
import { svg } from "./svg.js";

const TALL = 0.56; // of the width
const TALLEST = 560; // pixels
const MARGIN = 0.08; // of the width, around the places
const [NARROWEST, CLOSEST] = [0.5, 0.005]; // degrees that are seen at first, and at least
const SMALLEST = 8; // pixels: a smaller outline is hidden by its mark
const COARSE = 100; // pixels a degree: the outline of the land may be off by some of them
const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60];

/** The map of places, with the list of them; see `Chart` for `options`. */
export function mapElement(places, { width, said = [], ...options }) {
  const isCoarse = places.length > 0 && widthOf(places) < width / COARSE;
  const outline = isCoarse ? ["The outline of the land is coarse: it may be off by 20 km"] : [];
  const chart = new Chart(new MapScene(places), {
    ...options,
    things: places,
    what: "place",
    width,
    said: [...said, ...outline],
    detailOf: ({ at: [x, y] }) => `${degrees(y, 3, "N", "S")}, ${degrees(around(x), 3, "E", "W")}`,
  });
  return chart.element;
}

function widthOf(places) {
  const [west, east] = longitudesOf(places);
  return east - west;
}

class MapScene {
  constructor(places) {
    this.name = "map";
    this.places = places.map((place) => ({ place, bounds: place.parts.map((part) => boundsOf(part, 0)) }));
  }

  /** A view of the part of the world that has all of some places: {x, y, span}, its middle and its width in degrees. */
  fit(places) {
    const [west, east] = longitudesOf(places);
    const [south, north] = boundsOf(places.flatMap(({ parts }) => parts.flatMap((part) => ends(part))), 1);
    const wide = Math.max(NARROWEST, (east - west) * (1 + 2 * MARGIN));
    const tall = Math.max(NARROWEST, (north - south) * (1 + 2 * MARGIN));
    return { x: (west + east) / 2, y: (south + north) / 2, span: Math.min(360, Math.max(wide, Math.min(tall, 180) / TALL)) };
  }

  zoomed(view, factor, mark) {
    const [x, y] = mark?.at ?? [view.x, view.y];
    return { x, y, span: Math.min(360, Math.max(CLOSEST, view.span / factor)) };
  }

  moved(view, dx, dy) {
    const { scale } = this.frame;
    return { ...view, x: view.x - dx / scale, y: Math.max(-90, Math.min(90, view.y + dy / scale)) };
  }

  draw(view, width) {
    const height = Math.round(Math.min(width * TALL, TALLEST));
    const scale = Math.max(width / view.span, height / 180);
    const frame = (this.frame = { width, height, scale, west: view.x - width / scale / 2, north: view.y + height / scale / 2 });
    const picture = svg("svg", { class: "map", viewBox: `0 0 ${width} ${height}` });
    picture.append(svg("path", { class: "land", d: landPath(frame) }), ...gridParts(frame));
    const seen = [];
    const lines = []; // which are one element
    for (const { place, bounds } of this.places) {
      const turn = turnOf(place.at[0], frame);
      const outline = place.parts.map((part, index) => outlinePath(part, bounds[index], frame)).join("");
      if (outline !== "" && isArea(place)) picture.append(svg("path", { class: "shape area", d: outline }));
      else lines.push(outline);
      const [x, y] = at([place.at[0] + turn, place.at[1]], frame);
      if (x >= 0 && x <= width && y >= 0 && y <= height) seen.push({ x, y, place });
    }
    picture.append(svg("path", { class: "shape", d: lines.join("") }));
    return { picture, marks: marksOf(seen), count: seen.length };
  }
}

function isArea({ parts }) {
  return parts.every((part) => part.length > 3 && String(part[0]) === String(part.at(-1)));
}

/** The points of a part that have its least and its greatest latitude. */
function ends(part) {
  const [least, most] = boundsOf(part, 1);
  return [[0, least], [0, most]];
}

/** The shortest range of longitudes that has all places: it begins behind the widest gap around the globe. */
function longitudesOf(places) {
  const ranges = places.flatMap(({ parts }) => parts.map((part) => boundsOf(part, 0))).sort(([a], [b]) => a - b);
  const [first] = ranges[0];
  let [east, start, end] = [ranges[0][1], first, null];
  let widest = -Infinity;
  for (const [from, to] of ranges) {
    if (from - east > widest && from > east) [widest, start, end] = [from - east, from, east + 360];
    east = Math.max(east, to);
  }
  const [whole, round] = [east - first, end === null ? Infinity : end - start];
  return whole <= round ? [first, east] : [start, end];
}

/** The whole turns of the globe that bring a longitude, or a range of them, into a frame. */
function turnOf(from, { west, width, scale }, to = from) {
  const middle = west + width / scale / 2;
  return Math.round((middle - (from + to) / 2) / 360) * 360;
}

function at([x, y], { west, north, scale }) {
  return [(x - west) * scale, (north - y) * scale].map((each) => Math.round(each * 10) / 10);
}

/** The path of a line or ring; points that are the same in the picture are one. Empty: it is a point, or out of sight, or
 *  no larger than a mark. */
function outlinePath(part, [from, to], frame) {
  if (part.length < 2) return "";
  const turn = turnOf(from, frame, to);
  if (to + turn < frame.west || from + turn > frame.west + frame.width / frame.scale) return "";
  const [south, north] = boundsOf(part, 1);
  if (Math.max(to - from, north - south) * frame.scale < SMALLEST) return "";
  const steps = [];
  for (const [x, y] of part) {
    const step = at([x + turn, y], frame).join(" ");
    if (step !== steps.at(-1)) steps.push(step);
  }
  return `M${steps.join("L")}`;
}

function landPath(frame) {
  const [west, east] = [frame.west, frame.west + frame.width / frame.scale];
  const paths = [];
  for (const turn of [-360, 0, 360]) {
    if (turn + 190.2 < west || turn - 180 > east) continue;
    for (const ring of LAND) {
      const points = [];
      for (let index = 0; index < ring.length; index += 2) points.push(at([ring[index] + turn, ring[index + 1]], frame).join(" "));
      paths.push(`M${points.join("L")}Z`);
    }
  }
  return paths.join("");
}

/** Lines of longitude and latitude, with their degrees. */
function gridParts(frame) {
  const { width, height, west, north, scale } = frame;
  const step = STEPS.find((each) => each * scale > 70) ?? 60;
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  const parts = [];
  for (let index = Math.ceil(west / step); index * step <= west + width / scale; index += 1) {
    const [left] = at([index * step, 0], frame);
    parts.push(svg("path", { class: "grid", d: `M${left} 0V${height}` }));
    if (left < width - 40) parts.push(svg("text", { class: "degrees", x: left + 3, y: height - 5 }, degrees(around(index * step), digits, "E", "W")));
  }
  for (let index = Math.ceil((north - height / scale) / step); index * step <= north; index += 1) {
    const [, top] = at([0, index * step], frame);
    if (Math.abs(index * step) > 90) continue;
    parts.push(svg("path", { class: "grid", d: `M0 ${top}H${width}` }));
    if (top > 14 && top < height - 18) parts.push(svg("text", { class: "degrees", x: 3, y: top - 3 }, degrees(index * step, digits, "N", "S")));
  }
  return parts;
}

/** A longitude between -180 and 180. */
function around(longitude) {
  return longitude - 360 * Math.round(longitude / 360);
}

function degrees(value, digits, positive, negative) {
  const number = Math.abs(value).toFixed(digits);
  return `${number}°${Number(number) === 0 ? "" : value > 0 ? positive : negative}`;
}

/** The marks of places: one that is nearer to a mark than a finger is wide belongs to that. */
function marksOf(seen) {
  const byCell = new Map();
  const marks = [];
  for (const { x, y, place } of seen) {
    const [column, row] = [Math.floor(x / TARGET), Math.floor(y / TARGET)];
    const near = [-1, 0, 1].flatMap((dx) => [-1, 0, 1].flatMap((dy) => byCell.get(`${column + dx} ${row + dy}`) ?? []));
    const mark = near.find((each) => Math.hypot(each.x - x, each.y - y) < TARGET);
    if (mark !== undefined) {
      mark.things.push(place);
      continue;
    }
    const made = { x, y, at: place.at, things: [place] };
    marks.push(made);
    const key = `${column} ${row}`;
    byCell.set(key, [...(byCell.get(key) ?? []), made]);
  }
  return marks.sort((a, b) => a.y - b.y || a.x - b.x).map((mark) => ({ ...mark, shapes: shapesOf(mark) }));
}

function shapesOf({ x, y, things }) {
  const target = svg("circle", { class: "target", cx: x, cy: y, r: TARGET / 2 });
  if (things.length === 1) return [target, svg("circle", { class: "place", cx: x, cy: y, r: 5 })];
  const text = things.length < 1000 ? String(things.length) : `${Math.floor(things.length / 1000)}k`;
  const count = svg("text", { class: "count", x, y: y + 4, "text-anchor": "middle" }, text);
  return [target, svg("circle", { class: "place", cx: x, cy: y, r: 11 }), count];
}
