// SPARQL for CodeMirror: highlights the tokens of `sparql.js`, and indents lines.
//
// The grammars on npm refuse queries of SPARQL 1.2 and of the W3C's tests. Every kind of token is a class of page.css.

import { StreamLanguage, syntaxHighlighting, tagHighlighter, tags } from "./codemirror.js";
import { tokenFrom } from "./sparql.js";

const TAGS = {
  keyword: tags.keyword,
  variable: tags.variableName,
  iri: tags.url,
  name: tags.name,
  string: tags.string,
  number: tags.number,
  comment: tags.comment,
  tag: tags.annotation,
  bracket: tags.bracket,
};
const STEP = 2; // columns of one indentation

const sparql = StreamLanguage.define({
  name: "sparql",
  // `open` is the end of the long string that a line begins in, `depth` the number of open brackets
  startState: () => ({ open: null, depth: 0 }),
  copyState: (state) => ({ ...state }),
  token(stream, state) {
    if (state.open !== null) return restOfString(stream, state);
    const { kind, text } = tokenFrom(stream.string, stream.pos);
    stream.pos += text.length;
    if (kind === "string") state.open = unended(text);
    if (kind === "bracket") state.depth = Math.max(0, state.depth + ("{([".includes(text) ? 1 : -1));
    return kind === "other" ? null : kind;
  },
  indent({ open, depth }, textAfter) {
    if (open !== null) return null;
    return STEP * Math.max(0, depth - (/^[\])}]/.test(textAfter) ? 1 : 0));
  },
  tokenTable: TAGS,
  languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ["(", "[", "{", '"'] }, indentOnInput: /^\s*[\])}]$/ },
});

/** The language, as extensions of the editor. */
export const sparqlLanguage = [
  sparql,
  syntaxHighlighting(tagHighlighter(Object.entries(TAGS).map(([kind, tag]) => ({ tag, class: `token-${kind}` })))),
];

/** The quotes that end a string which continues in the next line; null if it has ended. */
function unended(text) {
  const quotes = text.slice(0, 3);
  if (quotes !== '"""' && quotes !== "'''") return null;
  return text.length >= 6 && endOf(text, 3, quotes) !== null ? null : quotes;
}

/** The position after the quotes that end a long string; null if they are not in the text. */
function endOf(text, from, quotes) {
  for (let place = from; place < text.length; place += text[place] === "\\" ? 2 : 1) {
    if (text.startsWith(quotes, place)) return place + quotes.length;
  }
  return null;
}

function restOfString(stream, state) {
  const end = endOf(stream.string, stream.pos, state.open);
  if (end !== null) state.open = null;
  stream.pos = end ?? stream.string.length;
  return "string";
}
