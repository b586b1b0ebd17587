// A message as a picture, in SVG: a tree from left to right, with each node in its own row, so that labels do not
// overlap.
//
// A repeated node is drawn again with a broken line around it, instead of an edge to the first one, so that no edges
// cross, even in pictures of two hundred edges.

import { countOf, element } from "./elements.js";
import { partsOf } from "./marks.js";
import { svg } from "./svg.js";
import { blankName, cutIri } from "./term-view.js";
import { RDF, termText } from "./terms.js";

const MOST_NODES = 300;
const ROW = 30; // from one to the next
const HEIGHT = 22; // of a node
const TRUNK = 14; // from a node to where its edges part
const CHARACTER = 7.6; // the width of one, at most
const NODE_CHARACTERS = 34;
const EDGE_CHARACTERS = 26;

function cut(text, length) {
  const visible = partsOf(text.slice(0, 4 * length)).map((part) => (typeof part === "string" ? part : part.code)).join("");
  const characters = Array.from(visible.replace(/\s+/g, " "));
  return characters.length > length ? `${characters.slice(0, length - 1).join("")}…` : characters.join("");
}

function labelOf(term, prefixes, labels) {
  if (term.kind === "iri") return prefixes.shorten(term.value) ?? cutIri(term.value).replace(/^https?:\/\//, "");
  if (term.kind === "blank") return blankName(term, labels);
  if (term.kind === "literal") return `${term.value.slice(0, 200)}${term.language === null ? "" : ` @${term.language}`}`;
  return termText(term).slice(0, 200);
}

/** Lays statements out as a tree: {nodes, edges, left}. Pure.
 *
 *  A node is {term, column, row, again}: the first object of a node is in its row, and `again` is true if the term
 *  already has a node. An edge is {from, to, predicate, isFirst}: of several objects of a property the first has its
 *  name. `left` statements are not drawn. */
export function layOut(statements) {
  const subjects = new Map(); // by key: {term, out: Map(predicate → objects)}
  const targets = new Set();
  for (const { subject, predicate, object } of statements) {
    const key = termText(subject);
    if (!subjects.has(key)) subjects.set(key, { term: subject, out: new Map() });
    const { out } = subjects.get(key);
    if (!out.has(predicate.value)) out.set(predicate.value, []);
    out.get(predicate.value).push(object);
    if (object.kind !== "literal" && termText(object) !== key) targets.add(termText(object));
  }
  const nodes = [];
  const edges = [];
  const placed = new Set();
  let next = 0; // the row after all that are taken
  const place = (term, column, row) => {
    const key = term.kind === "literal" ? null : termText(term);
    const node = { term, column, row, again: placed.has(key) };
    nodes.push(node);
    next = Math.max(next, row + 1);
    if (key === null || node.again) return node;
    placed.add(key);
    let at = row;
    for (const [predicate, objects] of subjects.get(key)?.out ?? []) {
      for (const [index, object] of objects.entries()) {
        if (nodes.length >= MOST_NODES) break;
        edges.push({ from: node, to: place(object, column + 1, at), predicate, isFirst: index === 0 });
        at = next;
      }
    }
    return node;
  };
  const placeRoot = (term) => nodes.length < MOST_NODES && place(term, 0, next);
  for (const [key, { term }] of subjects) if (!targets.has(key)) placeRoot(term);
  for (const [key, { term }] of subjects) if (!placed.has(key)) placeRoot(term); // circles
  return { nodes, edges, left: statements.length - edges.length };
}

/** The positions of columns, by their texts: [{x, width, end}], where edges start at `end`. */
function columnsOf(nodes, edges, textOf, nameOf) {
  const columns = [];
  for (const node of nodes) {
    const column = (columns[node.column] ??= { width: 40, name: 0 });
    column.width = Math.max(column.width, widthOf(textOf(node)));
  }
  for (const edge of edges) {
    const column = columns[edge.to.column];
    column.name = Math.max(column.name, nameOf(edge).length * CHARACTER + 12);
  }
  let x = 8;
  for (const column of columns) {
    if (column.name) x += TRUNK + column.name;
    column.x = x;
    x += column.width;
    column.end = x + TRUNK;
  }
  return columns;
}

/** The picture of statements. */
export function graphElement(statements, prefixes) {
  const { nodes, edges, left } = layOut(statements);
  const labels = new Map();
  const texts = new Map(nodes.map((node) => [node, cut(labelOf(node.term, prefixes, labels), NODE_CHARACTERS)]));
  const names = new Map(edges.map((edge) => [edge, edge.isFirst ? nameOf(edge.predicate, prefixes) : ""]));
  const columns = columnsOf(nodes, edges, (node) => texts.get(node), (edge) => names.get(edge));
  const y = (node) => 8 + node.row * ROW;
  const endOf = (node) => columns[node.column].x + widthOf(texts.get(node)); // where a node ends at its right
  const width = columns.at(-1).end;
  const height = 16 + (Math.max(...nodes.map(({ row }) => row)) + 1) * ROW;
  const name = `graph of ${countOf(nodes.length, "node")} and ${countOf(edges.length, "statement")}`;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": name });
  for (const edge of edges) picture.append(...edgeParts(edge, { columns, y, name: names.get(edge), end: endOf(edge.from) }));
  for (const node of nodes) picture.append(nodePart(node, columns[node.column], y(node), texts.get(node)));
  const made = document.createDocumentFragment();
  made.append(picture);
  if (left) {
    const note = `the picture has ${countOf(nodes.length, "node")}; ${countOf(left, "statement")} are left out`;
    made.append(element("p", { class: "note" }, note));
  }
  return made;
}

function nameOf(predicate, prefixes) {
  const name = predicate === `${RDF}type` ? "a" : labelOf({ kind: "iri", value: predicate }, prefixes);
  return cut(name, EDGE_CHARACTERS);
}

function widthOf(text) {
  return text.length * CHARACTER + 16;
}

function edgeParts({ from, to, predicate }, { columns, y, name, end }) {
  const [start, middle] = [y(from) + HEIGHT / 2, y(to) + HEIGHT / 2];
  const trunk = columns[from.column].end - TRUNK / 2;
  const { x } = columns[to.column];
  const way = start === middle ? `M${end} ${start} H${x}` : `M${end} ${start} H${trunk} V${middle} H${x}`;
  const edge = svg("path", { class: "edge", d: way }, svg("title", {}, predicate));
  if (name === "") return [edge];
  return [edge, svg("text", { class: "edge-label", x: trunk + 8, y: middle - 4 }, name)];
}

function nodePart({ term, again }, { x }, y, text) {
  const full = term.kind === "literal" ? term.value.slice(0, 1000) : termText(term).slice(0, 1000);
  const width = widthOf(text);
  const radius = term.kind === "literal" ? 2 : HEIGHT / 2;
  const direction = term.kind === "literal" && term.direction === "rtl" ? "rtl" : "ltr";
  const anchor = direction === "rtl" ? "end" : "start"; // which is at its left, either way
  return svg(
    "g",
    { class: `picture-node ${term.kind}${again ? " again" : ""}` },
    svg("title", {}, again ? `${full}: again` : full),
    svg("rect", { x, y, width, height: HEIGHT, rx: radius }),
    svg("text", { x: x + 8, y: y + HEIGHT / 2 + 4, direction, "text-anchor": anchor }, text),
  );
}
