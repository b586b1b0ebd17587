// Completions at a position in a query: keywords, variables, prefixes, classes and predicates. No access to the
// document.
//
// The position in a triple pattern is found by a walk over the tokens before it, which guesses if a query is malformed:
// only the server checks the syntax.

import { FUNCTIONS, KEYWORDS, declaredPrefixes, tokens } from "./sparql.js";

const TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const NEXT = { subject: "predicate", predicate: "object", object: "end", class: "end", graph: "subject", end: "end" };
const AFTER = { ".": "subject", ";": "predicate", ",": "object" };
// keywords after which other things than triples follow, until a bracket is closed or opened
const EXPRESSIONS = /^(?:FILTER|BIND|HAVING|SELECT|ORDER|GROUP|LIMIT|OFFSET|AS|ASK|DESCRIBE|VALUES|PREFIX|BASE|FROM|VERSION)$/;
const LOCAL = /^[\p{L}\p{N}_](?:[\p{L}\p{N}_-]*[\p{L}\p{N}_])?$/u;

/** The word at a position: {slot, from, text, kind}.
 *
 *  `slot` is "subject", "predicate", "object", "class" (an object of `a`), "graph", "end" (of a triple), "expression" or
 *  "none" (in a comment, a string or a number); `from` is the start of the word, `text` the word. */
export function typedAt(found, place) {
  const current = found.find(({ start, text }) => start < place && place <= start + text.length) ?? null;
  const isWord = current !== null && ["keyword", "name", "variable", "iri"].includes(current.kind);
  const isBegun = current !== null && /^[?$<]$/.test(current.text);
  if (current !== null && ["comment", "string", "number", "tag"].includes(current.kind)) {
    // there is no word right after the quotes of a closed string, or after a number
    return { slot: "none", from: place, text: "", kind: current.kind };
  }
  const from = isWord || isBegun ? current.start : place;
  const text = isWord || isBegun ? current.text.slice(0, place - from) : "";
  return { slot: slotBefore(found, from), from, text, kind: text === "" ? null : kindOf(text) };
}

function kindOf(text) {
  if (text[0] === "?" || text[0] === "$") return "variable";
  if (text[0] === "<") return "iri";
  return text.includes(":") ? "name" : "keyword";
}

/** The slot at a place, by the tokens that begin before it. */
function slotBefore(found, place) {
  const open = []; // the slot after each open bracket
  let slot = "expression";
  let isType = false; // whether the predicate is rdf:type
  let before = null; // the text of the token before
  const prefixes = declaredPrefixes(found);
  for (const { kind, text, start } of found) {
    if (start >= place) break;
    if (kind === "comment" || text.trim() === "") continue;
    if (text === "{") {
      open.push(slot === "end" ? "end" : "subject");
      slot = "subject";
    } else if (before === "{" && text === "|") {
      slot = "predicate"; // of an annotation
    } else if (before === "<" && text === "(") {
      open.push(NEXT[slot] ?? "subject");
      slot = "subject"; // of a triple term
    } else if (text === "[" || text === "(") {
      const inTriple = slot === "subject" || slot === "object" || slot === "class";
      open.push(slot === "expression" || slot === "end" ? "subject" : slot === "predicate" ? "predicate" : NEXT[slot]);
      if (text === "[") slot = "predicate";
      else if (slot !== "predicate") slot = inTriple ? "items" : "expression";
    } else if (kind === "bracket") {
      slot = open.pop() ?? "expression";
      if (text === "}" && open.length === 0) slot = "expression";
      if (text === ")" && slot === "predicate") slot = "object"; // of a path in parentheses
    } else if (text in AFTER && open.length > 0) {
      slot = AFTER[text] === "object" && isType ? "class" : AFTER[text];
    } else if (slot === "object" && /^[/|]$/.test(text)) {
      slot = "predicate"; // a path goes on
    } else if (kind === "keyword" && !/^(?:a|true|false)$/.test(text)) {
      const word = text.toUpperCase();
      if (EXPRESSIONS.test(word)) slot = "expression";
      else if (word === "GRAPH" || word === "SERVICE") slot = "graph";
      else if (slot === "end") slot = "subject";
    } else if (kind !== "other" && kind !== "tag" && slot in NEXT) {
      if (slot === "predicate") isType = text === "a" || iriOf(text, prefixes) === TYPE;
      slot = slot === "predicate" && isType ? "class" : NEXT[slot];
    }
    before = text;
  }
  return slot === "items" ? "object" : slot;
}

