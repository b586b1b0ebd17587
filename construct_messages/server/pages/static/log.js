// N-Quads message logs: bytes in any pieces go in, messages come out. Knows a log that is whole from one that was cut.
//
// RDF Messages, section 3 (`VERSION "…-messages"`, `MESSAGE` after each message), and the first draft, section 3.1
// (`# @message` before each). Lines are parsed when they are shown (`terms.js`): most messages of a long log never are.

import { commentOf } from "./terms.js";

const ANNOUNCEMENT = /^[ \t]*VERSION[ \t]*"([^"\\]*)"[ \t]*(?:#.*)?$/;
const DELIMITER = /^[ \t]*MESSAGE[ \t]*(?:#.*)?$/;
const COMMENT = /^[ \t]*#\s*@message/;
const NOTHING = /^[ \t]*(?:#|$)/;

/** The Accept header for a log that is shown while it comes: each message ends with its own delimiter. */
export const LOG_TYPE = "application/n-quads; version=1.2-messages";

/** A log that ended where it may not; what came before is right, and is not the answer. */
export class CutError extends Error {}

/** A message of a log: its number, from 1, and its statements as lines of N-Quads. */
export class Message {
  constructor(number, lines) {
    this.number = number;
    this.lines = lines;
    this.characters = lines.reduce((sum, line) => sum + line.length, 0);
  }
}

/** Reads a log; `take` is called with each Message as soon as it is complete.
 *
 *  `syntax` is what the media type announces, as "rdfm"; null: the log itself has to. This server ends every message of
 *  a labelled log by its delimiter, so statements behind the last one are those of a message that was cut. */
export class LogReader {
  constructor(take, syntax = null) {
    this.take = take;
    this.count = 0;
    this.bytes = 0;
    this.scoped = syntax === null ? null : syntax !== "rdfm"; // whether MESSAGE delimits; null: not known yet
    this.decoder = new TextDecoder("utf-8", { fatal: true });
    this.pieces = []; // of a line without an end
    this.lines = []; // of the message that is open
    this.begun = false; // whether a delimiter has opened the message (`rdfm`)
  }

  /** Takes bytes; throws CutError where they are no UTF-8 or no log. */
  feed(bytes) {
    this.bytes += bytes.length;
    this.read(this.decode(bytes, { stream: true }));
  }

  /** Ends the log; throws CutError where a message, a line or a character is not whole. */
  close() {
    this.read(this.decode(new Uint8Array(), {}));
    if (this.pieces.length) {
      if (this.scoped !== false) throw new CutError("the log ends within a line");
      this.read("\n");
    }
    if (this.scoped === false) {
      if (this.begun || this.lines.length) this.end();
    } else if (this.lines.length) {
      throw new CutError("the log ends within a message");
    } else if (this.scoped === null) {
      throw new CutError("the log ends before it begins");
    }
  }

  decode(bytes, options) {
    try {
      return this.decoder.decode(bytes, options);
    } catch {
      throw new CutError("the log is not UTF-8");
    }
  }

  read(text) {
    if (text.includes("\r")) text = text.replaceAll("\r", "\n"); // CR LF makes a blank line, which says nothing
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      let line = text.slice(start, end);
      if (this.pieces.length) {
        this.pieces.push(line);
        line = this.pieces.join("");
        this.pieces = [];
      }
      this.line(line);
      start = end + 1;
    }
    if (start < text.length) this.pieces.push(text.slice(start));
  }

  line(line) {
    const first = line[0];
    if (first === "<" || first === "_") {
      this.lines.push(line);
      if (this.scoped !== true && line.includes("@message") && COMMENT.test(commentOf(line))) this.delimit();
    } else if (DELIMITER.test(line)) {
      if (this.scoped !== true) throw new CutError("MESSAGE without an announcement");
      this.end();
    } else if (COMMENT.test(line) && this.scoped !== true) {
      this.delimit();
    } else if (ANNOUNCEMENT.test(line)) {
      if (ANNOUNCEMENT.exec(line)[1].endsWith("-messages")) this.scoped ??= true;
    } else if (!NOTHING.test(line)) {
      this.lines.push(line);
    }
  }

  /** A comment delimits: it opens the first message, unless that has begun without, and ends each other. */
  delimit() {
    if (this.begun || this.lines.length) this.end();
    this.scoped = false;
    this.begun = true;
  }

  end() {
    const lines = this.lines;
    this.lines = [];
    this.count += 1;
    this.take(new Message(this.count, lines));
  }
}

/** Reads the body of a response, a ReadableStream, into a LogReader; gives the reader at a complete end.
 *  Throws CutError where the body was cut, and what the stream itself throws. */
export async function readLog(body, take, syntax = null) {
  const reader = new LogReader(take, syntax);
  for await (const bytes of body) reader.feed(bytes);
  reader.close();
  return reader;
}
