// A list of messages as cards: any number of messages, of which only those near the visible part are elements of the
// page.
//
// Messages arrive at any speed and are kept in a store; cards are created within the time of a frame, only as many as
// the visible part has. A filter searches the store, some of it in each frame. Messages of a query and live messages
// only differ in the end of the list that stays visible.

import { cardElement } from "./card.js";
import { element } from "./elements.js";
import { learnPrefixes, statementsOf } from "./message-view.js";
import { Prefixes } from "./prefixes.js";
import { searchFor } from "./search.js";
import { MessageStore } from "./store.js";

const FRAME_MILLISECONDS = 8; // for making cards or searching, of the 16 that a frame has
const FEWEST = 12; // cards, where there are as many messages
const MOST = 80;
const STEP = 12; // cards that are made between two checks of the visible part
const AHEAD = 1200; // pixels beyond the visible part that have cards

export class Cards {
  /** `list` is the element that gets the cards; `changed` is called after cards were made or a match was found.
   *  `keepsToEnd` says whether the newest message is to stay in sight, and `aboutOf` is what the card of the message
   *  with a number says of it: see `cardElement`. */
  constructor(list, { changed = () => {}, keepsToEnd = false, aboutOf = undefined } = {}) {
    this.list = list;
    this.changed = changed;
    this.keepsToEnd = keepsToEnd;
    this.aboutOf = aboutOf;
    this.prefixes = new Prefixes();
    this.turn = 0;
    this.clear();
    const look = () => this.fill();
    document.addEventListener("scroll", look, { capture: true, passive: true });
    window.addEventListener("resize", look);
  }

  clear() {
    this.turn += 1; // running work is for another answer
    this.store = new MessageStore();
    this.held = Infinity; // how many messages are listed, while it is paused
    this.filter = "";
    this.isFilling = false;
    this.search("");
  }

  add(message) {
    this.store.add(message);
    if (this.filter !== "" || this.keepsToEnd || this.to - this.from < FEWEST) this.fill();
  }

  /** Lists no more messages than there are now, or all again; they are kept and counted all the same. */
  pause(paused) {
    this.held = paused ? this.store.count : Infinity;
    this.fill();
  }

  get paused() {
    return this.held !== Infinity;
  }

  /** The index after the last message that is listed. */
  get end() {
    return Math.min(this.store.count, this.held);
  }

  // --- the list: all messages, or those that a filter finds ---------

  /** Shows the messages that hold a text, in any case, as their cards show it or as N-Quads write it. */
  show(filter) {
    if (filter.toLowerCase() === this.filter) return;
    this.turn += 1;
    this.isFilling = false;
    this.search(filter.toLowerCase());
    this.fill();
  }

  search(filter) {
    this.filter = filter;
    this.found = []; // indexes of messages
    this.searched = 0; // the index of the first message that was not searched
    this.base = this.store.first; // the index of the first message of the list
    this.from = this.to = 0; // the places of the list that have cards
    this.list.replaceChildren();
  }

  get length() {
    return this.filter === "" ? this.end - this.store.first : this.found.length;
  }

  /** Whether the filter has searched all messages. */
  get isDone() {
    return this.filter === "" || this.searched >= this.end;
  }

  indexAt(place) {
    return this.filter === "" ? this.store.first + place : this.found[place];
  }

  /** The number of messages, or of matches of the filter, in words. */
  described() {
    const [count, { first }] = [this.end, this.store];
    const gone = first > 0 ? `; the first ${first.toLocaleString()} are not kept any more` : "";
    if (this.filter === "") return gone.slice(2);
    const found = `${this.found.length.toLocaleString()} of ${count.toLocaleString()} match`;
    return `${found}${this.isDone ? "" : ` so far: ${Math.floor((100 * this.searched) / count)} % searched`}${gone}`;
  }

  /** Searches on for the time of a frame. */
  async searchOn(turn) {
    const holds = searchFor(this.filter, this.prefixes);
    const due = performance.now() + FRAME_MILLISECONDS;
    while (!this.isDone) {
      const [start, messages] = await this.store.some(this.searched);
      for (const [index, message] of messages.entries()) {
        if (turn !== this.turn || start + index >= this.end) return;
        if (holds(message)) this.found.push(start + index);
        this.searched = start + index + 1;
        if (performance.now() >= due) {
          this.changed();
          return;
        }
      }
    }
  }

  // --- which of them have cards ---

  /** Makes the cards that are missing, in the frames to come. */
  fill() {
    if (this.isFilling) return;
    this.isFilling = true;
    this.fillOn(this.turn);
  }

  async fillOn(turn) {
    try {
      while (turn === this.turn) {
        await frame();
        if (turn !== this.turn) return;
        if (!this.isDone) await this.searchOn(turn);
        if (turn !== this.turn) return;
        const side = this.missing();
        if (side !== null) await this.extend(side, turn);
        else if (this.isDone) return;
      }
    } finally {
      if (turn === this.turn) {
        this.isFilling = false;
        this.changed();
      }
    }
  }

