// One connection to a stream for all tabs of a browser: a SharedWorker, to which each tab has a port.
//
// A tab that begins where the others are gets what is kept of the last elements; one that begins before has a connection
// of its own until it has caught up. See `Shared` in connections.js. Touches no document.

import { Socket } from "./connections.js";

const KEPT = 1000; // elements for tabs that come later
const KEPT_CHARACTERS = 1 << 22;

const hubs = new Map(); // by the URL of the stream

class Hub {
  constructor(stream, after) {
    this.stream = stream;
    this.clients = new Set();
    this.last = after;
    this.recent = []; // [sequence, lines]
    this.characters = 0;
    this.isOpen = false;
    hubs.set(stream, this);
    this.socket = new Socket(stream, after, {
      opened: () => {
        this.isOpen = true;
        this.tell("opened");
      },
      element: (sequence, lines) => this.take(sequence, lines),
      lost: () => this.end("lost"),
      refused: (why) => this.end("refused", why),
    });
  }

  tell(...said) {
    for (const client of this.clients) client.port.postMessage(said);
  }

  take(sequence, lines) {
    this.last = sequence;
    this.recent.push([sequence, lines]);
    this.characters += charactersOf(lines);
    while (this.recent.length > KEPT || (this.characters > KEPT_CHARACTERS && this.recent.length > 1)) {
      this.characters -= charactersOf(this.recent.shift()[1]);
    }
    this.tell("element", sequence, lines);
  }

  /** Whether a client that has got all elements up to a sequence can join. */
  covers(sequence) {
    return sequence >= this.last || (this.recent.length > 0 && this.recent[0][0] <= sequence + 1);
  }

  join(client, after) {
    this.clients.add(client);
    if (this.isOpen) client.port.postMessage(["opened"]);
    for (const [sequence, lines] of this.recent) {
      if (sequence > after) client.port.postMessage(["element", sequence, lines]);
    }
  }

  leave(client) {
    if (this.clients.delete(client) && this.clients.size === 0) this.end();
  }

  end(...said) {
    this.socket.close();
    if (hubs.get(this.stream) === this) hubs.delete(this.stream);
    if (said.length) this.tell(...said);
    this.clients.clear();
  }
}

class Client {
  constructor(port) {
    this.port = port;
    this.hub = null;
    this.socket = null; // of its own, until it has caught up
    port.onmessage = ({ data }) => (data === null ? this.close() : this.follow(data.stream, data.after));
  }

  follow(stream, after) {
    const hub = hubs.get(stream);
    if (hub === undefined || hub.covers(after)) this.join(hub ?? new Hub(stream, after), after);
    else this.catchUp(stream, after);
  }

  join(hub, after) {
    this.hub = hub;
    hub.join(this, after);
  }

  catchUp(stream, after) {
    this.socket = new Socket(stream, after, {
      opened: () => this.port.postMessage(["opened"]),
      element: (sequence, lines) => {
        this.port.postMessage(["element", sequence, lines]);
        const hub = hubs.get(stream);
        if (hub === undefined || !hub.covers(sequence)) return;
        this.socket.close();
        this.join(hub, sequence);
      },
      lost: () => this.port.postMessage(["lost"]),
      refused: (why) => this.port.postMessage(["refused", why]),
    });
  }

  close() {
    this.socket?.close();
    this.hub?.leave(this);
  }
}

function charactersOf(lines) {
  return lines.reduce((sum, line) => sum + line.length, 0);
}

self.addEventListener("connect", ({ ports: [port] }) => new Client(port));
