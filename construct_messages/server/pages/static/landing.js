// The start of the page: explains messages with data of the server, and offers examples.
//
// One small query runs for it: the first example of the endpoint, of which the first messages are read and no more. Its
// examples are those of what the data have (examples.js), once that is known.

import { element, button } from "./elements.js";
import { parametersOf } from "./examples.js";
import { LOG_TYPE, piecesOf, readLog, syntaxOf } from "./log.js";
import { learnPrefixes, messageElement, statementsOf } from "./message-view.js";
import { COMMON_PREFIXES, Prefixes } from "./prefixes.js";
import { ask, urlOf } from "./server.js";
import { RDF, shownText } from "./terms.js";

const MESSAGES = 3;
const FEWEST_STATEMENTS = 10; // after which no further message is shown
const STATEMENTS = 5; // of a message that are shown
const LINES = 13; // of the heap
const MILLISECONDS = 4000; // after which another sample does
const SAMPLE = [
  ["Solvay", "Belgium", "11700000"],
  ["Umicore", "Belgium", "11700000"],
  ["Nintendo", "Japan", "124000000"],
].map(([company, country, population]) => [
  `<http://dbpedia.org/resource/${company}> <http://dbpedia.org/ontology/location> <http://dbpedia.org/resource/${country}> .`,
  `<http://dbpedia.org/resource/${country}> <http://www.w3.org/2000/01/rdf-schema#label> "${country}"@en .`,
  `<http://dbpedia.org/resource/${country}> <http://dbpedia.org/ontology/populationTotal> ` +
    `"${population}"^^<http://www.w3.org/2001/XMLSchema#integer> .`,
]);

/** Fills `place`. `examples()` returns those of the endpoint, which may be others when the promise `looked` is done;
 *  `choose(example)` puts one into the form and runs it, and `signal` ends the request. */
export async function showLanding(place, { server, endpoint, examples, looked, choose, signal }) {
  const comparison = element("div", { class: "comparison" });
  const list = element("ul", { class: "examples" });
  const fill = () => list.replaceChildren(...examples().map((example) => exampleElement(example, choose)));
  fill();
  place.replaceChildren(
    element("h2", {}, "Each solution is a message"),
    element(
      "p",
      { class: "lead" },
      "Other endpoints answer a CONSTRUCT with one graph, in which the results run together. ",
      "Here each result stays whole: a message that can be shown, sent and stored by itself.",
    ),
    comparison,
    element("h2", {}, "Examples"),
    list,
    footElement(server, endpoint),
  );
  place.hidden = false;
  await looked;
  if (signal.aborted) return;
  if (!list.contains(document.activeElement)) fill();
  const [example] = examples();
  const messages = await firstMessages(endpoint, example, signal);
  if (signal.aborted) return;
  comparison.append(...comparisonParts(messages, endpoint, example));
}

function exampleElement(example, choose) {
  const go = button(example.name, () => choose(example), { class: "example" });
  return element("li", {}, go, element("span", { class: "note" }, example.sentence ?? ""));
}

function footElement(server, endpoint) {
  const links = [
    ["https://w3c-cg.github.io/rsp/messages/", "RDF Messages, the specification"],
    [urlOf(`${endpoint.path}?format=ttl`), "Description of this endpoint"],
    [urlOf("-/server.json"), "What this server offers"],
    ...(server.streams === null ? [] : [[urlOf(server.streams), "Live streams"]]),
  ];
  const items = links.map(([href, text]) => element("li", {}, element("a", { href, rel: "noopener noreferrer" }, text)));
  return element("ul", { class: "foot" }, ...items, element("li", {}, `construct-messages ${server.version}`));
}

/** The lines of the first messages of a query; null: they did not come in time, or there are none. */
async function firstMessages(endpoint, example, signal) {
  const own = new AbortController();
  signal.addEventListener("abort", () => own.abort());
  const timer = setTimeout(() => own.abort(), MILLISECONDS);
  const found = [];
  try {
    const url = urlOf(endpoint.path);
    const response = await ask(url, example.query, LOG_TYPE, own.signal, parametersOf(example));
    const type = response.headers.get("Content-Type");
    await readLog(piecesOf(response.body), ({ lines }) => {
      if (lines.length && !own.signal.aborted) found.push(lines);
      const isMuch = found.flatMap((each) => each.slice(0, STATEMENTS)).length >= FEWEST_STATEMENTS;
      if (found.length === MESSAGES || isMuch) own.abort();
    }, syntaxOf(type));
  } catch {
    // the received ones are enough; the page shows it if there are none
  } finally {
    clearTimeout(timer);
  }
  return found.length ? found : null;
}

function comparisonParts(messages, endpoint, example) {
  const shown = messages ?? SAMPLE;
  const prefixes = new Prefixes(COMMON_PREFIXES, endpoint.prefixes);
  for (const lines of shown) learnPrefixes(statementsOf(lines).statements, prefixes);
  const cards = shown.map((lines) => {
    const left = lines.length - STATEMENTS;
    const content = messageElement(lines.slice(0, STATEMENTS), prefixes);
    if (left > 0) content.append(element("p", { class: "note" }, `and ${left.toLocaleString()} more`));
    return element("li", { class: "card" }, content);
  });
  const where = messages === null ? "with data of an example" : `of “${example.name}” at /${endpoint.path}`;
  return [
    element("section", {}, element("h3", {}, "As one graph"), heapElement(shown.flat(), prefixes)),
    element("section", {}, element("h3", {}, "As messages"), element("ol", { class: "cards" }, ...cards)),
    element("p", { class: "note" }, `The first ${shown.length === 1 ? "message" : `${shown.length} messages`} ${where}.`),
  ];
}

/** Triples as a client without messages gets them: in some order, without a border between results. */
function heapElement(lines, prefixes) {
  const { statements } = statementsOf([...new Set(lines)].sort());
  const texts = statements.map(({ subject, predicate, object }) => {
    const verb = predicate.value === `${RDF}type` ? "a" : shownText(predicate, prefixes);
    return `${shownText(subject, prefixes)} ${verb} ${shownText(object, prefixes).slice(0, 120)} .`;
  });
  const left = texts.length - LINES;
  const items = texts.slice(0, LINES).map((text) => element("li", {}, text));
  if (left > 0) items.push(element("li", { class: "note" }, `… ${left.toLocaleString()} more`));
  return element("ul", { class: "heap" }, ...items);
}
