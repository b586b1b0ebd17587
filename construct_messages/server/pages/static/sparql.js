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

/** The place of a line and a column, which count from 1, columns in characters as the server counts them. */
export function placeOf(text, line, column) {
  const lines = text.split("\n").slice(0, line);
  const last = Array.from(lines.at(-1) ?? "").slice(0, column - 1).join("");
  return lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0) + last.length;
}
