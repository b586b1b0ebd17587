// The text of SPARQL queries as far as an editor needs it: tokens, pairs of brackets, prefixes. Touches no document.
//
// SPARQL 1.2 Query Language, section 19.8 (terminals). What is right or wrong the server says.

const TOKEN = new RegExp(
  [
    String.raw`(?<comment>#[^\n]*)`,
    String.raw`(?<iri><[^\s<>"{}|^\x60\\]*>)`,
    String.raw`(?<string>"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)`,
    String.raw`(?<variable>[?$][\p{L}\p{N}_]+)`,
    String.raw`(?<name>(?:[\p{L}][\p{L}\p{N}_.-]*)?:(?:[\p{L}\p{N}_:%\\-](?:[\p{L}\p{N}_:.%\\-]*[\p{L}\p{N}_:%\\-])?)?|_:[\p{L}\p{N}_.-]+)`,
    String.raw`(?<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)`,
    String.raw`(?<tag>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)`,
    String.raw`(?<keyword>[A-Za-z][A-Za-z0-9_]*)`,
    String.raw`(?<bracket>[{}()[\]])`,
    String.raw`(?<other>[^\s{}()[\]]|\s+)`,
  ].join("|"),
  "gu",
);
const CLOSING = { ")": "(", "]": "[", "}": "{" };

/** The tokens of a text, gapless: {kind, text, start}. */
export function tokens(text) {
  const found = [];
  for (const match of text.matchAll(TOKEN)) {
    const [kind] = Object.entries(match.groups).find(([, value]) => value !== undefined);
    found.push({ kind, text: match[0], start: match.index });
  }
  return found;
}

/** The bracket before or behind a place and its partner, as places; null where there is no pair. */
export function bracketPair(found, place) {
  const brackets = found.filter(({ kind }) => kind === "bracket");
  const partner = new Map();
  const open = [];
  for (const bracket of brackets) {
    if (!(bracket.text in CLOSING)) open.push(bracket);
    else if (open.at(-1)?.text === CLOSING[bracket.text]) {
      const opening = open.pop();
      partner.set(opening.start, bracket.start).set(bracket.start, opening.start);
    }
  }
  for (const at of [place - 1, place]) if (partner.has(at)) return [at, partner.get(at)];
  return null;
}

/** The prefixes that a query declares: {prefix: IRI}. */
export function declaredPrefixes(found) {
  const significant = found.filter(({ kind, text }) => kind !== "comment" && text.trim() !== "");
  const declared = {};
  for (const [index, token] of significant.entries()) {
    const [name, iri] = significant.slice(index + 1, index + 3);
    if (token.kind === "keyword" && /^prefix$/i.test(token.text) && name?.text.endsWith(":") && iri?.kind === "iri") {
      declared[name.text.slice(0, -1)] = iri.text.slice(1, -1);
    }
  }
  return declared;
}

/** The prefixes that a query uses and does not declare. */
export function undeclaredPrefixes(found) {
  const declared = declaredPrefixes(found);
  const used = new Set();
  for (const { kind, text } of found) {
    const prefix = kind === "name" ? text.slice(0, text.indexOf(":")) : "_";
    if (prefix !== "_" && !Object.hasOwn(declared, prefix)) used.add(prefix);
  }
  return [...used];
}

/** The form of a query by its first keyword after the prologue, as SELECT; null: there is none. */
export function queryForm(found) {
  const keyword = found.find(({ kind, text }) => kind === "keyword" && !/^(?:base|prefix|version)$/i.test(text));
  const form = keyword?.text.toUpperCase();
  return ["CONSTRUCT", "SELECT", "ASK", "DESCRIBE"].includes(form) ? form : null;
}

/** The place in a text, in UTF-16 units, of a line and a column as the server counts them.
 *
 *  Both count from 1, and columns count code points. Lines end at LF, CRLF or CR. A place that is not in the text is
 *  the nearest one that is. */
export function placeOf(text, line, column) {
  const ends = /\r\n|\r|\n|$/g;
  let start = 0;
  let { index: end } = ends.exec(text);
  for (let number = 1; number < line; number += 1) {
    if (end === text.length) return end;
    start = ends.lastIndex;
    end = ends.exec(text).index;
  }
  let place = start;
  for (let number = 1; number < column && place < end; number += 1) place += text.codePointAt(place) > 0xffff ? 2 : 1;
  return place;
}

/** The part of a text that an error at a place is about: {start, end}.
 *
 *  That is the token there. White space is marked by its one character, and the end of a line or of the text by
 *  nothing: start is end. */
export function tokenAt(found, text, place) {
  const token = found.find((each) => place >= each.start && place < each.start + each.text.length);
  if (token !== undefined && token.text.trim() !== "") {
    return { start: token.start, end: token.start + token.text.length };
  }
  const [character] = text.slice(place, place + 2).match(/^[^\r\n]/u) ?? [""];
  return { start: place, end: place + character.length };
}
