// A message as elements of the page: subjects nested as in Turtle, terms shortened, long literals cut.
//
// Logs are read here, in the browser. HTML of streams is made by the server, without scripts: streams/html/nesting.py. There
// a message cannot grow by a click, so more of it is shown at once.
//
// RDF 1.2 Turtle, section 2.6 (nested blank nodes). Text becomes text nodes only: nothing of a message is read as HTML.

import { Prefixes, RDF, XSD, isLink, parseLine } from "./terms.js";

const SHOWN_CHARACTERS = 600; // of a literal
const MORE_CHARACTERS = 20_000; // that one click adds
const SHOWN_STATEMENTS = 60; // of a message
const MORE_STATEMENTS = 300;
const DEEPEST = 12; // blank nodes within each other

/** An element with attributes and children; strings become text. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** A button that calls `act`. */
export function button(label, act, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
}

/** A term. IRIs are links where a browser may open them, and plain text where not. */
export function termElement(term, prefixes = new Prefixes()) {
  switch (term.kind) {
    case "iri":
      return iriElement(term.value, prefixes);
    case "blank":
      return element("span", { class: "blank" }, `_:${term.value}`);
    case "triple":
      return element(
        "span",
        { class: "triple-term" },
        "<<( ",
        ...[term.subject, term.predicate, term.object].flatMap((part) => [termElement(part, prefixes), " "]),
        ")>>",
      );
    default:
      return literalElement(term, prefixes);
  }
}

function iriElement(iri, prefixes) {
  const short = prefixes.shorten(iri);
  const text = element("bdi", {}, short ?? `<${iri}>`);
  if (!isLink(iri)) return element("span", { class: "iri", title: iri }, text);
  return element("a", { class: "iri", href: iri, title: iri, target: "_blank", rel: "noopener noreferrer" }, text);
}

function literalElement(term, prefixes) {
  const plain = term.datatype === `${XSD}string` || term.datatype.startsWith(RDF);
  const made = element("span", { class: "literal" }, '"', textElement(term), '"');
  if (term.language !== null) {
    const tag = term.direction === null ? `@${term.language}` : `@${term.language}--${term.direction}`;
    made.append(element("span", { class: "tag" }, tag));
  } else if (!plain) {
    made.append(element("span", { class: "tag" }, "^^", iriElement(term.datatype, prefixes)));
  }
  return made;
}

/** The text of a literal: isolated, so that its direction turns nothing around it; a long one cut, with a way on. */
function textElement(term) {
  const text = element("bdi", { lang: term.language, dir: term.direction ?? "auto" });
  let shown = 0;
  const rest = element("span", { class: "rest" });
  const show = (characters) => {
    let end = Math.min(term.value.length, shown + characters);
    if (/[\ud800-\udbff]/.test(term.value[end - 1] ?? "")) end += 1; // not between the halves of a character
    text.append(term.value.slice(shown, end));
    shown = end;
    rest.hidden = shown >= term.value.length;
    rest.firstChild.data = `… ${(term.value.length - shown).toLocaleString()} more characters `;
  };
  rest.append("", button("show more", () => show(MORE_CHARACTERS)));
  show(SHOWN_CHARACTERS);
  return rest.hidden ? text : element("span", {}, text, rest);
}

/** The statements of lines: {statements, broken}, where broken are lines that are none. */
export function statementsOf(lines) {
  const statements = [];
  const broken = [];
  for (const line of lines) {
    try {
      const statement = parseLine(line);
      if (statement !== null) statements.push(statement);
    } catch {
      broken.push(line);
    }
  }
  return { statements, broken };
}

/** The content of a message: all of its statements where they are few, else the first, and a button for more. */
export function messageElement(lines, prefixes, shown = SHOWN_STATEMENTS) {
  const content = element("div", { class: "message" });
  const { statements, broken } = statementsOf(lines.slice(0, shown));
  if (!lines.length) content.append(element("p", { class: "note" }, "an empty message"));
  for (const [graph, triples] of byGraph(statements)) content.append(graphElement(graph, triples, prefixes));
  for (const line of broken) {
    content.append(element("p", { class: "note" }, "not read as a statement: ", element("code", {}, line.slice(0, 500))));
  }
  if (lines.length > shown) {
    const rest = (lines.length - shown).toLocaleString();
    const more = button(`show more: ${rest} statements are left`, () => {
      const grown = messageElement(lines, prefixes, shown + MORE_STATEMENTS);
      content.replaceWith(grown);
      grown.querySelector(":scope > button")?.focus();
    });
    content.append(more);
  }
  return content;
}

