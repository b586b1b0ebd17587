// What is tried before it is sent: the messages of a query over stored elements, and those of a body, as cards.

import { cardElement } from "./card.js";
import { countOf } from "./elements.js";
import { LOG_TYPE, piecesOf, readLog, syntaxOf } from "./log.js";
import { learnPrefixes, statementsOf } from "./message-view.js";
import { COMMON_PREFIXES, Prefixes } from "./prefixes.js";

const SHOWN = 20;

/** The headers of a request whose answer `showMessages` takes. */
export const ACCEPT = { Accept: LOG_TYPE };

/** Shows the first messages of an answer, which is a log, as the cards of a list; returns how many there are. */
export async function showMessages(answer, list, titleOf) {
  const messages = [];
  const syntax = syntaxOf(answer.headers.get("Content-Type"));
  const { count } = await readLog(piecesOf(answer.body), (message) => messages.length < SHOWN && messages.push(message), syntax);
  const prefixes = new Prefixes(COMMON_PREFIXES);
  for (const { lines } of messages) learnPrefixes(statementsOf(lines).statements, prefixes);
  list.replaceChildren(...messages.map((message) => cardElement(message, prefixes, { title: titleOf(message.number) })));
  return count;
}

/** A number of messages, and that only some of them are shown. */
export function describedCount(count) {
  const rest = count > SHOWN ? `, of which the first ${SHOWN} are below` : "";
  return `${count === 0 ? "no message" : countOf(count, "message")}${rest}`;
}
