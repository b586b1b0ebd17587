// The text of SPARQL queries as far as an editor needs it: tokens, pairs of brackets, prefixes. Touches no document.
//
// SPARQL 1.2 Query Language, section 19.8 (terminals). The server checks the syntax.

const TOKEN = new RegExp(
  [
    String.raw`\s+|#[^\r\n]*|<[^\s<>"{}|^\x60\\]*>`,
    String.raw`"""(?:\\[^]|[^\\])*?(?:"""|$)|'''(?:\\[^]|[^\\])*?(?:'''|$)`,
    String.raw`"(?:[^"\\\r\n]|\\.)*"?|'(?:[^'\\\r\n]|\\.)*'?`,
    String.raw`[?$][\p{L}\p{N}_]+`,
    // prefixed names, with the escapes that local parts may have
    String.raw`(?:\p{L}(?:[\p{L}\p{N}_.-]*[\p{L}\p{N}_-])?)?:` +
      String.raw`(?:(?:[\p{L}\p{N}_:%]|\\[^\s])(?:(?:[\p{L}\p{N}_:.%-]|\\[^\s])*(?:[\p{L}\p{N}_:%-]|\\[^\s]))?)?`,
    String.raw`_:[\p{L}\p{N}_](?:[\p{L}\p{N}_.-]*[\p{L}\p{N}_-])?`,
    String.raw`[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?`,
    String.raw`@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--[A-Za-z]+)?`,
    String.raw`[A-Za-z][A-Za-z0-9_]*`,
    String.raw`[^]`,
  ].join("|"),
  "gu",
);
const KINDS = new Map([["#", "comment"], ['"', "string"], ["'", "string"]]);
for (const bracket of "{}()[]") KINDS.set(bracket, "bracket");

/** The token at a place of a text: {kind, text, start}. */
export function tokenFrom(text, place) {
  TOKEN.lastIndex = place;
  const [found] = TOKEN.exec(text);
  return { kind: kindOf(found), text: found, start: place };
}

/** The tokens of a text, gapless. */
export function tokens(text) {
  const found = [];
  for (let place = 0; place < text.length; place += found.at(-1).text.length) found.push(tokenFrom(text, place));
  return found;
}

/** The kind of a token, by its beginning. */
function kindOf(text) {
  const [first] = text;
  if (KINDS.has(first)) return KINDS.get(first);
  if (/\s/.test(first)) return "other";
  if (text.length > 1) {
    if (first === "<") return "iri";
    if (first === "?" || first === "$") return "variable";
    if (first === "@") return "tag";
  }
  if (/^[+-]?\.?\d/.test(text)) return "number";
  if (text.includes(":")) return "name";
  return /^[A-Za-z]/.test(text) ? "keyword" : "other";
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

/** The variables of a CONSTRUCT's template that stand nowhere else, so that no solution binds them, as they are written. */
export function unboundOf(found) {
  const { template, rest } = templateAndRest(found);
  const nameOf = ({ text }) => text.slice(1);
  const bound = new Set(rest.filter(({ kind }) => kind === "variable").map(nameOf));
  const unbound = template.filter((token) => token.kind === "variable" && !bound.has(nameOf(token)));
  return [...new Set(unbound.map((token) => `?${nameOf(token)}`))];
}

/** The IRIs and prefixed names that a query looks for in the data, as they are written. */
export function soughtIn(found) {
  const { rest } = templateAndRest(found);
  const sought = rest.filter(({ kind, text }, index) => {
    if (kind !== "iri" && (kind !== "name" || text.startsWith("_:"))) return false;
    const [last, second] = rest.slice(Math.max(0, index - 2), index).map((token) => token.text.toUpperCase()).reverse();
    const isDeclared = last === "BASE" || last === "PREFIX" || second === "PREFIX";
    const isDatatype = last === "^" && second === "^";
    const isService = last === "SERVICE" || last === "SILENT";
    return !isDeclared && !isDatatype && !isService && rest[index + 1]?.text !== "("; // which a function has
  });
  return [...new Set(sought.map(({ text }) => text))];
}

/** The significant tokens of the template of a CONSTRUCT, and the others. */
function templateAndRest(found) {
  const significant = found.filter(({ kind, text }) => kind !== "comment" && text.trim() !== "");
  const start = significant.findIndex(({ kind, text }) => kind === "keyword" && /^construct$/i.test(text)) + 1;
  let end = start;
  let depth = 0;
  if (start > 0 && significant[start]?.text === "{") {
    do depth += { "{": 1, "}": -1 }[significant[end++].text] ?? 0;
    while (depth > 0 && end < significant.length);
  }
  return { template: significant.slice(start, end), rest: [...significant.slice(0, start), ...significant.slice(end)] };
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

/** The keywords of SPARQL that are upper-cased and completed; `a`, `true` and `false` stay as they are. */
export const KEYWORDS = new Set(
  `AS ASC ASK BASE BIND BY CONSTRUCT DESC DESCRIBE DISTINCT EXISTS FILTER FROM GRAPH GROUP HAVING IN LATERAL LIMIT
  MINUS NAMED NOT OFFSET OPTIONAL ORDER PREFIX REDUCED SELECT SEPARATOR SERVICE SILENT UNDEF UNION VALUES VERSION WHERE`
    .split(/\s+/),
);

/** The built-in functions of SPARQL, section 17.4, and its aggregates. */
export const FUNCTIONS = `ABS AVG BNODE BOUND CEIL COALESCE CONCAT CONTAINS COUNT DATATYPE DAY ENCODE_FOR_URI FLOOR
  GROUP_CONCAT HASLANG HASLANGDIR HOURS IF IRI LANG LANGDIR LANGMATCHES LCASE MAX MD5 MIN MINUTES MONTH NOW OBJECT
  PREDICATE RAND REGEX REPLACE ROUND SAMETERM SAMPLE SECONDS SHA1 SHA256 SHA384 SHA512 STR STRAFTER STRBEFORE STRDT STRENDS
  STRLANG STRLANGDIR STRLEN STRSTARTS STRUUID SUBJECT SUBSTR SUM TIMEZONE TRIPLE TZ UCASE URI UUID YEAR isBLANK isIRI
  isLITERAL isNUMERIC isTRIPLE`.split(/\s+/);
