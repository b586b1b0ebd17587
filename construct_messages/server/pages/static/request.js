// A request of the page: {endpoint, query, parameters}, as what is typed, run, stored and linked. Touches no document.
//
// `endpoint` is the path of a SPARQL endpoint of this server; `parameters` are pairs of names and values, those that the
// server has for messages (docs/reference/server.md, "Options of messages") and others of the SPARQL Protocol.

/** The parameters that are options of messages, which only CONSTRUCT has. */
export const OPTIONS = ["group-by", "distinct", "max-messages", "page-size", "lenient"];

const TITLE = 200; // characters
const LINE_END = /\r\n?/g; // forms of HTML send CRLF, and the editor has LF
const PROLOGUE = /^(?:(?:prefix\s+[^\s<]*\s*<[^>]*>|base\s*<[^>]*>)\s*)+/i;
// what a link has beside the parameters of the request, and what the page asks by itself
const NOT_SENT = new Set(["endpoint", "query", "view", "update", "format", "messages"]);

export function isSame(one, other) {
  const [own, others] = [one, other].map(({ parameters }) => JSON.stringify(parameters));
  return one.endpoint === other.endpoint && one.query === other.query && own === others;
}

/** The request in a value that may be anything, as one from a file; null: it is none. */
export function requestIn(value) {
  const { endpoint, query, parameters = [] } = value ?? {};
  const isPair = (pair) => Array.isArray(pair) && pair.length === 2 && pair.every((each) => typeof each === "string");
  if (typeof endpoint !== "string" || typeof query !== "string") return null;
  if (!Array.isArray(parameters) || !parameters.every(isPair)) return null;
  return { endpoint, query: query.replace(LINE_END, "\n"), parameters: inOrder(parameters) };
}

/** Parameters in the order of their names, as the form has them; variables are without their mark. */
export function inOrder(parameters) {
  return parameters
    .filter(([name]) => !NOT_SENT.has(name))
    .map(([name, value]) => [name, name === "group-by" ? value.replace(/^\s*[?$]|\s+$/g, "") : value])
    .sort(([one], [other]) => (one < other ? -1 : Number(one > other)));
}

/** What an address names: {endpoint, query, parameters, view, isAsked}, each null where it does not.
 *
 *  `isAsked` is whether the query is in the part that the server gets, as in a link to an endpoint: it is run. */
export function linkIn({ search, hash }) {
  const [asked, shown] = [search, hash].map((part) => new URLSearchParams(part.slice(1)));
  const link = shown.has("query") ? shown : asked;
  return {
    endpoint: link.get("endpoint"),
    query: link.get("query")?.replace(LINE_END, "\n") ?? null,
    parameters: inOrder([...link]),
    view: shown.get("view") ?? asked.get("view"),
    isAsked: link === asked && asked.has("query"),
  };
}

/** The fragment that brings a request back, and the view of its answer. */
export function fragmentOf({ endpoint, query, parameters }, view = null) {
  const shown = view === null ? [] : [["view", view]];
  return `#${new URLSearchParams([["endpoint", endpoint], ["query", query], ...parameters, ...shown])}`;
}

/** The title of a query: a comment at its beginning, or else its text after the prologue, on one line. */
export function titleOf({ query }) {
  const lines = query.slice(0, 10_000).split("\n").map((line) => line.trim()).filter(Boolean);
  const comment = /^#+\s*(.+)/.exec(lines[0] ?? "");
  if (comment !== null) return comment[1].slice(0, TITLE);
  const onOne = (some) => some.join(" ").replace(/\s+/g, " ");
  const text = onOne(lines.filter((line) => line[0] !== "#")).replace(PROLOGUE, "");
  return (text || onOne(lines)).slice(0, TITLE) || "empty";
}

/** Options in words, as `group by ?country, distinct`; empty: there are none. */
export function described(parameters) {
  return parameters
    .map(([name, value]) => {
      const words = name.replace("-", " ");
      if (name === "group-by") return `${words} ?${value}`;
      if (!OPTIONS.includes(name)) return `${name}=${value}`;
      return value === "true" ? words : `${words} ${value}`;
    })
    .join(", ");
}
