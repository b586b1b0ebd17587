// Follows a stream: server-sent events, each element once, resumed behind the last one whenever the connection breaks.
//
// WHATWG HTML, section 9.2. EventSource tells no status and gives up at the first refusal, so each connection is made
// here: the description of the stream says first whether what comes next is still there. Touches no document.

import { Message } from "./log.js";
import { accepted } from "./server.js";

const FIRST_PAUSE = 500; // milliseconds before a connection is made again; twice as long after each failure
const LONGEST_PAUSE = 15_000;

/** Follows the stream at a URL. `handlers` has functions that are called with what happens:
 *
 *  - `element(message)`: an element as a Message, whose number is its sequence;
 *  - `gap(first, last)`: elements that retention took before they came;
 *  - `state(name, detail)`: "connecting", "live", "waiting" (`detail`: milliseconds) or "ended" (`detail`: why). */
export class Follower {
  constructor(stream, handlers) {
    this.stream = stream;
    this.handlers = handlers;
    this.last = null; // the sequence of the element before the next one
    this.connections = 0;
    this.source = null;
    this.timer = 0;
    this.stopped = true;
    this.pause = FIRST_PAUSE;
  }

  /** Begins behind the element `after`, or with the last `newest` that are there. */
  start({ after = null, newest = 0 }) {
    this.stopped = false;
    this.last = after;
    this.newest = newest;
    this.connect();
  }

  stop() {
    this.end("you stopped it");
  }

  end(why) {
    this.stopped = true;
    clearTimeout(this.timer);
    this.close();
    this.handlers.state("ended", why);
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  async connect() {
    this.handlers.state("connecting");
    let description;
    try {
      const answer = await fetch(this.stream, { headers: { Accept: "application/json" }, cache: "no-store" });
      description = await (await accepted(answer)).json();
    } catch (error) {
      if (this.stopped) return;
      if (error.status === 404 || error.status === 410) this.end("there is no such stream any more");
      else this.again();
      return;
    }
    if (this.stopped) return;
    const { firstSequence: first, lastSequence: newest } = description;
    this.last ??= Math.max(first - 1, newest - this.newest);
    if (this.last > newest) {
      this.end(`there is no element ${this.last} in the stream: it may have been made anew`);
      return;
    }
    if (this.last < first - 1) {
      this.handlers.gap(this.last + 1, first - 1);
      this.last = first - 1;
    }
    this.open();
  }

  open() {
    this.source = new EventSource(`${this.stream}/events?format=nq&after=${this.last}`);
    this.source.addEventListener("open", () => {
      this.pause = FIRST_PAUSE;
      this.connections += 1;
      this.handlers.state("live");
    });
    this.source.addEventListener("rdf-message", (event) => this.take(event));
    this.source.addEventListener("error", (event) => {
      if (event.data !== undefined) {
        this.end(event.data); // what the server says where it can send no more
        return;
      }
      this.close();
      this.again();
    });
  }

  take(event) {
    const sequence = Number(event.lastEventId);
    if (sequence <= this.last) return;
    if (sequence > this.last + 1) this.handlers.gap(this.last + 1, sequence - 1);
    this.last = sequence;
    const lines = event.data.split("\n").filter((line) => line !== "");
    this.handlers.element(new Message(sequence, lines));
  }

  again() {
    this.handlers.state("waiting", this.pause);
    this.timer = setTimeout(() => this.connect(), this.pause);
    this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
  }
}
