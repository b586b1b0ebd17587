// Connections to a stream that bring its elements after one that is named. Touches no document.
//
// All tabs of a browser share one connection where the browser has SharedWorker.
// A browser has six connections of HTTP/1.1 to a server, in all of its tabs together, and server-sent events keep one
// each: six tabs would lock it out. WebSockets are not counted among them, and browsers have about 200. Proxies may
// refuse WebSockets, so both are here. WHATWG HTML, section 9.2; RFC 6455.
//
// Handlers: `opened()`; `element(sequence, lines)`; `lost()`: the connection ended, or was none; `refused(why)`: the
// server sends no more.

const REFUSED = 4000; // a close code is this and a status of HTTP, where an element cannot be sent
const NOT_CARRIED = 4422;

// a policy that makes one URL, and of no text: the policy of the page asks for it (Trusted Types)
const WORKER = new URL("shared-worker.js", import.meta.url).href;
const policy = globalThis.trustedTypes?.createPolicy("worker", { createScriptURL: () => WORKER });

/** Elements over a connection that all tabs share, in a worker; see shared-worker.js. */
export class Shared {
  static get isAvailable() {
    return globalThis.SharedWorker !== undefined;
  }

  constructor(stream, after, handlers) {
    this.wasOpen = false;
    const worker = new SharedWorker(policy?.createScriptURL("") ?? WORKER, { type: "module" });
    this.port = worker.port;
    worker.addEventListener("error", () => this.end(() => handlers.lost()));
    this.port.onmessage = ({ data: [kind, ...said] }) => {
      if (kind === "opened") this.wasOpen = true;
      if (kind === "opened" || kind === "element") handlers[kind](...said);
      else this.end(() => handlers[kind](...said));
    };
    // a worker is not told when a tab is gone; a page that comes back from the browser's cache connects again
    this.left = new AbortController();
    const { signal } = this.left;
    addEventListener("pagehide", () => this.port.postMessage(null), { signal });
    addEventListener("pageshow", ({ persisted }) => persisted && this.end(() => handlers.lost()), { signal });
    this.port.postMessage({ stream, after });
  }

  end(said) {
    if (this.left.signal.aborted) return;
    this.close();
    said();
  }

  close() {
    this.left.abort();
    this.port.postMessage(null);
    this.port.close();
  }
}

/** Elements over a WebSocket, whose frames are documents without a number: each is the next element. */
export class Socket {
  constructor(stream, after, handlers) {
    this.wasOpen = false;
    this.closed = false;
    let sequence = after;
    this.socket = new WebSocket(`${stream.replace(/^http/, "ws")}/socket?after=${after}`, "rdfm.n-quads");
    this.socket.addEventListener("open", () => {
      this.wasOpen = true;
      handlers.opened();
    });
    this.socket.addEventListener("message", ({ data }) => {
      if (this.closed) return;
      sequence += 1;
      handlers.element(sequence, linesOf(data));
    });
    this.socket.addEventListener("close", ({ code, reason }) => {
      if (this.closed) return;
      this.closed = true;
      if (code === NOT_CARRIED) handlers.refused(reason || `the server closed with ${code - REFUSED}`);
      else handlers.lost();
    });
  }

  close() {
    this.closed = true;
    this.socket.close();
  }
}

/** Elements as server-sent events. */
export class Events {
  constructor(stream, after, handlers) {
    this.wasOpen = false;
    this.source = new EventSource(`${stream}/events?format=nq&after=${after}`);
    this.source.addEventListener("open", () => {
      this.wasOpen = true;
      handlers.opened();
    });
    this.source.addEventListener("rdf-message", (event) =>
      handlers.element(Number(event.lastEventId), linesOf(event.data)),
    );
    this.source.addEventListener("error", (event) => {
      this.close(); // or it would reconnect by itself, without a check for elements that retention removed
      if (event.data === undefined) handlers.lost();
      else handlers.refused(event.data); // the reason why the server sends no more
    });
  }

  close() {
    this.source.close();
  }
}

function linesOf(document) {
  return document.split("\n").filter((line) => line !== "");
}
