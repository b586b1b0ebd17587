// Answers other than logs: solutions of SELECT as a table, the answer of ASK, and one graph without its messages.
//
// SPARQL 1.2 Query Results JSON Format; N-Triples for graphs, and any other text as it came. The shown part is limited;
// the whole answer is counted.

import { DataTable } from "./data-table.js";
import { countOf, element } from "./elements.js";
import { LONGEST_TEXT, LogError } from "./log.js";
import { messageElement } from "./message-view.js";
import { DIRECTED_STRING, LANGUAGE_STRING, XSD } from "./terms.js";

const KEPT_CHARACTERS = 1 << 26; // of the statements that are kept; at least one is, however long
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

/** The answer of ASK. */
export function truthElement(truth) {
  return element("p", { class: "banner good" }, truth ? "yes (true)" : "no (false)");
}

/** A table of solutions, as JSON has them. */
export function solutionTable(prefixes) {
  return new DataTable({
    label: "solutions",
    what: "solution",
    isCounted: false, // the banner does it
    prefixes,
    cell: (solution, name) => (Object.hasOwn(solution, name) ? [termOf(solution[name])] : []),
    head: (name) => `?${name}`,
  });
}

/** Reads a graph in N-Triples: {lines, statements, left}, where `lines` are distinct ones that are kept, and `left`
 *  statements are none of them. `counted` is called with the number of statements so far. */
export async function readGraph(pieces, counted = () => {}) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const lines = new Set();
  let characters = 0;
  let statements = 0;
  let left = 0;
  let open = [];
  let openCharacters = 0;
  const take = (line) => {
    if (!/^[<_]/.test(line)) return;
    statements += 1;
    if (lines.has(line)) return;
    const fits = lines.size < STATEMENTS && characters + line.length <= KEPT_CHARACTERS;
    if (left === 0 && (fits || lines.size === 0)) {
      lines.add(line);
      characters += line.length;
    } else {
      left += 1;
    }
  };
  const read = (text) => {
    const found = text.split(/[\r\n]+/);
    for (const [index, piece] of found.entries()) {
      open.push(piece);
      openCharacters += piece.length;
      if (openCharacters > LONGEST_TEXT) throw new LogError("a statement is too long for this page");
      if (index === found.length - 1) break;
      take(open.join(""));
      open = [];
      openCharacters = 0;
    }
  };
  const decode = (bytes, options) => {
    try {
      return decoder.decode(bytes, options);
    } catch {
      throw new LogError("it is not UTF-8");
    }
  };
  for await (const bytes of pieces) {
    read(decode(bytes, { stream: true }));
    counted(statements);
  }
  read(`${decode(new Uint8Array(), {})}\n`);
  counted(statements);
  return { lines: [...lines], statements, left };
}

/** Whether a response has one graph, line by line. */
export function isGraph(type) {
  return /^application\/n-(?:triples|quads)/.test(type);
}

/** One graph as `readGraph` returns it, as an element. */
export function graphElementOf({ lines, statements, left }, prefixes) {
  const shown = lines.length.toLocaleString();
  const notes = [];
  if (left) notes.push(`the first ${shown} distinct triples can be seen here`);
  else if (lines.length < statements) notes.push(`${shown} of the triples are distinct`);
  const made = notes.map((note) => element("p", { class: "note" }, note));
  return element("div", {}, ...made, element("div", { class: "paper" }, messageElement(lines, prefixes)));
}

/** Another text as an element: its beginning. It is read to its end, so that one that was cut throws CutError. */
export async function textElement(pieces, type) {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += piece.length;
    if (text.length <= TEXT_CHARACTERS) text += decoder.decode(piece, { stream: true });
  }
  if (text.length <= TEXT_CHARACTERS) text += decoder.decode();
  const cut = text.length > TEXT_CHARACTERS;
  const what = `the source answered ${type || "without a media type"}, ${countOf(bytes, "byte")}`;
  const note = cut ? `${what}; the beginning of it` : what;
  return element(
    "div",
    {},
    element("p", { class: "note" }, note),
    element("pre", { class: "scroll", tabindex: "0" }, text.slice(0, TEXT_CHARACTERS)),
  );
}
