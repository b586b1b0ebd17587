// RDF terms: lines of N-Quads to terms and back, and which IRIs may be links. Touches no document.
//
// RDF 1.2 N-Quads, section 2. The server writes the lines, so this reader is strict about structure, but does not check
// the characters of IRIs and the form of language tags: a lenient server passes both unchanged.
//
// A term is {kind: "iri", value}, {kind: "blank", value}, {kind: "literal", value, language, direction, datatype} or
// {kind: "triple", subject, predicate, object}; a statement is {subject, predicate, object, graph}, where graph is null
// in the default graph.

export const XSD = "http://www.w3.org/2001/XMLSchema#";
export const RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
export const LANGUAGE_STRING = `${RDF}langString`;
export const DIRECTED_STRING = `${RDF}dirLangString`;

const DEEPEST = 100; // triple terms within each other
const BLANK = /_:[\p{L}\p{N}_](?:[\p{L}\p{N}\p{M}_.·‿⁀-]*[\p{L}\p{N}\p{M}_·‿⁀-])?/uy;
const LANGUAGE = /@([A-Za-z]+(?:-[A-Za-z0-9]+)*)(?:--(ltr|rtl))?/y;
const IRI_ESCAPE = /\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([]))?/g; // the last group is for those of strings
const STRING_ESCAPE = /\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([tbnrf"'\\]))?/g;
const NOT_JSON = /[\x00-\x1f]|\\[/U']|\\u[dD]/; // JSON escapes these differently, or not at all
const CHARACTERS = { t: "\t", b: "\b", n: "\n", r: "\r", f: "\f" };

/** A line that is not a statement; `column` counts UTF-16 units from 1. */
export class LineError extends Error {
  constructor(message, column) {
    super(`${message} at column ${column}`);
    this.column = column;
  }
}

/** Parses one statement; null where the line is blank or a comment. Throws LineError. */
export function parseLine(line) {
  return statementOf(new LineReader(line));
}

/** The comment after a statement, with its `#`; empty where there is none. Throws LineError. */
export function commentOf(line) {
  const reader = new LineReader(line);
  statementOf(reader);
  return line.slice(reader.at);
}

function statementOf(reader) {
  reader.skip();
  if (reader.ended()) return null;
  const subject = reader.resource("a subject");
  const predicate = reader.iri("a predicate");
  const object = reader.term(0);
  const graph = reader.peek() === "." ? null : reader.resource("a graph or a dot");
  reader.expect(".");
  if (!reader.ended()) throw reader.error("more than a statement");
  return { subject, predicate, object, graph };
}

/** Parses a term of N-Triples by itself, as SPARQL results in TSV have it. Throws LineError. */
export function parseTerm(text) {
  const reader = new LineReader(text);
  reader.skip();
  const term = reader.term(0);
  if (!reader.ended()) throw reader.error("more than a term");
  return term;
}

class LineReader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  error(what) {
    return new LineError(what, this.at + 1);
  }

  peek() {
    return this.text[this.at];
  }

  skip() {
    while (this.text[this.at] === " " || this.text[this.at] === "\t") this.at += 1;
  }

  ended() {
    return this.at >= this.text.length || this.text[this.at] === "#";
  }

  expect(token) {
    if (!this.text.startsWith(token, this.at)) throw this.error(`${token} is missing`);
    this.at += token.length;
    this.skip();
  }

  match(pattern, what) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) throw this.error(what);
    this.at = pattern.lastIndex;
    return found;
  }

  iri(what) {
    if (this.peek() !== "<") throw this.error(`${what} is missing`);
    const end = this.text.indexOf(">", this.at);
    if (end < 0) throw this.error("an IRI has no end");
    const value = unescape(this.text.slice(this.at + 1, end), IRI_ESCAPE, this);
    if (!/^[A-Za-z][A-Za-z0-9+.-]*:/.test(value)) throw this.error("an IRI has no scheme");
    this.at = end + 1;
    this.skip();
    return { kind: "iri", value };
  }

  resource(what) {
    if (this.peek() !== "_") return this.iri(what);
    const value = this.match(BLANK, "a blank node has no label")[0].slice(2);
    this.skip();
    return { kind: "blank", value };
  }

  term(depth) {
    if (this.peek() === '"') return this.literal();
    if (!this.text.startsWith("<<", this.at)) return this.resource("an object");
    if (depth >= DEEPEST) throw this.error("triple terms are nested too deeply");
    this.expect("<<(");
    const subject = this.resource("a subject");
    const predicate = this.iri("a predicate");
    const object = this.term(depth + 1);
    this.expect(")>>");
    return { kind: "triple", subject, predicate, object };
  }

  literal() {
    const start = this.at + 1;
    const end = closingQuote(this.text, start);
    if (end < 0) throw this.error("a literal has no end");
    const value = unescape(this.text.slice(start, end), STRING_ESCAPE, this);
    this.at = end + 1;
    this.skip();
    let language = null;
    let direction = null;
    let datatype = `${XSD}string`;
    if (this.peek() === "@") {
      const found = this.match(LANGUAGE, "a language tag is malformed");
      language = found[1];
      direction = found[2] ?? null;
      datatype = direction === null ? LANGUAGE_STRING : DIRECTED_STRING;
    } else if (this.text.startsWith("^^", this.at)) {
      this.expect("^^");
      datatype = this.iri("a datatype").value;
      if (datatype === LANGUAGE_STRING || datatype === DIRECTED_STRING) throw this.error("a language tag is missing");
    }
    this.skip();
    return { kind: "literal", value, language, direction, datatype };
  }
}