  /** Removes dropped messages from the list. */
  rebase() {
    const { first } = this.store;
    if (first === this.base) return;
    let gone = first - this.base;
    if (this.filter !== "") {
      gone = this.found.findIndex((index) => index >= first);
      if (gone < 0) gone = this.found.length;
      this.found.splice(0, gone);
    }
    this.base = first;
    for (let count = this.from; count < Math.min(gone, this.to); count += 1) this.list.firstElementChild?.remove();
    this.from = Math.max(0, this.from - gone);
    this.to = Math.max(0, this.to - gone);
  }

  /** Where cards are missing: "after" or "before" those that there are; null: nowhere. */
  missing() {
    this.rebase();
    if (this.keepsToEnd && this.to < this.length) return "after";
    const few = this.to - this.from < Math.min(FEWEST, this.length);
    if (few && this.to < this.length) return "after";
    if (this.list.offsetParent === null) return null; // they are not visible
    const { firstElementChild: first, lastElementChild: last } = this.list;
    if (last !== null && this.to < this.length && last.getBoundingClientRect().bottom < innerHeight + AHEAD) return "after";
    if (first !== null && this.from > 0 && first.getBoundingClientRect().top > -AHEAD) return "before";
    return null;
  }

  async extend(side, turn) {
    if (side === "after" && this.keepsToEnd && this.length - this.to > MOST) {
      this.list.replaceChildren(); // there are more new ones than are visible
      this.from = this.to = this.length - MOST / 2;
    }
    const start = side === "after" ? this.to : Math.max(0, this.from - STEP);
    const end = side === "after" ? Math.min(this.length, this.to + STEP) : this.from;
    const indexes = Array.from({ length: end - start }, (_, place) => this.indexAt(start + place));
    const messages = await Promise.all(indexes.map((index) => this.store.at(index)));
    for (const message of messages) {
      if (message !== null) learnPrefixes(statementsOf(message.lines.slice(0, 60)).statements, this.prefixes);
    }
    let due = performance.now() + FRAME_MILLISECONDS;
    const cards = [];
    for (const message of messages) {
      if (turn !== this.turn) return;
      const card = () => cardElement(message, this.prefixes, this.aboutOf?.(message.number));
      cards.push(message === null ? element("li", { hidden: true }) : card());
      if (performance.now() < due) continue;
      await frame();
      due = performance.now() + FRAME_MILLISECONDS;
    }
    if (turn !== this.turn) return;
    if (side === "after") this.to = end;
    else this.from = start;
    this.put(cards, side);
    this.changed();
  }

  /** Puts cards at one side of the list and takes others off its other side; the visible part does not move. */
  put(cards, side) {
    const { children } = this.list;
    const most = MOST - cards.length;
    const gone = Math.max(0, children.length - most);
    const stays = side === "after" ? children[gone] : children[0];
    const before = stays?.getBoundingClientRect().top;
    if (side === "after") {
      for (let count = 0; count < gone; count += 1) this.list.firstElementChild.remove();
      this.from += gone;
      this.list.append(...cards);
    } else {
      for (let count = 0; count < gone; count += 1) this.list.lastElementChild.remove();
      this.to -= gone;
      this.list.prepend(...cards);
    }
    if (stays === undefined || this.keepsToEnd || this.list.offsetParent === null) return;
    const moved = stays.getBoundingClientRect().top - before;
    if (moved) scrollerOf(this.list).scrollBy({ top: moved, behavior: "instant" });
  }

  /** The number of the first message that is in sight; null: there is none. */
  seen() {
    for (const card of this.list.children) {
      if (card.getBoundingClientRect().bottom > 120) return Number(card.dataset.number);
    }
    return null;
  }

  /** Shows the card of message `number`; returns false if it is not kept. */
  async jump(number) {
    const index = this.store.indexOf(number);
    if (index < 0) return false;
    this.turn += 1;
    this.isFilling = false;
    if (this.filter !== "") this.search("");
    this.list.replaceChildren();
    this.from = this.to = index - this.store.first;
    const { turn } = this;
    await this.extend("after", turn);
    if (turn !== this.turn) return false;
    this.list.firstElementChild?.scrollIntoView({ block: "start" });
    this.fill();
    return true;
  }
}

function scrollerOf(element) {
  for (let each = element.parentElement; each !== null && each !== document.body; each = each.parentElement) {
    if (each.scrollHeight > each.clientHeight && /auto|scroll/.test(getComputedStyle(each).overflowY)) return each;
  }
  return document.scrollingElement;
}

/** The next frame; where the page is hidden there is none, and time goes on all the same. */
function frame() {
  return new Promise((done) => {
    if (document.hidden) setTimeout(done, 50);
    else requestAnimationFrame(() => done());
  });
}