function byGraph(statements) {
  const graphs = new Map();
  for (const statement of statements) {
    const key = statement.graph === null ? "" : keyOf(statement.graph);
    if (!graphs.has(key)) graphs.set(key, [statement.graph, []]);
    graphs.get(key)[1].push(statement);
  }
  return graphs.values();
}

function keyOf(term) {
  return `${term.kind} ${term.value}`;
}

function graphElement(graph, statements, prefixes) {
  const subjects = new Map(); // key → {term, properties: Map(predicate → objects)}
  const uses = new Map(); // how often a blank node is an object, by key
  for (const { subject, predicate, object } of statements) {
    const key = keyOf(subject);
    if (!subjects.has(key)) subjects.set(key, { term: subject, properties: new Map() });
    const { properties } = subjects.get(key);
    if (!properties.has(predicate.value)) properties.set(predicate.value, []);
    properties.get(predicate.value).push(object);
    for (const blank of blanksOf(object)) uses.set(blank, (uses.get(blank) ?? 0) + 1);
  }
  const written = new Set();
  const nests = (object) => object.kind === "blank" && uses.get(keyOf(object)) === 1 && subjects.has(keyOf(object));

  /** The nodes of a list; null: it is not whole, or one of its nodes is something else as well. */
  const cellsOf = (key) => {
    const cells = new Set();
    for (;;) {
      const { properties } = subjects.get(key);
      const [first, rest] = [properties.get(`${RDF}first`), properties.get(`${RDF}rest`)];
      if (properties.size !== 2 || first?.length !== 1 || rest?.length !== 1 || cells.has(key)) return null;
      cells.add(key);
      if (rest[0].value === `${RDF}nil`) return [...cells];
      if (!nests(rest[0]) || written.has(keyOf(rest[0]))) return null;
      key = keyOf(rest[0]);
    }
  };

  const propertiesElement = (properties, depth) => {
    const list = element("dl", {});
    for (const [predicate, objects] of properties) {
      const name = predicate === `${RDF}type` ? element("span", { class: "iri", title: predicate }, "a") : null;
      list.append(element("dt", {}, name ?? iriElement(predicate, prefixes)));
      for (const object of objects) list.append(element("dd", {}, objectElement(object, depth)));
    }
    return list;
  };
  const objectElement = (object, depth) => {
    const key = nests(object) ? keyOf(object) : null;
    if (key === null || depth >= DEEPEST || written.has(key)) return termElement(object, prefixes);
    const cells = cellsOf(key);
    if (cells !== null) {
      for (const cell of cells) written.add(cell);
      const items = cells.map((cell) => subjects.get(cell).properties.get(`${RDF}first`)[0]);
      return element("ol", { class: "items" }, ...items.map((item) => element("li", {}, objectElement(item, depth + 1))));
    }
    written.add(key);
    return element("div", { class: "nested" }, propertiesElement(subjects.get(key).properties, depth + 1));
  };

  const nested = new Set();
  for (const { properties } of subjects.values()) {
    for (const objects of properties.values()) for (const each of objects) if (nests(each)) nested.add(keyOf(each));
  }
  const made = element("div", { class: "graph" });
  if (graph !== null) made.append(element("p", { class: "name" }, "graph ", termElement(graph, prefixes)));
  const root = (key, { term, properties }) => {
    written.add(key);
    const subject = element("p", { class: "subject" }, termElement(term, prefixes));
    made.append(element("div", { class: "node" }, subject, propertiesElement(properties, 0)));
  };
  for (const [key, subject] of subjects) if (!nested.has(key)) root(key, subject);
  // what is left refers to itself in a circle, or is nested too deeply
  for (const [key, subject] of subjects) if (!written.has(key)) root(key, subject);
  return made;
}

/** The keys of the blank nodes of a term: those within a triple term are named there, so they count twice. */
function blanksOf(term) {
  if (term.kind === "blank") return [keyOf(term)];
  if (term.kind !== "triple") return [];
  return [term.subject, term.object].flatMap(blanksOf).flatMap((key) => [key, key]);
}
