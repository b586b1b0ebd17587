// A bounded list of message cards: messages come at any speed, cards are made within the time of a frame.
//
// A card is made when a frame has time for it, and only of a message that is among the last `limit`: what would be
// thrown out again is never made. What is paused goes on being counted and kept. A filter is tried when a card would be
// made, within the same time.

import { button, element, messageElement, statementsOf } from "./message-view.js";
import { graphElement } from "./graph.js";
import { Prefixes, RDF, shownText } from "./terms.js";

const FRAME_MILLISECONDS = 8; // for making cards, of the 16 that a frame has
const KEPT_CHARACTERS = 1 << 26; // of the messages that are kept; at least one is, however large

export class Cards {
  /** `list` is the element that gets the cards; `changed` is called after cards were made. */
  constructor(list, { limit = 1000, changed = () => {} } = {}) {
    this.list = list;
    this.limit = limit;
    this.changed = changed;
    this.prefixes = new Prefixes();
    this.clear();
  }

  clear() {
    this.kept = []; // the last messages, oldest first
    this.first = 0; // where they begin in `kept`, whose head is cut off now and then
    this.characters = 0;
    this.cards = new Map(); // by message
    this.texts = new WeakMap(); // by message: what the filter searches
    this.pending = []; // messages that were not looked at yet, oldest first
    this.next = 0; // where they begin in `pending`
    this.paused = false;
    this.filter = "";
    this.frame ||= 0;
    this.list.replaceChildren();
  }

  /** The messages that are kept now, oldest first. */
  messages() {
    return this.kept.slice(this.first);
  }

  add(message) {
    this.kept.push(message);
    this.characters += message.characters;
    this.pending.push(message);
    this.bound();
    this.schedule();
  }

  /** Keeps the last `limit` messages from now on. */
  keep(limit) {
    this.limit = limit;
    this.bound();
    this.schedule();
  }

  /** Stops making cards; messages are kept and counted all the same. */
  pause(paused) {
    this.paused = paused;
    this.schedule();
  }

  /** Whether the filter has looked at all messages that are kept. */
  get isDone() {
    return this.next === this.pending.length;
  }

  /** What is kept, or what the filter found of it, in words; `total` is how many messages there were. */
  described(total) {
    const kept = this.kept.length - this.first;
    if (kept === 0) return "";
    const first = this.kept[this.first].number.toLocaleString();
    if (this.filter === "") return `kept: ${first} to ${this.kept.at(-1).number.toLocaleString()}`;
    const [all, found] = [kept.toLocaleString(), this.cards.size.toLocaleString()];
    const none = this.cards.size === 0;
    const matches = none ? `no match in the ${all} that are kept` : `${found} of the ${all} that are kept match`;
    return `${matches}${this.isDone ? "" : " so far"}${kept < total ? `; those before ${first} are not searched` : ""}`;
  }

  /** Shows the messages that hold a text, in any case, as their cards show it or as N-Quads write it. */
  show(filter) {
    this.filter = filter.toLowerCase();
    this.list.replaceChildren();
    this.cards.clear();
    this.pending = this.messages();
    this.next = 0;
    if (this.paused) this.make(Infinity);
    else this.schedule();
  }

  matches(message) {
    if (this.filter === "") return true;
    if (!this.texts.has(message)) this.texts.set(message, this.searched(message));
    return this.texts.get(message).some((text) => text.includes(this.filter));
  }

  /** The texts of a message that the filter searches, in lower case: its lines, and statements as cards show them. */
  searched(message) {
    const shown = statementsOf(message.lines).statements.map(({ subject, predicate, object, graph }) => {
      const verb = predicate.value === `${RDF}type` ? "a" : shownText(predicate, this.prefixes);
      const [from, to] = [subject, object].map((term) => shownText(term, this.prefixes));
      return `${from} ${verb} ${to}${graph === null ? "" : ` ${shownText(graph, this.prefixes)}`}`;
    });
    return [...message.lines, ...shown].map((text) => text.toLowerCase());
  }

  /** Shows the card of message `number` and gives it the focus; false where it is not kept. */
  jump(number) {
    const message = this.messages().find((each) => each.number === number);
    if (message === undefined) return false;
    if (this.filter !== "") this.show("");
    this.make(Infinity);
    const card = this.cards.get(message);
    card?.scrollIntoView({ block: "start" });
    card?.focus({ preventScroll: true });
    return card !== undefined;
  }

  bound() {
    const oldest = this.kept[this.kept.length - this.limit - 1]?.number ?? 0;
    while (
      this.kept.length - this.first > 1 &&
      (this.kept[this.first].number <= oldest || this.characters > KEPT_CHARACTERS)
    ) {
      this.characters -= this.kept[this.first].characters;
      this.kept[this.first] = null;
      this.first += 1;
    }
    if (this.first > 1000 && this.first > this.kept.length / 2) {
      this.kept = this.kept.slice(this.first);
      this.first = 0;
    }
    this.drop();
  }

  /** Forgets the cards still to be made of messages that are not kept any more. */
  drop() {
    const oldest = this.kept[this.first]?.number ?? Infinity;
    while (this.next < this.pending.length && this.pending[this.next].number < oldest) {
      this.pending[this.next] = null;
      this.next += 1;
    }
    if (this.next > 1000 && this.next > this.pending.length / 2) {
      this.pending = this.pending.slice(this.next);
      this.next = 0;
    }
  }

  schedule() {
    if (this.paused || this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (this.paused) return;
      this.make(FRAME_MILLISECONDS);
      if (this.next < this.pending.length) this.schedule();
    });
  }

  make(milliseconds) {
    const end = performance.now() + milliseconds;
    const made = document.createDocumentFragment();
    const oldest = this.kept[this.first]?.number ?? Infinity;
    while (this.next < this.pending.length && performance.now() < end) {
      const message = this.pending[this.next];
      this.pending[this.next] = null;
      this.next += 1;
      if (message.number < oldest || !this.matches(message)) continue;
      const card = this.card(message);
      this.cards.set(message, card);
      made.append(card);
    }
    for (const [message, card] of this.cards) {
      if (message.number >= oldest) break;
      this.cards.delete(message);
      card.remove();
    }
    this.list.append(made);
    this.changed();
  }

  card(message) {
    const picture = element("div", { class: "picture", hidden: true, tabindex: "0", role: "region", "aria-label": "Picture" });
    const draw = button(
      "graph",
      () => {
        picture.hidden = !picture.hidden;
        draw.setAttribute("aria-expanded", String(!picture.hidden));
        if (!picture.firstChild) picture.append(graphElement(statementsOf(message.lines).statements, this.prefixes));
      },
      { class: "quiet", "aria-expanded": "false", "aria-label": `graph of message ${message.number}` },
    );
    const size = message.lines.length;
    const head = element(
      "header",
      {},
      element("h3", {}, message.title ?? `${message.number.toLocaleString()}`),
      element("span", { class: "size" }, `${size.toLocaleString()} ${size === 1 ? "statement" : "statements"}`),
      size ? draw : "",
    );
    const content = messageElement(message.lines, this.prefixes);
    const label = message.title ?? `message ${message.number}`;
    return element("li", { class: "card", tabindex: "-1", "aria-label": label }, head, picture, content);
  }
}
