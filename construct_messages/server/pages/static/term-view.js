// A term as elements of the page: IRIs shortened, numbers and dates set as such, long literals folded, and nothing hidden.
//
// The text of an element may differ from the term, which is in `data-copy` as N-Triples (copying.js). The server's
// views show terms in the same way: templates/message.html.

import { button, element } from "./elements.js";
import { partsOf } from "./marks.js";
import { RDF, XSD, isLink, termText } from "./terms.js";

const SHOWN_CHARACTERS = 280; // of a literal
const MORE_CHARACTERS = 20_000; // that one click adds
const SHOWN_IRI = 64; // characters of an IRI without a prefix
const COPIED_CHARACTERS = 20_000; // of a literal in an attribute
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const NUMBERS = new Set(["integer", "decimal", "double"].map((name) => XSD + name));
const DATES = new Set(["date", "dateTime", "dateTimeStamp", "gYear", "gYearMonth", "time"].map((name) => XSD + name));
const TIME = /^-?\d{4,}(?:-\d\d(?:-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?)?)?)?(?:Z|[+-]\d\d:\d\d)?$|^\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?$/;
const BREAKS = /(?<=[:/#?&=_.-])(?=[^:/#?&=_.-])|(?<=\p{Ll})(?=\p{Lu})/u; // where a line may end within an IRI

/** A term; `labels` are the names of blank nodes in this message, which grow by those that have none yet. */
export function termElement(term, prefixes, labels = new Map()) {
  switch (term.kind) {
    case "iri":
      return iriElement(term.value, prefixes);
    case "blank":
      return blankElement(term, labels);
    case "triple":
      return element(
        "span",
        { class: "triple-term" },
        "<<( ",
        ...[term.subject, term.predicate, term.object].flatMap((part) => [termElement(part, prefixes, labels), " "]),
        ")>>",
      );
    default:
      return literalElement(term, prefixes);
  }
}

/** The name of a blank node within a message: `_:b1`, and so on, in the order in which they are shown. */
export function blankName(term, labels) {
  if (!labels.has(term.value)) labels.set(term.value, `_:b${labels.size + 1}`);
  return labels.get(term.value);
}

function blankElement(term, labels) {
  const whole = `_:${term.value}`;
  return element("span", { class: "blank", title: whole, "data-copy": whole }, blankName(term, labels));
}

/** An IRI: a link where a browser may open it. Its whole text is shown on hovering, and copied. */
export function iriElement(iri, prefixes, name = null) {
  const short = name ?? prefixes.shorten(iri);
  const text = element("bdi", {}, ...brokenText(short ?? cutIri(iri)));
  const attributes = { class: short === null ? "iri whole" : "iri", title: iri, "data-copy": `<${iri}>` };
  if (!isLink(iri)) return element("span", attributes, text);
  return element("a", { ...attributes, href: iri, target: "_blank", rel: "noopener noreferrer" }, text);
}

/** An IRI, without its middle if it is long: its host and its last part are the most useful. */
export function cutIri(iri) {
  if (iri.length <= SHOWN_IRI) return iri;
  const [start] = /^[a-z][a-z0-9+.-]*:(?:\/\/[^/?#]{1,40}\/)?/i.exec(iri) ?? [""];
  const [end] = /[^/?]{0,40}[/?]?$/.exec(iri);
  return `${start.slice(0, 48)}…${end.startsWith("/") ? "" : "/"}${end}`;
}

/** A text that may be broken between its words, with invisible characters marked. */
function brokenText(text) {
  const nodes = [];
  for (const part of partsOf(text)) {
    if (typeof part !== "string") {
      nodes.push(markElement(part));
      continue;
    }
    for (const [index, word] of part.split(BREAKS).entries()) nodes.push(...(index ? [element("wbr"), word] : [word]));
  }
  return nodes;
}

function markElement({ text, code, name }) {
  return element("span", { class: "mark", title: name, "data-copy": text }, code);
}

function marked(text) {
  return partsOf(text).map((part) => (typeof part === "string" ? part : markElement(part)));
}

function literalElement(term, prefixes) {
  const own = value(term);
  const copied = term.value.length <= COPIED_CHARACTERS ? termText(term) : null;
  if (own !== null) {
    own.title = prefixes.shorten(term.datatype) ?? term.datatype;
    own.dataset.copy = copied;
    return own;
  }
  const made = element("span", { class: "literal", "data-copy": copied }, textElement(term));
  if (term.language !== null) {
    const tag = term.direction === null ? term.language : `${term.language}--${term.direction}`;
    made.append(" ", element("span", { class: "tag", title: `language ${tag}` }, tag));
  } else if (term.datatype !== `${XSD}string` && !term.datatype.startsWith(`${RDF}lang`)) {
    made.append(" ", element("span", { class: "tag" }, iriElement(term.datatype, prefixes)));
  }
  return made;
}

/** A literal that is a number, a date or a truth value, and is written as one; else null. */
function value({ value: text, datatype }) {
  if (NUMBERS.has(datatype) && NUMBER.test(text)) return element("span", { class: "literal number" }, ...grouped(text));
  if (DATES.has(datatype) && TIME.test(text)) {
    return element("time", { class: "literal date", datetime: text }, text.replace(/^(-?\d{4,}-\d\d-\d\d)T/, "$1 "));
  }
  if (datatype === `${XSD}boolean` && /^(?:true|false)$/.test(text)) return element("span", { class: "literal truth" }, text);
  return null;
}

/** A number whose digits stand in threes: by space between elements, so that its text stays what it is. */
function grouped(text) {
  const [, sign, digits, rest] = /^([+-]?)(\d*)(.*)$/.exec(text);
  if (digits.length < 5) return [text];
  const head = digits.length % 3;
  const groups = [...(head ? [digits.slice(0, head)] : []), ...(digits.slice(head).match(/\d{3}/g) ?? [])];
  return [sign, ...groups.map((group, index) => (index ? element("span", { class: "digits" }, group) : group)), rest];
}

/** The text of a literal: isolated, so that its direction turns nothing around it; a long one folded, with a way on. */
function textElement(term) {
  if (term.value === "") return element("span", { class: "note" }, "empty text");
  const text = element("bdi", { lang: term.language, dir: term.direction ?? "auto" });
  const folded = term.value.length > SHOWN_CHARACTERS * 1.2;
  if (!folded) {
    text.append(...marked(term.value));
    return text;
  }
  let shown = 0;
  const rest = element("span", { class: "rest" });
  const show = (characters) => {
    let end = Math.min(term.value.length, shown + characters);
    if (/[\ud800-\udbff]/.test(term.value[end - 1] ?? "")) end += 1; // not between the halves of a character
    text.append(...marked(term.value.slice(shown, end)));
    shown = end;
    rest.hidden = shown >= term.value.length;
    rest.firstChild.data = `… ${(term.value.length - shown).toLocaleString()} more characters `;
  };
  rest.append("", button("show more", () => show(MORE_CHARACTERS), { class: "quiet" }));
  show(SHOWN_CHARACTERS);
  return element("span", {}, text, rest);
}