/** The place of the quote that ends a literal: not a regular expression, which a long literal would exhaust. */
function closingQuote(text, start) {
  let end = text.indexOf('"', start);
  while (end >= 0) {
    let escapes = 0;
    while (end - escapes > start && text[end - escapes - 1] === "\\") escapes += 1;
    if (escapes % 2 === 0) return end;
    end = text.indexOf('"', end + 1);
  }
  return -1;
}

function unescape(text, pattern, reader) {
  if (!text.includes("\\")) return text;
  if (pattern === STRING_ESCAPE && !NOT_JSON.test(text)) {
    try {
      return JSON.parse(`"${text}"`); // a hundred times as fast
    } catch {
      throw reader.error("an escape is malformed");
    }
  }
  return text.replace(pattern, (escape, four, eight, character) => {
    if (character !== undefined) return CHARACTERS[character] ?? character;
    const code = parseInt(four ?? eight, 16);
    if (!(code <= 0x10ffff) || (code >= 0xd800 && code < 0xe000)) throw reader.error(`${escape} is no escape`);
    return String.fromCodePoint(code);
  });
}

/** Whether an IRI may be a link: pages and addresses; never schemes that a browser would run, open or read, such as
 *  `javascript:`. */
export function isLink(iri) {
  return /^(?:https?:\/\/|mailto:)/i.test(iri) && URL.canParse(iri);
}

/** A term as the page shows it: IRIs shortened where a prefix fits, the text of literals as it is. */
export function shownText(term, prefixes) {
  switch (term.kind) {
    case "iri":
      return prefixes.shorten(term.value) ?? `<${term.value}>`;
    case "blank":
      return `_:${term.value}`;
    case "triple": {
      const parts = [term.subject, term.predicate, term.object];
      return `<<( ${parts.map((part) => shownText(part, prefixes)).join(" ")} )>>`;
    }
    default: {
      const text = `"${term.value}"`;
      if (term.language !== null) return `${text}@${term.language}${term.direction ? `--${term.direction}` : ""}`;
      const plain = term.datatype === `${XSD}string`;
      return plain ? text : `${text}^^${shownText({ kind: "iri", value: term.datatype }, prefixes)}`;
    }
  }
}

/** A term as N-Triples writes it. */
export function termText(term) {
  switch (term.kind) {
    case "iri":
      return `<${term.value}>`;
    case "blank":
      return `_:${term.value}`;
    case "triple":
      return `<<( ${termText(term.subject)} ${termText(term.predicate)} ${termText(term.object)} )>>`;
    default: {
      const escapes = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f" };
      const text = `"${term.value.replace(/[\\"\n\r\t\b\f]/g, (character) => escapes[character])}"`;
      if (term.language !== null) return `${text}@${term.language}${term.direction ? `--${term.direction}` : ""}`;
      return term.datatype === `${XSD}string` ? text : `${text}^^<${term.datatype}>`;
    }
  }
}
