// Queries to begin with: those of an endpoint's settings, and others that fit what its data have.
//
// For the latter, twenty things are looked at. Until that is answered, and where it is not, there are those that need
// nothing but triples.

import { isGeometry } from "./geometry.js";
import { LABELS } from "./nesting.js";
import { COMMON_PREFIXES } from "./prefixes.js";
import { inOrder } from "./request.js";
import { ask } from "./server.js";
import { termOf } from "./tables.js";
import { RDF } from "./terms.js";
import { timeOf } from "./dates.js";

const THINGS = 20; // that are looked at
const SOLUTIONS = 500;
const MILLISECONDS = 4000; // for the answer
const NAME = /(?:name|label|title)$/i; // of properties whose text may be a name
const POSITIONS = [
  ["http://www.w3.org/2003/01/geo/wgs84_pos#lat", "http://www.w3.org/2003/01/geo/wgs84_pos#long"],
  ["http://schema.org/latitude", "http://schema.org/longitude"],
  ["https://schema.org/latitude", "https://schema.org/longitude"],
];

/** What the data of an endpoint have, by a few of their things: {isInGraphs, isTyped, name, positions, geometry, date, link},
 *  where the last five are predicates, or null. Null: there are no data, or no answer in time. */
export async function lookAt(url, parameters, signal) {
  for (const isInGraphs of [false, true]) {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(MILLISECONDS)]);
    const bindings = await ask(url, lookQuery(isInGraphs), "application/sparql-results+json", limited, parameters)
      .then((response) => response.json())
      .then(({ results }) => results.bindings)
      .catch(() => null);
    if (bindings === null) return null;
    if (bindings.length) return { isInGraphs, ...foundIn(bindings) };
  }
  return null;
}

function lookQuery(isInGraphs) {
  const [inner, outer] = isInGraphs ? ["GRAPH ?g { ", "GRAPH ?h { "] : ["", ""];
  const end = isInGraphs ? " }" : "";
  return `SELECT ?thing ?property ?value WHERE {
  { SELECT DISTINCT ?thing WHERE { ${inner}?thing ?any ?other${end} } LIMIT ${THINGS} }
  ${outer}?thing ?property ?value${end}
} LIMIT ${SOLUTIONS}`;
}

function foundIn(bindings) {
  const uses = new Map(); // by predicate: {count, value}, one of its values
  for (const { property, value } of bindings) {
    if (property === undefined || value === undefined) continue;
    const before = uses.get(property.value);
    uses.set(property.value, { count: (before?.count ?? 0) + 1, value: before?.value ?? termOf(value) });
  }
  const predicates = [...uses].sort(([, a], [, b]) => b.count - a.count).map(([iri, { value }]) => ({ iri, value }));
  const first = (test) => predicates.find(test)?.iri ?? null;
  const isText = ({ value }) => value.kind === "literal";
  return {
    isTyped: uses.has(`${RDF}type`),
    name: LABELS.find((iri) => uses.has(iri)) ?? first((each) => isText(each) && NAME.test(each.iri)),
    positions: POSITIONS.find((both) => both.every((iri) => uses.has(iri))) ?? null,
    geometry: first((each) => isText(each) && isGeometry(each.value.datatype)),
    date: first((each) => isText(each) && timeOf(each.value)?.problem === null),
    link: first(({ iri, value }) => iri !== `${RDF}type` && value.kind !== "literal" && value.kind !== "triple"),
  };
}

/** The examples of an endpoint: [{name, sentence, query, group_by, view}]. `look` is what its data have; null: not known. */
export function examplesOf(endpoint, look = null) {
  const known = { ...COMMON_PREFIXES, ...endpoint.prefixes };
  const found = fitting(look ?? { isInGraphs: false }).map((each) => ({ ...each, query: prefixed(each.query, known) }));
  return [...endpoint.examples, ...found];
}

