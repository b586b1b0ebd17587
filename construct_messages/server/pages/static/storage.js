// What the page keeps in the browser: one entry of localStorage for each thing, so that windows do not overwrite each
// other's. Where the browser keeps nothing (private windows may throw), or no more, it is kept as long as the page.
//
// WHATWG HTML, section 12.2 (the Storage interface): about five million characters for all pages of an origin.

import { ROOT } from "./server.js";

const LARGEST = 2_000_000; // characters for which nothing else goes
const PREFIX = `construct-messages ${ROOT.pathname} `; // servers under other paths of the origin have their own

export class BrowserStorage {
  /** `spare` is the kind of things of which the oldest go where there is no more room. */
  constructor(area, spare) {
    this.area = usable(area);
    this.spare = spare;
    this.own = new Map(); // by key, what the browser does not keep
  }

  /** Whether the browser keeps anything. */
  get isKept() {
    return this.area !== null;
  }

  /** Whether there is something for which the browser has no room. */
  get isFull() {
    return this.isKept && this.own.size > 0;
  }

  /** The things of a kind, the oldest first: [{id, ...}]. */
  all(kind) {
    return this.ids(kind).map((id) => this.get(kind, id)).filter((value) => value !== null);
  }

  ids(kind) {
    const start = `${PREFIX}${kind} `;
    const kept = this.area === null ? [] : Array.from({ length: this.area.length }, (_, index) => this.area.key(index));
    const keys = new Set([...kept, ...this.own.keys()].filter((key) => key?.startsWith(start)));
    return [...keys].map((key) => key.slice(start.length)).sort();
  }

  /** A thing; null: there is none that can be read. */
  get(kind, id) {
    const key = `${PREFIX}${kind} ${id}`;
    try {
      const value = JSON.parse(this.own.get(key) ?? this.area?.getItem(key) ?? "null");
      return value === null || typeof value !== "object" ? null : { ...value, id };
    } catch {
      return null; // others of the origin write here, too
    }
  }

  /** Keeps a thing; false: for as long as this page only. */
  set(kind, id, value) {
    const key = `${PREFIX}${kind} ${id}`;
    const text = JSON.stringify({ ...value, id: undefined });
    for (;;) {
      try {
        this.area?.setItem(key, text);
        break;
      } catch {
        const [oldest] = text.length > LARGEST ? [] : this.ids(this.spare).filter((each) => kind !== this.spare || each !== id);
        if (oldest === undefined) {
          this.own.set(key, text);
          return false;
        }
        this.remove(this.spare, oldest);
      }
    }
    if (this.area === null) this.own.set(key, text);
    else this.own.delete(key);
    return this.area !== null;
  }

  remove(kind, id) {
    const key = `${PREFIX}${kind} ${id}`;
    this.own.delete(key);
    this.area?.removeItem(key);
  }

  /** Calls `changed` after another window has changed something. */
  watch(changed) {
    window.addEventListener("storage", ({ key }) => {
      if (key === null || key.startsWith(PREFIX)) changed();
    });
  }
}

/** An identifier of its own, by which things are in the order of their making. */
export function newId() {
  const random = crypto.getRandomValues(new Uint32Array(2));
  return `${Date.now().toString(36).padStart(9, "0")}-${Array.from(random, (each) => each.toString(36)).join("")}`;
}

/** A storage of the browser, as `() => window.localStorage`; null: it is switched off. */
function usable(area) {
  try {
    const found = area();
    found.getItem(PREFIX);
    return found;
  } catch {
    return null;
  }
}
