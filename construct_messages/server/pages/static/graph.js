// A message as a picture: nodes in columns by their distance from where the message begins, as SVG.

import { RDF, termText } from "./terms.js";

const SVG = "http://www.w3.org/2000/svg";
const MOST_NODES = 60;
const WIDTH = 190; // of a node
const HEIGHT = 30;
const BETWEEN_COLUMNS = 150;
const BETWEEN_ROWS = 16;
const LABEL = 26; // characters of a node
const EDGE_LABEL = 20;

function svg(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function cut(text, length) {
  const characters = Array.from(text.slice(0, 4 * length));
  return characters.length > length ? `${characters.slice(0, length - 1).join("")}…` : characters.join("");
}

function labelOf(term, prefixes) {
  if (term.kind === "iri") return prefixes.shorten(term.value) ?? term.value.replace(/^.*[/#](?=.)/s, "…/");
  if (term.kind === "blank") return `_:${term.value}`;
  if (term.kind === "literal") return `"${term.value.slice(0, 100)}"`;
  return termText(term).slice(0, 100);
}

/** Lays out statements: {nodes, edges, left}: the nodes with their place, and how many found none. Pure. */
export function layOut(statements) {
  const nodes = new Map();
  const edges = [];
  let left = 0;
  const place = (term, own) => {
    // literals with the same text are nodes of their own: they say nothing about each other
    const key = term.kind === "literal" ? `${own} ${nodes.size}` : `${term.kind} ${termText(term)}`;
    if (!nodes.has(key)) {
      if (nodes.size >= MOST_NODES) return null;
      nodes.set(key, { term, column: null, row: 0 });
    }
    return nodes.get(key);
  };
  for (const { subject, predicate, object } of statements) {
    const from = place(subject, "");
    const to = from && place(object, termText(predicate));
    if (to) edges.push({ from, to, predicate });
    else left += 1;
  }
  const out = new Map();
  const targets = new Set();
  for (const edge of edges) {
    if (!out.has(edge.from)) out.set(edge.from, []);
    out.get(edge.from).push(edge.to);
    if (edge.from !== edge.to) targets.add(edge.to);
  }
  const all = [...nodes.values()];
  const rows = [];
  const walk = (root) => {
    if (root.column !== null) return;
    root.column = 0;
    let front = [root];
    for (let column = 0; front.length; column += 1) {
      rows[column] ??= 0;
      const following = [];
      for (const node of front) {
        node.row = rows[column];
        rows[column] += 1;
        for (const target of out.get(node) ?? []) {
          if (target.column !== null) continue;
          target.column = column + 1;
          following.push(target);
        }
      }
      front = following;
    }
  };
  for (const node of all) if (!targets.has(node)) walk(node);
  for (const node of all) walk(node); // circles
  return { nodes: all, edges, left, rows };
}

/** The picture of statements. */
export function graphElement(statements, prefixes) {
  const { nodes, edges, left, rows } = layOut(statements);
  const x = (node) => 8 + node.column * (WIDTH + BETWEEN_COLUMNS);
  const y = (node) => 8 + node.row * (HEIGHT + BETWEEN_ROWS) + (node.column % 2) * 8;
  const width = 16 + rows.length * (WIDTH + BETWEEN_COLUMNS) - BETWEEN_COLUMNS;
  const height = 24 + Math.max(1, ...rows) * (HEIGHT + BETWEEN_ROWS);
  const name = `graph of ${nodes.length} nodes and ${edges.length} statements`;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": name });
  for (const { from, to, predicate } of edges) {
    const [x1, y1, y2] = [x(from) + WIDTH, y(from) + HEIGHT / 2, y(to) + HEIGHT / 2];
    const ahead = to.column > from.column;
    const x2 = ahead ? x(to) : x(to) + WIDTH;
    const bend = ahead ? (x2 - x1) / 2 : 70;
    const path = `M${x1} ${y1} C${x1 + bend} ${y1} ${ahead ? x2 - bend : x2 + bend} ${y2} ${x2} ${y2}`;
    const middle = ahead ? x1 + (x2 - x1) * 0.5 : Math.max(x1, x2) + 52;
    const short = predicate.value === `${RDF}type` ? "a" : labelOf(predicate, prefixes);
    picture.append(
      svg("path", { class: "edge", d: path }, svg("title", {}, predicate.value)),
      svg("circle", { class: "end", cx: x2, cy: y2, r: 3 }),
      svg("text", { class: "edge-label", x: middle, y: (y1 + y2) / 2 - 4 }, cut(short, EDGE_LABEL)),
    );
  }
  for (const node of nodes) {
    const { term } = node;
    const full = term.kind === "literal" ? term.value.slice(0, 1000) : termText(term).slice(0, 1000);
    const radius = term.kind === "literal" ? 2 : HEIGHT / 2;
    const rtl = term.kind === "literal" && term.direction === "rtl";
    picture.append(
      svg(
        "g",
        { class: `picture-node ${term.kind}` },
        svg("title", {}, full),
        svg("rect", { x: x(node), y: y(node), width: WIDTH, height: HEIGHT, rx: radius }),
        svg(
          "text",
          { x: x(node) + WIDTH / 2, y: y(node) + HEIGHT / 2 + 4, direction: rtl ? "rtl" : "ltr" },
          cut(labelOf(term, prefixes).replace(/\s+/g, " "), LABEL),
        ),
      ),
    );
  }
  const made = document.createDocumentFragment();
  made.append(picture);
  if (left) {
    const note = document.createElement("p");
    note.className = "note";
    note.textContent = `the picture has ${MOST_NODES} nodes; ${left.toLocaleString()} statements are left out`;
    made.append(note);
  }
  return made;
}
