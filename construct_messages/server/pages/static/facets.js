// The places and times in the first messages, for maps and timelines, each with its message; and those that neither can
// have, with the reason. They are searched when a map or a timeline is opened. No access to the document.
//
// WGS84 Geo Positioning (geo:lat, geo:long), schema.org, georss:point, Wikibase, and literals of geometries and dates.

import { timeOf } from "./dates.js";
import { geometryOf, isGeometry, pairsOf } from "./geometry.js";
import { statementsOf } from "./message-view.js";
import { keyOf, labelOf } from "./nesting.js";

const MESSAGES = 5000;
const STATEMENTS = 100_000;
const OF_MESSAGE = 2000; // statements of a message that are read
const POINTS = 500_000; // of all outlines
const LABEL = 120; // characters, as in cards
const MILLISECONDS = 8; // of searching, before the page may do something else
const WGS84 = "http://www.w3.org/2003/01/geo/wgs84_pos#";
const SCHEMAS = ["http://schema.org/", "https://schema.org/"];
const WIKIBASE = "http://wikiba.se/ontology#";
const GEORSS = "http://www.georss.org/georss/";
const LATITUDES = new Set([`${WGS84}lat`, ...SCHEMAS.map((iri) => `${iri}latitude`), `${WIKIBASE}geoLatitude`]);
const LONGITUDES = new Set([`${WGS84}long`, ...SCHEMAS.map((iri) => `${iri}longitude`), `${WIKIBASE}geoLongitude`]);
const PAIRS = new Set([
  ...[`${WGS84}lat_long`, `${GEORSS}point`, `${GEORSS}line`, `${GEORSS}polygon`],
  ...SCHEMAS.flatMap((iri) => [`${iri}line`, `${iri}polygon`]),
]);
const BOXES = new Set([`${GEORSS}box`, ...SCHEMAS.map((iri) => `${iri}box`)]);
const CIRCLES = new Set([`${GEORSS}circle`, ...SCHEMAS.map((iri) => `${iri}circle`)]);
// a message without any of these has no place, or no time
const LIKELY_PLACE = /geosparql#\w+Literal>|virtrdf#Geometry>|wgs84_pos#lat|[Ll](?:at|ong)itude>|georss|<geo:|schema\.org\/(?:box|line|polygon|circle)>/;
const LIKELY_TIME = /\^\^<[^>]*(?:[dD]ate(?:Time(?:Stamp)?)?|gYear(?:Month)?|gMonth(?:Day)?|gDay|#time)>/;
// links to a node that is only a position of the node before, whose label is meant
const OF_PLACE = /(?:geo|geometry|geometries|centroid|coordinates?|location|point|P625)$/i;

export class Facets {
  constructor() {
    this.places = []; // {number, label, term, parts, at}: `parts` as in geometry.js, and `at` is the point of its mark
    this.times = []; // {number, label, term, predicate, time, year, text}
    this.left = { places: [], times: [] }; // {number, label, term, text, problem}
    this.isLikely = { places: false, times: false }; // whether there may be any
    this.messages = 0; // that were searched
    this.next = 0; // the index of the message after them
    this.statements = 0;
    this.points = 0;
    this.isFull = false;
    this.cut = 0; // messages whose beginning was searched
    this.reading = Promise.resolve();
  }

  /** What was not searched of a store, in words; each is a sentence without its end. */
  notesOf(store) {
    const notes = [];
    if (this.next < store.count) notes.push(`Only the first ${this.messages.toLocaleString()} messages are searched`);
    const many = `${this.cut.toLocaleString()} ${this.cut === 1 ? "message" : "messages"}`;
    if (this.cut) notes.push(`Of ${many} only the first ${OF_MESSAGE.toLocaleString()} statements are searched`);
    return notes;
  }

  /** Notes whether a message, which has come, is likely to have a place or a time. */
  expect({ number, lines }) {
    if (number > MESSAGES || (this.isLikely.places && this.isLikely.times)) return;
    for (const line of lines.slice(0, OF_MESSAGE)) {
      this.isLikely.places ||= LIKELY_PLACE.test(line);
      this.isLikely.times ||= LIKELY_TIME.test(line);
    }
  }

  /** Searches the messages of a store on from where it ended before. */
  read(store) {
    this.reading = this.reading.then(() => this.readOn(store));
    return this.reading;
  }

  async readOn(store) {
    let due = performance.now() + MILLISECONDS;
    while (!this.isFull && this.next < store.count) {
      const [start, messages] = await store.some(this.next);
      for (const [index, message] of messages.entries()) {
        if (this.isFull) return;
        this.add(message);
        this.next = start + index + 1;
        if (performance.now() < due) continue;
        await new Promise((done) => setTimeout(done));
        due = performance.now() + MILLISECONDS;
      }
    }
  }

  add(message) {
    this.messages += 1;
    this.statements += message.lines.length;
    this.isFull = this.messages >= MESSAGES || this.statements >= STATEMENTS;
    if (!message.lines.some((line) => LIKELY_PLACE.test(line) || LIKELY_TIME.test(line))) return;
    if (message.lines.length > OF_MESSAGE) this.cut += 1;
    new MessageFacets(this, message.number, statementsOf(message.lines.slice(0, OF_MESSAGE)).statements).take();
  }

  /** Keeps a place. Outlines beyond the bound are left out: what is kept of them is a point. */
  put(place) {
    this.points += place.parts.reduce((sum, { length }) => sum + length, 0);
    const isTooMuch = this.points > POINTS && place.parts.some(({ length }) => length > 1);
    if (isTooMuch) this.left.places.push({ ...place, text: "its outline", problem: "there are too many outlines; its mark is there" });
    this.places.push(isTooMuch ? { ...place, parts: [[place.at]] } : place);
  }
}

/** The places and times of one message. */
class MessageFacets {
  constructor(facets, number, statements) {
    this.facets = facets;
    this.number = number;
    this.statements = statements;
    this.properties = new Map(); // by key of a subject: Map(predicate → objects)
    this.mentions = new Map(); // by key of an object: the first statement that has it
    this.positions = new Map(); // by key of a subject: {subject, latitudes, longitudes, isElsewhere}
    this.seen = new Set(); // places that were found in another spelling
    for (const statement of statements) {
      const key = keyOf(statement.subject);
      if (!this.properties.has(key)) this.properties.set(key, new Map());
      const { predicate, object } = statement;
      const of = this.properties.get(key);
      if (!of.has(predicate.value)) of.set(predicate.value, []);
      of.get(predicate.value).push(object);
      if ((object.kind === "iri" || object.kind === "blank") && !this.mentions.has(keyOf(object))) {
        this.mentions.set(keyOf(object), statement);
      }
    }
  }

  take() {
    for (const { subject, predicate, object } of this.statements) {
      if (object.kind === "iri") this.takeIri(subject, predicate.value, object.value);
      else if (object.kind === "literal") this.takeLiteral(subject, predicate.value, object);
    }
    for (const position of this.positions.values()) this.takePosition(position);
  }

  takeIri(subject, predicate, value) {
    if (predicate === `${WIKIBASE}geoGlobe` && !value.endsWith("/Q2")) this.positionOf(subject).globe = value;
    // RFC 5870: geo:48.2,16.3;crs=wgs84
    const found = /^geo:([^;,]*,[^;,]*)[^;]*(?:;crs=([^;]*))?/i.exec(value);
    if (found === null) return;
    const isKnown = found[2] === undefined || /^wgs84$/i.test(found[2]);
    const geometry = isKnown ? pairsOf(found[1]) : { parts: [], problem: `the map does not know its reference system, ${found[2]}` };
    this.put(subject, value, geometry);
  }

  takeLiteral(subject, predicate, object) {
    const { value } = object;
    if (LATITUDES.has(predicate)) this.positionOf(subject).latitudes.push(value);
    else if (LONGITUDES.has(predicate)) this.positionOf(subject).longitudes.push(value);
    else if (PAIRS.has(predicate)) this.put(subject, value, pairsOf(value));
    else if (BOXES.has(predicate)) this.put(subject, value, pairsOf(value, { isBox: true }));
    else if (CIRCLES.has(predicate)) this.leave("places", subject, value, "a circle is not drawn");
    else if (isGeometry(object.datatype)) this.put(subject, value, geometryOf(object));
    else this.takeTime(subject, predicate, object);
  }

  takeTime(subject, predicate, object) {
    const found = timeOf(object);
    if (found === null) return;
    const { time, year, problem } = found;
    if (problem !== null) this.leave("times", subject, object.value, problem);
    else this.facets.times.push({ ...this.named(subject), predicate, time, year, text: object.value });
  }

  positionOf(subject) {
    const key = keyOf(subject);
    if (!this.positions.has(key)) this.positions.set(key, { subject, latitudes: [], longitudes: [], globe: null });
    return this.positions.get(key);
  }

  takePosition({ subject, latitudes, longitudes, globe }) {
    if (!latitudes.length && !longitudes.length) return;
    const text = `latitude ${latitudes.join(" and ") || "missing"}, longitude ${longitudes.join(" and ") || "missing"}`;
    if (globe !== null) this.leave("places", subject, text, `the map is not of its globe, ${globe}`);
    else if (!latitudes.length || !longitudes.length) this.leave("places", subject, text, "a half of it is missing");
    else if (latitudes.length > 1 || longitudes.length > 1) {
      this.leave("places", subject, text, "which of them belong together is not known; the first two are shown");
      this.put(subject, text, pairsOf(`${latitudes[0]} ${longitudes[0]}`));
    } else this.put(subject, text, pairsOf(`${latitudes[0]} ${longitudes[0]}`));
  }

  /** Keeps a place of a subject, once where the same one is written in several ways. */
  put(subject, text, { parts, problem }) {
    if (problem !== null) {
      this.leave("places", subject, text, problem);
      return;
    }
    const at = middleOf(parts);
    const key = `${keyOf(this.named(subject).term)} ${at.map((each) => each.toFixed(3)).join(" ")}`;
    const isOutline = parts.some(({ length }) => length > 1);
    if (!isOutline && this.seen.has(key)) return;
    this.seen.add(key);
    this.facets.put({ ...this.named(subject), parts, at });
  }

  leave(kind, subject, text, problem) {
    this.facets.left[kind].push({ ...this.named(subject), text: text.slice(0, LABEL), problem });
  }

  /** The message, and the label of a node as its card has it; of a node that is a position, that of what is there. */
  named(subject) {
    let term = subject;
    for (let depth = 0; depth < 4; depth += 1) {
      const label = labelOf(this.properties.get(keyOf(term)) ?? new Map());
      if (label !== null) return { number: this.number, label: label.value.slice(0, LABEL), term };
      const mention = this.mentions.get(keyOf(term));
      if (mention === undefined || !(term.kind === "blank" || OF_PLACE.test(mention.predicate.value))) break;
      term = mention.subject;
    }
    return { number: this.number, label: null, term };
  }
}

/** The middle of a geometry's largest part. */
function middleOf(parts) {
  const largest = parts.reduce((most, part) => (part.length > most.length ? part : most));
  return [0, 1].map((axis) => {
    const [least, most] = boundsOf(largest, axis);
    return (least + most) / 2;
  });
}

/** The least and the greatest coordinate of points. */
export function boundsOf(points, axis) {
  let [least, most] = [Infinity, -Infinity];
  for (const point of points) {
    least = Math.min(least, point[axis]);
    most = Math.max(most, point[axis]);
  }
  return [least, most];
}
