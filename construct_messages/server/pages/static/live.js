// Follows a stream: each element once, resumed after the last one whenever the connection breaks.
//
// Neither EventSource nor WebSocket returns a status, so the description of the stream is read first, to check that the
// next element is still kept. No access to the document.

import { Events, Shared, Socket } from "./connections.js";
import { Message } from "./log.js";
import { accepted } from "./server.js";

const FIRST_PAUSE = 500; // milliseconds before a connection is made again; twice as long after each failure
const LONGEST_PAUSE = 15_000;
const KINDS = Shared.isAvailable ? [Shared, Socket, Events] : [Socket, Events]; // each is tried where the one before is refused

/** Follows the stream at a URL. `handlers` has functions for events:
 *
 *  - `element(message, isNew)`: an element as a Message, whose number is its sequence; whether it has come just now;
 *  - `gap(first, last)`: elements that retention took before they came;
 *  - `state(name, detail)`: "connecting", "live", "waiting" (`detail`: milliseconds), "released" or "ended" (`detail`:
 *    why). */
export class Follower {
  constructor(stream, handlers) {
    this.stream = stream;
    this.handlers = handlers;
    this.last = null; // the sequence of the element before the next one
    this.connections = 0;
    this.connection = null;
    this.Kind = KINDS[0];
    this.known = 0; // the sequence of the newest element when it connected
    this.timer = 0;
    this.stopped = true;
    this.hidden = false; // whether the page is hidden
    this.pause = FIRST_PAUSE;
  }

  /** Begins after the element `after`, or with the last `newest` that are there. */
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
    this.close();
    this.handlers.state("ended", why);
  }

  close() {
    clearTimeout(this.timer);
    this.connection?.close();
    this.connection = null;
  }

  /** Sets whether the page is visible. A hidden page releases its connection, of which browsers have six. */
  seen(isSeen) {
    this.hidden = !isSeen;
    if (this.stopped) return;
    if (this.isReleased) this.release();
    else if (this.connection === null) this.connect();
  }

  get isReleased() {
    return this.hidden && this.Kind === Events;
  }

  release() {
    this.close();
    this.handlers.state("released");
  }

  async connect() {
    this.close();
    const turn = (this.turn = {}); // a later connection takes the place of this one
    this.handlers.state("connecting");
    let description;
    try {
      const answer = await fetch(this.stream, { headers: { Accept: "application/json" }, cache: "no-store" });
      description = await (await accepted(answer)).json();
    } catch (error) {
      if (this.stopped || this.turn !== turn) return;
      if (error.status === 404 || error.status === 410) this.end("there is no such stream any more");
      else this.again();
      return;
    }
    if (this.stopped || this.turn !== turn) return;
    const { firstSequence: first, lastSequence: newest } = description;
    this.known = newest;
    this.last ??= Math.max(first - 1, newest - this.newest);
    if (this.last > newest) {
      this.end(`there is no element ${this.last} in the stream: it may have been made anew`);
      return;
    }
    if (this.last < first - 1) {
      this.handlers.gap(this.last + 1, first - 1);
      this.last = first - 1;
    }
    if (this.isReleased) this.release();
    else this.open();
  }

  open() {
    const connection = new this.Kind(this.stream, this.last, {
      opened: () => {
        this.pause = FIRST_PAUSE;
        this.connections += 1;
        this.handlers.state("live");
      },
      element: (sequence, lines) => this.take(sequence, lines),
      lost: () => {
        this.connection = null;
        if (connection.wasOpen) this.again();
        else this.other();
      },
      refused: (why) => this.end(why),
    });
    this.connection = connection;
  }

  /** Tries the other kind of connection if one was refused, as by a proxy that does not support WebSockets. */
  other() {
    this.Kind = KINDS[KINDS.indexOf(this.Kind) + 1] ?? KINDS[0];
    if (this.Kind === KINDS[0]) this.again();
    else if (this.isReleased) this.release();
    else this.open();
  }

  take(sequence, lines) {
    if (sequence <= this.last) return;
    if (sequence > this.last + 1) this.handlers.gap(this.last + 1, sequence - 1);
    this.last = sequence;
    this.handlers.element(new Message(sequence, lines), sequence > this.known);
  }

  again() {
    this.handlers.state("waiting", this.pause);
    this.timer = setTimeout(() => this.connect(), this.pause);
    this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
  }
}
