// Whether a message holds a text: as its card shows it, or as N-Quads write it. Touches no document.

import { statementsOf } from "./message-view.js";
import { RDF, shownText } from "./terms.js";

const WRITTEN = /^<?https?:\/\/[^\s"]*$/; // only in N-Quads, or the same in cards
const SYNTAX = /[\s:"@^()]/; // cards write these differently than N-Quads

/** Returns a function for whether a message contains `text`, which is in lower case. */
export function searchFor(text, prefixes) {
  const isWritten = WRITTEN.test(text) || !(SYNTAX.test(text) || prefixes.has(text));
  return (message) => {
    // most messages that match do by their lines, which costs least
    if (message.lines.some((line) => line.toLowerCase().includes(text))) return true;
    if (isWritten && !message.lines.some((line) => line.includes("\\"))) return false;
    return shownTexts(message, prefixes).some((shown) => shown.toLowerCase().includes(text));
  };
}

function shownTexts(message, prefixes) {
  return statementsOf(message.lines).statements.map(({ subject, predicate, object, graph }) => {
    const verb = predicate.value === `${RDF}type` ? "a" : shownText(predicate, prefixes);
    const [from, to] = [subject, object].map((term) => shownText(term, prefixes));
    return `${from} ${verb} ${to}${graph === null ? "" : ` ${shownText(graph, prefixes)}`}`;
  });
}
