// Draws the cards of stored elements again, from their lines, by the module that draws those that come live.
//
// What the server has written is for readers without JavaScript, and for messages that are too long for a page.

import { cardElement } from "./card.js";
import { Message } from "./log.js";
import { learnPrefixes, statementsOf } from "./message-view.js";
import { COMMON_PREFIXES, Prefixes } from "./prefixes.js";

export function drawStored(document) {
  const prefixes = new Prefixes(COMMON_PREFIXES);
  const stored = [...document.querySelectorAll(".card[data-lines]")].map((card) => {
    const message = new Message(Number(card.dataset.number), card.dataset.lines.split("\n"));
    return { card, message };
  });
  for (const { message } of stored) learnPrefixes(statementsOf(message.lines).statements, prefixes);
  for (const { card, message } of stored) {
    const { href, textContent } = card.querySelector("h3 a");
    const time = card.querySelector("header time");
    const about = { title: textContent, href, time: time === null ? undefined : new Date(time.dateTime) };
    card.replaceWith(cardElement(message, prefixes, about));
  }
}
