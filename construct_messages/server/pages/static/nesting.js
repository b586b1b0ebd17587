// The nesting of a message: which node is written under which, and the names of blank nodes. No access to the document.
//
// RDF 1.2 Turtle, section 2.6 (nested blank nodes), and the same for IRIs: a node that is mentioned once is written where
// it is mentioned.

import { RDF } from "./terms.js";

const DEEPEST = 12; // nodes within each other
/** The properties that have labels, the preferred ones first. */
export const LABELS = [
  "http://www.w3.org/2000/01/rdf-schema#label",
  "http://www.w3.org/2004/02/skos/core#prefLabel",
  "http://xmlns.com/foaf/0.1/name",
  "http://schema.org/name",
  "https://schema.org/name",
  "http://purl.org/dc/terms/title",
  "http://purl.org/dc/elements/1.1/title",
];

/** The text that identifies a node within a message. */
export function keyOf(term) {
  return `${term.kind} ${term.value}`;
}

/** The graphs of a message: [{name, nodes}], where a node is {term, label, properties}, `properties` is
 *  [[predicate, objects]] and an object is {term, node, items}: `node` is the node written under it, else null, and
 *  `items` are the objects of a list, else null. */
export function nest(statements) {
  const graphs = new Map();
  for (const statement of statements) {
    const key = statement.graph === null ? "" : keyOf(statement.graph);
    if (!graphs.has(key)) graphs.set(key, { name: statement.graph, statements: [] });
    graphs.get(key).statements.push(statement);
  }
  const mentions = mentionsOf(statements);
  return [...graphs.values()].map(({ name, statements: own }) => ({ name, nodes: new Nesting(own, mentions).nodes() }));
}

/** How often each node is where it needs its name, or would have another node written under it. */
function mentionsOf(statements) {
  const mentions = new Map();
  const graphs = new Map(); // by key of a subject
  const mention = (term, times) => mentions.set(keyOf(term), (mentions.get(keyOf(term)) ?? 0) + times);
  const within = (term) => {
    for (const part of [term.subject, term.object]) {
      if (part.kind === "triple") within(part);
      else if (part.kind === "blank") mention(part, 2);
    }
  };
  for (const { subject, object, graph } of statements) {
    const key = keyOf(subject);
    if (!graphs.has(key)) graphs.set(key, new Set());
    graphs.get(key).add(graph === null ? "" : keyOf(graph));
    if (object.kind === "triple") within(object);
    else if (object.kind !== "literal") mention(object, 1);
    if (graph?.kind === "blank") mention(graph, 2);
  }
  // several graphs have statements about it
  for (const [key, of] of graphs) if (of.size > 1) mentions.set(key, (mentions.get(key) ?? 0) + 2);
  return mentions;
}

/** The nodes of one graph. */
class Nesting {
  constructor(statements, mentions) {
    this.mentions = mentions;
    this.subjects = new Map(); // by key: {term, properties: Map(predicate → objects)}
    this.objects = new Set(); // keys
    for (const { subject, predicate, object } of statements) {
      const key = keyOf(subject);
      if (!this.subjects.has(key)) this.subjects.set(key, { term: subject, properties: new Map() });
      const { properties } = this.subjects.get(key);
      if (!properties.has(predicate.value)) properties.set(predicate.value, []);
      properties.get(predicate.value).push(object);
      if (object.kind === "iri" || object.kind === "blank") this.objects.add(keyOf(object));
    }
    this.left = new Set(this.subjects.keys());
  }

  nodes() {
    const found = [];
    for (const key of this.subjects.keys()) if (!this.isNested(key)) found.push(this.described(key, 0));
    // of a circle, or nested too deep
    for (const key of this.subjects.keys()) if (this.left.has(key)) found.push(this.described(key, 0));
    return found;
  }

  isNested(key) {
    return this.mentions.get(key) === 1 && this.objects.has(key);
  }

  described(key, depth) {
    this.left.delete(key);
    const { term, properties } = this.subjects.get(key);
    const isType = ([predicate]) => predicate === `${RDF}type`;
    const sorted = [...properties].sort((a, b) => isType(b) - isType(a));
    const shown = sorted.map(([predicate, objects]) => [predicate, objects.map((each) => this.object(each, depth + 1))]);
    return { term, label: labelOf(properties), properties: shown };
  }

  object(term, depth) {
    const key = term.kind === "iri" || term.kind === "blank" ? keyOf(term) : null;
    if (term.value === `${RDF}nil`) return { term, node: null, items: [] };
    if (key === null || !this.left.has(key) || !this.isNested(key) || depth > DEEPEST) {
      return { term, node: null, items: null };
    }
    const cells = term.kind === "blank" ? this.cellsOf(key) : null;
    if (cells === null) return { term, node: this.described(key, depth), items: null };
    for (const cell of cells) this.left.delete(cell);
    const firsts = cells.map((cell) => this.subjects.get(cell).properties.get(`${RDF}first`)[0]);
    return { term, node: null, items: firsts.map((each) => this.object(each, depth + 1)) };
  }

  /** The nodes of a list; null: it is not whole, or one of its nodes is something else as well. */
  cellsOf(key) {
    const cells = new Set();
    while (key !== `iri ${RDF}nil`) {
      const properties = this.subjects.get(key)?.properties;
      if (!this.left.has(key) || cells.has(key) || !this.isNested(key)) return null;
      const [first, rest] = [properties.get(`${RDF}first`), properties.get(`${RDF}rest`)];
      if (properties.size !== 2 || first?.length !== 1 || rest?.length !== 1) return null;
      cells.add(key);
      key = keyOf(rest[0]);
    }
    return [...cells];
  }
}

/** The label of a node among its properties, {predicate: objects}: in English, else without a language, else the first;
 *  null: it has none. */
export function labelOf(properties) {
  for (const predicate of LABELS) {
    const literals = (properties.get(predicate) ?? []).filter(({ kind, value }) => kind === "literal" && value.trim());
    if (!literals.length) continue;
    const english = literals.find(({ language }) => /^en(?:-|$)/i.test(language ?? ""));
    return english ?? literals.find(({ language }) => language === null) ?? literals[0];
  }
  return null;
}
