// A message as elements of the page: a grid of properties for each subject, and nodes that are mentioned once within it.

import { button, element } from "./elements.js";
import { nest } from "./nesting.js";
import { Prefixes } from "./prefixes.js";
import { iriElement, termElement } from "./term-view.js";
import { RDF, parseLine } from "./terms.js";

const SHOWN_STATEMENTS = 60; // of a message
const MORE_STATEMENTS = 300;
const IMAGES = new Set([
  ...["depiction", "img", "thumbnail", "logo"].map((name) => `http://xmlns.com/foaf/0.1/${name}`),
  ...["image", "logo", "photo", "thumbnailUrl"].flatMap((name) => [`http://schema.org/${name}`, `https://schema.org/${name}`]),
  "http://dbpedia.org/ontology/thumbnail",
  "http://www.wikidata.org/prop/direct/P18",
]);

/** The statements of lines: {statements, broken}, where broken are lines that are not statements. */
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

/** Makes prefixes up for the IRIs of statements that have none. */
export function learnPrefixes(statements, prefixes) {
  for (const { subject, predicate, object } of statements) {
    prefixes.learn(predicate.value, true);
    if (subject.kind === "iri") prefixes.learn(subject.value);
    if (object.kind === "iri") prefixes.learn(object.value, predicate.value === `${RDF}type`);
    else if (object.kind === "literal") prefixes.learn(object.datatype, true);
  }
}

/** The content of a message: all of its statements where they are few, else the first, and a button for more. */
export function messageElement(lines, prefixes = new Prefixes(), shown = SHOWN_STATEMENTS) {
  const content = element("div", { class: "message" });
  const { statements, broken } = statementsOf(lines.slice(0, shown));
  learnPrefixes(statements, prefixes);
  if (!lines.length) content.append(element("p", { class: "note" }, "an empty message"));
  const view = { prefixes, labels: new Map() };
  for (const { name, nodes } of nest(statements)) {
    const graph = element("div", { class: "graph" });
    if (name !== null) graph.append(element("p", { class: "name" }, "graph ", termElement(name, prefixes, view.labels)));
    graph.append(...nodes.map((node) => nodeElement(node, view)));
    content.append(graph);
  }
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

function nodeElement({ term, label, properties }, view) {
  const name = termElement(term, view.prefixes, view.labels);
  const title = element("p", { class: "subject" }, ...(label === null ? [] : [labelElement(label), " "]), name);
  return element("div", { class: "node" }, title, propertiesElement(properties, view));
}

function labelElement({ value, language, direction }) {
  const text = element("bdi", { lang: language, dir: direction ?? "auto" }, value.slice(0, 120));
  return element("span", { class: "label" }, text);
}

function propertiesElement(properties, view) {
  const rows = properties.map(([predicate, objects]) => {
    const name = iriElement(predicate, view.prefixes, predicate === `${RDF}type` ? "a" : null);
    const isImage = IMAGES.has(predicate);
    const values = objects.map((object) => objectElement(object, view, isImage));
    return element("div", { class: "row" }, element("dt", {}, name), ...values);
  });
  return element("dl", {}, ...rows);
}

function objectElement({ term, node, items }, view, isImage = false) {
  if (items !== null) return element("dd", { class: "wide" }, listElement(items, view));
  if (node === null) {
    const shown = termElement(term, view.prefixes, view.labels);
    // an image is on another server: it is only requested if the user opens it, in a new tab
    if (isImage && shown.matches("a.iri")) shown.classList.add("image");
    return element("dd", {}, shown);
  }
  const name = term.kind === "iri" ? nestedName(node, view) : [];
  return element("dd", { class: "wide" }, ...name, element("div", { class: "nested" }, propertiesElement(node.properties, view)));
}

function nestedName({ term, label }, view) {
  const iri = termElement(term, view.prefixes, view.labels);
  return label === null ? [iri] : [iri, " ", labelElement(label)];
}

function listElement(items, view) {
  if (!items.length) return element("span", { class: "items" }, "( )");
  const shown = items.map((item) => {
    const { childNodes } = objectElement(item, view);
    return element("li", {}, ...childNodes);
  });
  return element("ol", { class: "items" }, ...shown);
}
