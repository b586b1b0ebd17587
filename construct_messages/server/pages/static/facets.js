// The places and times in the first messages, for maps and timelines, each with its message. No access to the document.
//
// WGS84 Geo Positioning (geo:lat, geo:long), GeoSPARQL 1.1, section 8.5 (WKT; a CRS of its own is not read), XSD 1.1 dates.

import { statementsOf } from "./message-view.js";
import { XSD } from "./terms.js";

const MESSAGES = 5000;
const STATEMENTS = 100_000;
const GEO = "http://www.w3.org/2003/01/geo/wgs84_pos#";
const WKT = "http://www.opengis.net/ont/geosparql#wktLiteral";
const CRS84 = /^\s*(?:<http:\/\/www\.opengis\.net\/def\/crs\/(?:OGC\/1\.3\/CRS84)>\s*)?/;
const POINT = /(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s+(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g;
const LABEL = /(?:#label|\/name|\/title|prefLabel)$/;
const DATE = /^(-?\d{4,})(?:-(\d\d))?(?:-(\d\d))?(?:T(\d\d):(\d\d):(\d\d(?:\.\d+)?))?(Z|[+-]\d\d:\d\d)?$/;

export class Facets {
  constructor() {
    this.places = []; // {number, label, points: [[longitude, latitude]]}
    this.times = []; // {number, label, predicate, time: milliseconds, text}
    this.messages = 0;
    this.statements = 0;
    this.isFull = false;
  }

  /** The messages that were searched, in words; empty: all. */
  get note() {
    return this.isFull ? `of the first ${this.messages.toLocaleString()} messages` : "";
  }

  add(message) {
    this.messages += 1;
    this.statements += message.lines.length;
    this.isFull = this.messages >= MESSAGES || this.statements >= STATEMENTS;
    if (!message.lines.some((line) => /\^\^<|wgs84_pos/.test(line))) return;
    const { statements } = statementsOf(message.lines.slice(0, 500));
    const labels = new Map();
    const places = new Map(); // by subject: {lat, long}
    for (const { subject, predicate, object } of statements) {
      if (object.kind !== "literal") continue;
      if (LABEL.test(predicate.value) && !labels.has(subject.value)) labels.set(subject.value, object.value.slice(0, 80));
      this.takePlace(message, subject, predicate, object, places);
    }
    const labelOf = (subject) => labels.get(subject.value) ?? (subject.kind === "iri" ? subject.value : "");
    for (const [subject, { lat, long }] of places) {
      if (lat === undefined || long === undefined) continue;
      this.places.push({ number: message.number, label: labels.get(subject) ?? subject, points: [[long, lat]] });
    }
    for (const { subject, predicate, object } of statements) {
      if (object.kind !== "literal") continue;
      const points = object.datatype === WKT ? pointsOf(object.value) : [];
      if (points.length) this.places.push({ number: message.number, label: labelOf(subject), points });
      const time = object.datatype.startsWith(XSD) ? timeOf(object) : null;
      if (time !== null) {
        const what = predicate.value;
        this.times.push({ number: message.number, label: labelOf(subject), predicate: what, time, text: object.value });
      }
    }
  }

  takePlace(message, subject, predicate, object, places) {
    if (!predicate.value.startsWith(GEO)) return;
    const name = { [`${GEO}lat`]: "lat", [`${GEO}long`]: "long" }[predicate.value];
    const number = Number(object.value);
    if (name === undefined || !Number.isFinite(number)) return;
    if (!places.has(subject.value)) places.set(subject.value, {});
    places.get(subject.value)[name] ??= number;
  }
}

/** The points of a WKT text in WGS84: [[longitude, latitude]]; none where another reference system is named. */
export function pointsOf(text) {
  const start = CRS84.exec(text)[0].length;
  if (text[start] === "<") return [];
  const points = [...text.slice(start, 100_000).matchAll(POINT)].map(([, x, y]) => [Number(x), Number(y)]);
  return points.filter(([x, y]) => Math.abs(x) <= 180 && Math.abs(y) <= 90);
}

/** The time of a date, a dateTime or a year, in milliseconds; null: it is none. */
export function timeOf({ value, datatype }) {
  if (!/#(?:date|dateTime|dateTimeStamp|gYear|gYearMonth)$/.test(datatype)) return null;
  const found = DATE.exec(value.trim());
  if (found === null) return null;
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map((each) => Number(each ?? NaN));
  const time = new Date(0);
  time.setUTCFullYear(year, (month || 1) - 1, day || 1);
  time.setUTCHours(hour || 0, minute || 0, second || 0);
  const [, sign, hours, minutes] = /^([+-])(\d\d):(\d\d)$/.exec(found[7] ?? "") ?? [null, "+", "0", "0"];
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === "-" ? -1 : 1);
  return Number.isNaN(time.getTime()) ? null : time.getTime() - offset;
}
