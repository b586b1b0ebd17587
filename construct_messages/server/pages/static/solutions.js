// SPARQL results in JSON: decodes bytes in any pieces to solutions, and detects truncated documents. No access to the
// browser's document.
//
// SPARQL 1.2 Query Results JSON Format, section 3. A browser has no string for a document of 512 MiB, so the text of
// one solution at a time is parsed; the text around the solutions is parsed at the end.

import { CutError, LONGEST_TEXT, LogError } from "./log.js";

const STRUCTURE = /["{}[\]]/g;
const IN_STRING = /["\\]/g;

/** Reads results; `take` is called with each solution, as JSON has it, and the number of its characters. */
export class SolutionsReader {
  constructor(take) {
    this.take = take;
    this.count = 0;
    this.decoder = new TextDecoder("utf-8", { fatal: true });
    this.open = []; // the brackets that are open
    this.keys = []; // the last string of each of the two outer levels: the key of the value that begins there
    this.string = null; // pieces of the string that is open; empty where its text is not needed
    this.escaped = false; // whether a backslash was the last character
    this.outside = []; // the text of the document without its solutions
    this.solution = null; // pieces of the solution that is open
    this.between = null; // the text between two solutions; null: they have not begun, or have ended
    this.first = false; // whether the next solution is the first
    this.characters = 0; // of `outside`
    this.held = 0; // characters of `solution`
  }

  /** Takes bytes; throws LogError where they are no UTF-8 or no results. */
  feed(bytes) {
    this.read(this.decode(bytes, { stream: true }));
  }

  /** Ends the document and returns it, with no solution in it; throws CutError where it is not whole. */
  close() {
    this.read(this.decode(new Uint8Array(), {}));
    if (this.open.length || this.string !== null || this.outside.join("").trim() === "") {
      throw new CutError("the result ends before it is whole");
    }
    const document = parsed(this.outside.join(""));
    if (typeof document?.boolean !== "boolean" && !Array.isArray(document?.results?.bindings)) {
      throw new LogError("it is no SPARQL result");
    }
    return document;
  }

  /** The variables in the order of the document's head; null: that is still to come. */
  get variables() {
    const { head } = parsed(`${this.outside.join("")}]}}`);
    return Array.isArray(head?.vars) ? head.vars : null;
  }

  decode(bytes, options) {
    try {
      return this.decoder.decode(bytes, options);
    } catch {
      throw new LogError("it is not UTF-8");
    }
  }

  read(text) {
    let at = 0;
    let kept = 0; // the text before is kept already
    const keep = (end) => {
      if (end > kept) this.keep(text.slice(kept, end));
      kept = end;
    };
    if (this.escaped && text !== "") {
      this.escaped = false;
      at = 1;
    }
    while (at < text.length) {
      const pattern = this.string === null ? STRUCTURE : IN_STRING;
      pattern.lastIndex = at;
      const found = pattern.exec(text);
      if (found === null) break;
      const [character] = found;
      at = found.index + 1;
      if (character === "\\") {
        this.escaped = at === text.length;
        at += 1;
      } else if (character === '"') {
        keep(at);
        this.quote();
      } else if (character === "{" || character === "[") {
        keep(this.begins(character) ? found.index : at);
        this.enter(character);
      } else {
        if (this.between !== null && this.open.length === 3) {
          keep(found.index);
          this.leaveList();
        }
        keep(at);
        this.leave(character);
      }
    }
    keep(text.length);
  }

  /** Keeps a piece of text where it belongs. */
  keep(text) {
    if (this.string !== null && this.open.length <= 2) this.string.push(text);
    if (this.solution !== null) {
      this.solution.push(text);
      this.held += text.length;
    } else if (this.between !== null) {
      this.between += text.trim();
      if (this.between.length > 1) throw malformed();
    } else {
      this.outside.push(text);
      this.characters += text.length;
    }
    const longest = Math.max(this.held, this.characters);
    if (longest > LONGEST_TEXT) throw new LogError("a solution is too long for this page");
  }

  quote() {
    if (this.string === null) {
      if (this.between !== null && this.solution === null) throw malformed();
      this.string = [];
      return;
    }
    if (this.open.length <= 2) this.keys[this.open.length] = parsed(`"${this.string.join("")}`);
    this.string = null;
  }

  /** Whether a bracket begins a solution. */
  begins(character) {
    return character === "{" && this.between !== null && this.solution === null;
  }

  enter(character) {
    if (this.begins(character)) {
      if (this.between !== (this.first ? "" : ",")) throw malformed();
      this.first = false;
      this.between = "";
      this.solution = [];
    } else if (this.between !== null && this.solution === null) {
      throw malformed();
    }
    this.open.push(character);
    if (this.open.length === 3 && character === "[" && this.keys[1] === "results" && this.keys[2] === "bindings") {
      this.between = "";
      this.first = true;
    }
  }

  leaveList() {
    if (this.between !== "") throw malformed();
    this.between = null;
  }

  leave(character) {
    if (this.open.pop() !== (character === "}" ? "{" : "[")) throw malformed();
    if (this.solution === null || this.open.length !== 3) return;
    const text = this.solution.join("");
    this.solution = null;
    this.held = 0;
    this.count += 1;
    this.take(parsed(text), text.length);
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw malformed();
  }
}

function malformed() {
  return new LogError("it is malformed JSON");
}
