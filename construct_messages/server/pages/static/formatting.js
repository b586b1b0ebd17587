// Formats a query: changes white space between tokens, and upper-cases keywords. Touches no document.
//
// Unknown syntax is unchanged: a query of another dialect, or a partial query, keeps all of its tokens.

import { KEYWORDS, tokens } from "./sparql.js";

const INLINE = 80; // characters of a group that stays in one line
const STEP = "  ";
// begin a line, the latter also within a group that has more lines
const CLAUSES = /^(?:PREFIX|BASE|VERSION|SELECT|CONSTRUCT|ASK|DESCRIBE|FROM|WHERE|GROUP|HAVING|ORDER|LIMIT|OFFSET)$/;
const PATTERNS = /^(?:FILTER|OPTIONAL|BIND|VALUES|GRAPH|SERVICE|MINUS|LATERAL)$/;

/** The query with lines and indentation as usual. The text in strings, comments and IRIs is unchanged. */
export function formatted(text) {
  const found = significant(tokens(text.replace(/\r\n?/g, "\n")));
  const inline = inlineGroups(found);
  const open = []; // brackets: {text, isBlock}
  let lines = "";
  let previous = null;
  for (const [index, token] of found.entries()) {
    if (previous !== null) lines += gap(previous, token, open, inline);
    lines += token.kind === "keyword" && KEYWORDS.has(token.text.toUpperCase()) ? token.text.toUpperCase() : token.text;
    token.index = index;
    token.endsGroup = token.text === "}" && previous?.text !== "|"; // not an annotation
    if ("{[(".includes(token.text)) open.push({ text: token.text, isBlock: token.text === "{" && !inline.has(index) });
    if ("}])".includes(token.text)) open.pop();
    previous = token;
  }
  return `${lines}\n`;
}

/** The tokens that are no white space; `lines`: how many lines begin before each, `spaced`: whether anything is. */
function significant(found) {
  const kept = [];
  let space = "";
  for (const token of found) {
    if (token.text.trim() === "") {
      space = token.text;
    } else {
      kept.push({ ...token, lines: space.split("\n").length - 1, spaced: space !== "" });
      space = "";
    }
  }
  return kept;
}

/** The indexes of the braces of groups that stay in one line: short, written in one line, without another group. */
function inlineGroups(found) {
  const inline = new Set();
  let opening = null;
  let length = 0;
  for (const [index, { text, kind, lines }] of found.entries()) {
    length += text.length + 1;
    if (opening !== null && lines > 0) opening = null;
    if (kind === "comment") opening = null;
    if (text === "{") [opening, length] = [index, 0];
    if (text !== "}" || opening === null) continue;
    if (length < INLINE || found[opening + 1].text === "|") inline.add(opening).add(index);
    opening = null;
  }
  return inline;
}

/** The white space between two tokens. */
function gap(previous, token, open, inline) {
  const closes = "}])".includes(token.text);
  const group = open.at(-1);
  const breaks = mustBreak(previous, token, group, inline);
  if (!breaks && !(token.lines > 0 && mayBreak(previous, token))) {
    if (previous.text === "{" || token.text === "{" || token.text === "}" || previous.text === "}") {
      const isAnnotation = previous.text === "|" || token.text === "|";
      return token.spaced || !(isAnnotation || ".;,".includes(token.text)) ? " " : "";
    }
    return token.spaced ? " " : "";
  }
  const depth = open.length - (closes ? 1 : 0);
  const hangs = group?.text === "{" && !closes && continues(previous, token) ? 1 : 0;
  const blank = token.lines > 1 && !closes && previous.text !== "{" ? "\n" : "";
  return `${blank}\n${STEP.repeat(Math.max(0, depth) + hangs)}`;
}

/** Whether a line begins at a token, however the query was written. */
function mustBreak(previous, token, group, inline) {
  if (previous.kind === "comment") return true;
  if (token.kind === "comment") return false; // stays after the token before it, or in its own line
  const word = token.kind === "keyword" ? token.text.toUpperCase() : "";
  if (group === undefined) {
    if (previous.endsGroup && word !== "") return true;
    return CLAUSES.test(word) && !(word === "WHERE" && /^(?:\*|[?$].*|\))$/.test(previous.text));
  }
  if (!group.isBlock) return false;
  if (previous.text === "{" && !inline.has(previous.index)) return true;
  if (token.text === "}" && !inline.has(token.index)) return true;
  if (".;".includes(previous.text)) return true;
  if (previous.endsGroup) return !".;,|".includes(token.text) && word !== "UNION";
  return CLAUSES.test(word) && word !== "WHERE" ? true : PATTERNS.test(word) && /^[\])}]$/.test(previous.text);
}

/** Whether a line that begins at a token in the query may begin there in the formatted one. */
function mayBreak(previous, token) {
  return token.kind === "comment" || !(token.text === "{" || ".;,".includes(token.text));
}

/** Whether a line continues the statement before it. */
function continues(previous, token) {
  if (token.kind === "comment" || previous.kind === "comment") return false;
  if (token.kind === "keyword" && (CLAUSES.test(token.text.toUpperCase()) || PATTERNS.test(token.text.toUpperCase()))) return false;
  return !".{}".includes(previous.text);
}