function fitting({ isInGraphs, isTyped, name, positions, geometry, date, link }) {
  const whole = (pattern) => (isInGraphs ? `GRAPH ?graph { ${pattern} }` : pattern);
  const [type, typed] = isTyped ? ["a ?class ; ", " OPTIONAL { ?thing a ?class }"] : ["", ""];
  const named = name ? ` OPTIONAL { ?thing <${name}> ?name }` : "";
  const withName = name ? `<${name}> ?name ; ` : "";
  const limited = (template, pattern) => `CONSTRUCT { ${template} }\nWHERE { ${whole(pattern)} }\nLIMIT 100\n`;
  return [
    {
      name: "Ten things, each with all its properties",
      sentence: "Solutions with the same ?thing make one message: the whole of a thing stays together.",
      group_by: ["thing"],
      query: `CONSTRUCT { ?thing ?property ?value }
WHERE {
  { SELECT DISTINCT ?thing WHERE { ${whole("?thing ?any ?other")} } LIMIT 10 }
  ${whole("?thing ?property ?value")}
}
`,
    },
    name && {
      name: "Things with their name",
      sentence: "One message for each solution: a thing with its name, as the data have it.",
      query: limited(`?thing ${type}<${name}> ?name`, `?thing <${name}> ?name${typed}`),
    },
    positions && {
      name: "Places on a map",
      sentence: "Latitude and longitude of things; the view Map shows them.",
      view: "map",
      query: limited(
        `?thing ${withName}<${positions[0]}> ?latitude ; <${positions[1]}> ?longitude`,
        `?thing <${positions[0]}> ?latitude ; <${positions[1]}> ?longitude${named}`,
      ),
    },
    geometry && {
      name: "Geometries on a map",
      sentence: "Points, lines and areas; the view Map shows them.",
      view: "map",
      query: limited(`?thing ${withName}<${geometry}> ?geometry`, `?thing <${geometry}> ?geometry${named}`),
    },
    date && {
      name: "Dates on a line",
      sentence: "Things with a date; the view Timeline shows them.",
      view: "timeline",
      query: limited(`?thing ${withName}<${date}> ?date`, `?thing <${date}> ?date${named}`),
    },
    link && {
      name: "Links between things",
      sentence: "A small star for each: a thing, what it links to, and what is known of that.",
      group_by: ["thing", "other"],
      query: limited(
        `?thing <${link}> ?other . ?other ?property ?value`,
        `?thing <${link}> ?other OPTIONAL { ?other ?property ?value }`,
      ),
    },
    {
      name: "Blank nodes of the template",
      sentence: "Each message has blank nodes of its own: no two of them ever meet.",
      query: limited(
        `[] a <${RDF}Statement> ; <${RDF}subject> ?thing ; <${RDF}predicate> ?property ; <${RDF}object> ?value`,
        "?thing ?property ?value",
      ),
    },
    {
      name: "Properties and how often they are used (SELECT)",
      sentence: "Queries of the other forms work as at any endpoint: solutions are a table. Here of 100,000 triples at most.",
      query: `SELECT ?property (COUNT(*) AS ?uses)
WHERE { { SELECT ?property WHERE { ${whole("?thing ?property ?value")} } LIMIT 100000 } }
GROUP BY ?property
ORDER BY DESC(?uses)
`,
    },
    {
      name: "Whether there is anything (ASK)",
      sentence: "Yes or no.",
      query: `ASK { ${whole("?subject ?property ?value")} }\n`,
    },
  ].filter(Boolean);
}

/** A query whose IRIs are shortened by known prefixes, which it declares. */
function prefixed(query, known) {
  const declared = new Map();
  const text = query.replace(/<([^>]*)>/g, (whole, iri) => {
    const fits = ([, namespace]) => namespace !== "" && iri.startsWith(namespace) && /^[A-Za-z_][\w-]*$/.test(iri.slice(namespace.length));
    const [prefix, namespace] = Object.entries(known).findLast(fits) ?? [];
    if (prefix === undefined) return whole;
    declared.set(prefix, namespace);
    return `${prefix}:${iri.slice(namespace.length)}`;
  });
  return `${[...declared].map(([prefix, iri]) => `PREFIX ${prefix}: <${iri}>\n`).join("")}${text}`;
}

/** The parameters of the request for an example. */
export function parametersOf({ group_by: groupBy = [] }) {
  return inOrder(groupBy.map((name) => ["group-by", name]));
}
