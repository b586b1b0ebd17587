// Whether a message holds a text: as its card shows it, or as N-Quads write it. Touches no document.

import { statementsOf } from "./message-view.js";
import { RDF, shownText } from "./terms.js";

/** Whether a message holds `text`, which is in lower case. */
export function searchedText(message, prefixes, text) {
  // most messages that match do by their lines, which costs least
  if (message.lines.some((line) => line.toLowerCase().includes(text))) return true;
  return statementsOf(message.lines).statements.some(({ subject, predicate, object, graph }) => {
    const verb = predicate.value === `${RDF}type` ? "a" : shownText(predicate, prefixes);
    const [from, to] = [subject, object].map((term) => shownText(term, prefixes));
    return `${from} ${verb} ${to}${graph === null ? "" : ` ${shownText(graph, prefixes)}`}`.toLowerCase().includes(text);
  });
}