function iriOf(text, prefixes) {
  if (text[0] === "<") return text.slice(1, -1);
  const colon = text.indexOf(":");
  return colon < 0 ? null : `${prefixes[text.slice(0, colon)] ?? ""}${text.slice(colon + 1)}`;
}

/** The words for which the completions stay the same. */
export const SAME_WORD = {
  variable: /^[?$][\p{L}\p{N}_]*$/u,
  iri: /^<[^\s<>"]*$/,
  name: /^[\p{L}\p{N}_.-]*:[\p{L}\p{N}_.-]*$/u,
  keyword: /^[\p{L}\p{N}_-]+$/u,
};

/** The completions that need no request: [{label, type, declare}].
 *
 *  `known` are prefixes that may be declared; `declare` is one that the completion needs, as [prefix, IRI]. */
export function ownCompletions(text, found, typed, known) {
  const { slot, kind } = typed;
  if (slot === "none" || kind === "iri" || kind === null) return [];
  if (kind === "variable") {
    const others = found.filter((each) => each.kind === "variable" && each.start !== typed.from);
    return [...new Set(others.map((each) => each.text))].map((label) => ({ label, type: "variable" }));
  }
  const declared = declaredPrefixes(found);
  const prefixes = Object.entries({ ...known, ...declared }).map(([prefix, iri]) => ({
    label: `${prefix}:`,
    detail: iri,
    type: "namespace",
    declare: Object.hasOwn(declared, prefix) ? null : [prefix, iri],
  }));
  if (kind === "name" || slot === "predicate" || slot === "class") return prefixes;
  const words = [...KEYWORDS].map((label) => ({ label, type: "keyword" }));
  const functions = slot === "expression" ? FUNCTIONS.map((label) => ({ label, type: "function" })) : [];
  return [...words, ...functions, ...prefixes];
}

/** The request to the endpoint: {kind: "class" or "predicate", namespace}; null: none. */
export function wanted(found, { slot, text, kind }, known) {
  if (slot !== "predicate" && slot !== "class") return null;
  if (kind === "variable" || text === "a") return null;
  const colon = kind === "name" ? text.indexOf(":") : -1;
  const namespace = colon < 0 ? "" : { ...known, ...declaredPrefixes(found) }[text.slice(0, colon)];
  return namespace === undefined ? null : { kind: slot, namespace };
}

/** Completions for IRIs, as prefixed names where that can be: [{label, type, declare}]. */
export function termCompletions(iris, kind, found, known) {
  const declared = declaredPrefixes(found);
  const prefixes = Object.entries({ ...known, ...declared }).sort(([, one], [, other]) => other.length - one.length);
  return iris.map((iri) => {
    const namespace = prefixes.find(([, start]) => start !== "" && iri.startsWith(start) && LOCAL.test(iri.slice(start.length)));
    if (namespace === undefined) return { label: `<${iri}>`, type: kind, declare: null };
    const [prefix, start] = namespace;
    const declare = Object.hasOwn(declared, prefix) ? null : namespace;
    return { label: `${prefix}:${iri.slice(start.length)}`, detail: iri, type: kind, declare };
  });
}

/** All of them for a text and a place, for tests: the word, and its request to the endpoint. */
export function at(text, place, known = {}) {
  const found = tokens(text);
  const typed = typedAt(found, place);
  return { ...typed, wanted: wanted(found, typed, known), own: ownCompletions(text, found, typed, known).map(({ label }) => label) };
}
