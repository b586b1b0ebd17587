// Draws the cards of what is stored, by the module that draws those that come live.
//
// The server writes a link to the N-Quads of each message, and the N-Quads themselves where they are short.

import { cardElement } from "./card.js";
import { Message } from "./log.js";
import { learnPrefixes, messageElement, statementsOf } from "./message-view.js";
import { COMMON_PREFIXES, Prefixes } from "./prefixes.js";
import { accepted } from "./server.js";

const prefixes = new Prefixes(COMMON_PREFIXES);

/** Draws the messages that are in the document. */
export function drawShort(document) {
  const texts = [...document.querySelectorAll(".card > .text[data-lines]")];
  const stored = texts.map((text) => ({ text, lines: linesOf(text.dataset.lines) }));
  for (const { lines } of stored) learnPrefixes(statementsOf(lines).statements, prefixes);
  for (const { text, lines } of stored) draw(text, lines);
}

/** Reads the other messages, one after the other, and draws them; the link of one that cannot be read stays. */
export async function drawLong(document) {
  for (const text of document.querySelectorAll(".card > .text")) {
    try {
      const answer = await accepted(await fetch(text.querySelector("a").href));
      draw(text, linesOf(await answer.text()));
    } catch (error) {
      text.append(` (${error.message})`);
    }
  }
}

function linesOf(nquads) {
  return nquads.split("\n").filter((line) => line !== "");
}

function draw(text, lines) {
  const card = text.parentElement;
  const title = card.querySelector("h3 a");
  if (title === null) {
    text.replaceWith(messageElement(lines, prefixes));
    return;
  }
  const time = card.querySelector("header time");
  const about = { title: title.textContent, href: title.href, time: time === null ? undefined : new Date(time.dateTime) };
  card.replaceWith(cardElement(new Message(Number(card.dataset.number), lines), prefixes, about));
}
