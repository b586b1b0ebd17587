// Geometries of literals as parts in degrees of longitude and latitude: WKT, GML, KML, GeoJSON, and pairs of latitude and
// longitude. No access to the document.
//
// GeoSPARQL 1.1, section 8.5: WKT is in CRS84, longitude first, unless it begins with the IRI of another system; EPSG:4326
// has latitude first. Wikidata names a globe in its place: Q2 is the Earth. RFC 7946 (GeoJSON), OGC 07-147 (KML).

const LONGEST = 300_000; // characters
const GEOSPARQL = "http://www.opengis.net/ont/geosparql#";
const READERS = {
  [`${GEOSPARQL}wktLiteral`]: readWkt,
  "http://www.openlinksw.com/schemas/virtrdf#Geometry": readWkt,
  [`${GEOSPARQL}gmlLiteral`]: readMarkup,
  [`${GEOSPARQL}kmlLiteral`]: readMarkup,
  [`${GEOSPARQL}geoJSONLiteral`]: readGeoJson,
  [`${GEOSPARQL}dggsLiteral`]: () => unread("a cell of a grid has no coordinates"),
};
const NUMBER = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/;
const TOKEN = /[A-Za-z]+|[(),]|[^\s(),A-Za-z][^\s(),]*/g;
const WKT = /^\s*(?:<([^>]*)>|SRID=(\d+);)?/i;
const KINDS = new Set(
  `POINT LINESTRING LINEARRING CIRCULARSTRING COMPOUNDCURVE CURVEPOLYGON POLYGON TRIANGLE TIN POLYHEDRALSURFACE MULTIPOINT
  MULTILINESTRING MULTICURVE MULTIPOLYGON MULTISURFACE GEOMETRYCOLLECTION`.split(/\s+/),
);
const TAG = /<(\/?)(?:[\w.-]+:)?([A-Za-z]\w*)([^>]*)>([^<]*)/g;
const LINE = /^(?:LineString|LinearRing|LineStringSegment|ArcString|Arc|Envelope)$/;
const EPSG = /epsg(?:\.xml#|\.io\/|[:/]+)(?:[\d.]*[:/]+)?(\d{4,6})\/?$/i;
const X_FIRST = /^EPSG:|epsg\.xml#/i; // spellings from before axes had the order of EPSG
const GEOGRAPHIC = new Set(["4326", "4979", "4258", "4269", "4283", "7844"]); // within metres of each other
const MERCATOR = new Set(["3857", "900913"]);

/** Whether a datatype is one of geometries. */
export function isGeometry(datatype) {
  return Object.hasOwn(READERS, datatype);
}

/** The geometry of a literal: {parts, problem}. A part has one point, or the points of a line or ring: [longitude, latitude].
 *  With a `problem`, which says why in words, there are none. */
export function geometryOf({ value, datatype }) {
  if (value.length > LONGEST) return unread(`it has more than ${LONGEST.toLocaleString("en")} characters`);
  return READERS[datatype](value);
}

/** A text of pairs of latitude and longitude, as of georss:point or schema:polygon; see `geometryOf`. */
export function pairsOf(text, { isBox = false } = {}) {
  const numbers = numbersOf(text.slice(0, LONGEST));
  if (numbers === null || numbers.length < 2 || numbers.length % 2) return unread("it has no pairs of numbers");
  const points = tuplesOf(numbers, 2).map(([y, x]) => [x, y]);
  return placed([isBox ? rectangle(points) : points], null);
}

function unread(problem) {
  return { parts: [], problem };
}

/** Parts in degrees, checked; `system` names the reference system, null: CRS84. */
function placed(parts, system) {
  const convert = conversionOf(system);
  if (convert === null) return unread(`the map does not know its reference system, ${system.slice(0, 100)}`);
  const converted = parts.filter(({ length }) => length).map((part) => part.map(convert));
  if (!converted.length) return unread("it is empty");
  const outside = converted.flat().find(([x, y]) => !(Math.abs(x) <= 180 && Math.abs(y) <= 90));
  if (outside !== undefined) return unread(`out of range: longitude ${outside[0]}, latitude ${outside[1]}`);
  return { parts: converted.map(unwrapped), problem: null };
}

/** How a reference system's coordinates become longitude and latitude; null: it is not known. */
function conversionOf(system) {
  if (system === null || /CRS84h?$|\/entity\/Q2$/i.test(system)) return ([x, y]) => [x, y];
  const code = EPSG.exec(system)?.[1];
  if (GEOGRAPHIC.has(code)) return X_FIRST.test(system) ? ([x, y]) => [x, y] : ([y, x]) => [x, y];
  if (!MERCATOR.has(code)) return null;
  const degrees = 180 / 20037508.342789244; // a metre of the equator
  return ([x, y]) => [x * degrees, (Math.atan(Math.sinh((y * degrees * Math.PI) / 180)) * 180) / Math.PI];
}

/** A part without a jump where it crosses the 180th meridian: its longitudes go on beyond 180. */
function unwrapped(part) {
  let turn = 0;
  return part.map(([x, y], index) => {
    const step = index === 0 ? 0 : x - part[index - 1][0];
    if (Math.abs(step) > 180) turn -= 360 * Math.sign(step);
    return [x + turn, y];
  });
}

// --- syntaxes -----------

function readWkt(text) {
  const [start, name = null, srid] = WKT.exec(text);
  const tokens = text.slice(start.length).match(TOKEN) ?? [];
  const parts = [];
  const open = []; // the points of each open bracket
  let kind = "";
  let numbers = [];
  const end = () => {
    const isPoint = numbers.length >= 2 && numbers.length <= 4;
    if (isPoint && kind === "MULTIPOINT") parts.push([numbers]);
    else if (isPoint) open.at(-1).push(numbers);
    const isRight = isPoint || numbers.length === 0;
    numbers = [];
    return isRight;
  };
  for (const token of tokens) {
    if (/^[A-Za-z]/.test(token)) {
      const word = token.toUpperCase();
      const [, named] = /^(.*?)(?:Z|M|ZM)?$/.exec(word);
      if (KINDS.has(named)) kind = named;
      else if (!/^(?:Z|M|ZM|EMPTY)$/.test(word) || kind === "") return unread("it is not WKT");
    } else if (token === "(") {
      open.push([]);
    } else if (token === ")" || token === ",") {
      if (!open.length || !end()) return unread("it is not WKT");
      if (token === ")") parts.push(open.pop());
    } else {
      if (!open.length || !NUMBER.test(token)) return unread("it is not WKT");
      numbers.push(Number(token));
    }
  }
  if (open.length || kind === "") return unread("it is not WKT");
  return placed(parts, srid === undefined ? name : `EPSG:${srid}`);
}

/** GML and KML: the coordinates of their elements, read without a parser of XML, which the policy of the page forbids. */
function readMarkup(text) {
  const parts = [];
  let [system, dimension, line] = [null, 2, null];
  for (const [, closing, name, attributes, content] of text.matchAll(TAG)) {
    system ??= /\bsrsName\s*=\s*["']([^"']*)/.exec(attributes)?.[1] ?? null;
    dimension = Number(/\bsrsDimension\s*=\s*["'](\d)/.exec(attributes)?.[1] ?? dimension);
    if (LINE.test(name)) {
      if (line?.length) parts.push(name === "Envelope" ? rectangle(line) : line);
      line = closing ? null : [];
    }
    if (closing || !/^(?:pos|posList|coordinates|lowerCorner|upperCorner)$/.test(name)) continue;
    const numbers = numbersOf(content);
    if (numbers === null) return unread("its coordinates are no numbers");
    const [first] = content.trim().split(/\s+/);
    const size = name === "pos" ? numbers.length : first.includes(",") ? first.split(",").filter(Boolean).length : dimension;
    const points = tuplesOf(numbers, size);
    if (line === null) parts.push(points);
    else line.push(...points);
  }
  if (line?.length) parts.push(line); // whose end is missing
  return placed(parts, system);
}

function readGeoJson(text) {
  let read;
  try {
    read = JSON.parse(text);
  } catch {
    return unread("it is not JSON");
  }
  const parts = [];
  const isPoint = (value) => Array.isArray(value) && value.length > 1 && value.every((each) => typeof each === "number");
  const take = (value, type) => {
    if (isPoint(value)) parts.push([value]);
    else if (Array.isArray(value) && value.every(isPoint) && type !== "MultiPoint") parts.push(value);
    else if (Array.isArray(value)) for (const each of value) take(each, type);
    else if (typeof value === "object" && value !== null) {
      for (const name of ["coordinates", "geometry", "geometries", "features"]) take(value[name], value.type);
    }
  };
  take(read, null);
  return placed(parts, null);
}

function numbersOf(text) {
  const words = text.split(/[\s,]+/).filter(Boolean);
  return words.every((word) => NUMBER.test(word)) ? words.map(Number) : null;
}

function tuplesOf(numbers, size) {
  return Array.from({ length: Math.floor(numbers.length / size) }, (_, index) => numbers.slice(index * size, (index + 1) * size));
}

/** The outline of the box that two corners span. */
function rectangle(corners) {
  if (corners.length !== 2) return corners;
  const [[left, bottom], [right, top]] = corners;
  return [[left, bottom], [right, bottom], [right, top], [left, top], [left, bottom]];
}
