// What is no log: solutions of SELECT as a table, the answer of ASK, and one graph without its messages.
//
// SPARQL 1.2 Query Results JSON Format; N-Triples for graphs, and any other text as it came.

import { piecesOf } from "./log.js";
import { button, element, messageElement, termElement } from "./message-view.js";
import { DIRECTED_STRING, LANGUAGE_STRING, XSD } from "./terms.js";

const ROWS = 500;
const STATEMENTS = 20_000; // distinct ones that are kept of one graph
const TEXT_CHARACTERS = 200_000;

/** A term of the JSON format as `terms.js` has it. */
export function termOf(value) {
  switch (value.type) {
    case "uri":
      return { kind: "iri", value: value.value };
    case "bnode":
      return { kind: "blank", value: value.value };
    case "triple": {
      const { subject, predicate, object } = value.value;
      return { kind: "triple", subject: termOf(subject), predicate: termOf(predicate), object: termOf(object) };
    }
    default: {
      const language = value["xml:lang"] ?? null;
      const direction = value["its:dir"] ?? null;
      const tagged = direction === null ? LANGUAGE_STRING : DIRECTED_STRING;
      const own = language === null ? `${XSD}string` : tagged;
      return { kind: "literal", value: value.value, language, direction, datatype: value.datatype ?? own };
    }
  }
}

/** A SPARQL result as an element: a table of solutions, or yes and no. */
export function resultElement(document, prefixes) {
  if ("boolean" in document) {
    return element("p", { class: "banner good" }, document.boolean ? "yes (true)" : "no (false)");
  }
  const variables = document.head.vars ?? [];
  const solutions = document.results.bindings;
  const rows = element("tbody", {});
  const place = element("div", {});
  const rest = button("", () => grow());
  let shown = 0;
  const grow = () => {
    for (const solution of solutions.slice(shown, shown + ROWS)) {
      const cells = variables.map((name) =>
        element("td", {}, Object.hasOwn(solution, name) ? termElement(termOf(solution[name]), prefixes) : ""),
      );
      rows.append(element("tr", {}, ...cells));
    }
    shown = Math.min(solutions.length, shown + ROWS);
    rest.hidden = shown === solutions.length;
    rest.textContent = `show more: ${(solutions.length - shown).toLocaleString()} solutions are left`;
  };
  grow();
  const head = element("tr", {}, ...variables.map((name) => element("th", { scope: "col" }, `?${name}`)));
  const table = element("table", { "aria-label": "Solutions" }, element("thead", {}, head), rows);
  const count = solutions.length;
  place.append(
    element("p", { class: "note" }, `${count.toLocaleString()} ${count === 1 ? "solution" : "solutions"}`),
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of solutions" }, table),
    rest,
  );
  return place;
}

/** Reads a graph in N-Triples: {lines, statements, distinct}, with at most STATEMENTS distinct lines kept. */
export async function readGraph(body) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const lines = new Set();
  let statements = 0;
  let left = 0;
  let pieces = [];
  const take = (line) => {
    if (!/^[<_]/.test(line)) return;
    statements += 1;
    if (lines.size < STATEMENTS) lines.add(line);
    else if (!lines.has(line)) left += 1;
  };
  const read = (text) => {
    const found = text.split(/[\r\n]+/);
    for (const [index, piece] of found.entries()) {
      pieces.push(piece);
      if (index < found.length - 1) {
        take(pieces.join(""));
        pieces = [];
      }
    }
  };
  for await (const bytes of piecesOf(body)) read(decoder.decode(bytes, { stream: true }));
  read(`${decoder.decode()}\n`);
  return { lines: [...lines], statements, left };
}

/** One graph as an element, or what another format says as text. */
export async function graphAnswerElement(response, prefixes) {
  const type = response.headers.get("Content-Type") ?? "";
  if (!/^application\/n-(?:triples|quads)/.test(type)) {
    const text = await response.text();
    const cut = text.length > TEXT_CHARACTERS;
    return element(
      "div",
      {},
      element("p", { class: "note" }, `the source answered ${type || "without a media type"}${cut ? "; the beginning of it" : ""}`),
      element("pre", { class: "scroll", tabindex: "0" }, text.slice(0, TEXT_CHARACTERS)),
    );
  }
  const { lines, statements, left } = await readGraph(response.body);
  const distinct = lines.length + left;
  const note =
    left === 0
      ? `${statements.toLocaleString()} triples, ${distinct.toLocaleString()} of them distinct`
      : `${statements.toLocaleString()} triples; the first ${lines.length.toLocaleString()} distinct ones can be seen here`;
  return element("div", {}, element("p", { class: "note" }, note), messageElement(lines, prefixes));
}
