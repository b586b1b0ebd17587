// N-Quads message logs: decodes bytes in any pieces to messages, and detects truncated logs.
//
// RDF Messages, section 3 (`VERSION "…-messages"`, `MESSAGE` after each message), and the first draft, section 3.1
// (`# @message` before each). Lines are parsed when they are shown (`terms.js`): most messages of a long log never are.

import { commentOf } from "./terms.js";

const ANNOUNCEMENT = /^[ \t]*VERSION[ \t]*"([^"\\]*)"[ \t]*(#.*)?$/;
const DELIMITER = /^[ \t]*MESSAGE[ \t]*(?:#.*)?$/;
const COMMENT = /^[ \t]*#\s*@message/;
const NOTHING = /^[ \t]*(?:#|$)/;
const LABELS = ["1.2-messages", "1.2-basic-messages", "1.1-messages"];

/** The characters that are read as one text; strings of Chromium have less than twice as many. */
export const LONGEST_TEXT = 1 << 28;

/** The Accept header for a log that is shown while it comes: each message ends with its own delimiter. */
export const LOG_TYPE = "application/n-quads; version=1.2-messages";

/** A log that cannot be read. */
export class LogError extends Error {}

/** A truncated log: the messages before the end are correct, but not the whole answer. */
export class CutError extends LogError {}

/** The syntax that a media type announces: a label or "rdfm"; null: the log itself has to say. */
export function syntaxOf(contentType) {
  const label = /;\s*version="?([^";\s]*-messages)"?/i.exec(contentType ?? "");
  return label?.[1].toLowerCase() ?? (/;\s*messages="?rdfm"?/i.test(contentType ?? "") ? "rdfm" : null);
}

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
 *  `syntax` is the syntax in the media type. This server ends every message of a labelled log with its delimiter, so
 *  statements after the last one are those of a truncated message. */
export class LogReader {
  constructor(take, syntax = null) {
    this.take = take;
    this.count = 0;
    this.bytes = 0;
    this.syntax = syntax;
    this.decoder = new TextDecoder("utf-8", { fatal: true });
    this.pieces = []; // of a line without an end
    this.open = 0; // their characters
    this.lines = []; // of the message that is open
    this.begun = false; // whether a delimiter has opened the message (`rdfm`)
  }

  /** Whether `MESSAGE` delimits messages. */
  get labelled() {
    return this.syntax !== null && this.syntax !== "rdfm";
  }

  /** Takes bytes; throws LogError where they are no UTF-8 or no log. */
  feed(bytes) {
    this.bytes += bytes.length;
    this.read(this.decode(bytes, { stream: true }));
  }

  /** Ends the log; throws CutError where a message, a line or a character is not whole. */
  close() {
    this.read(this.decode(new Uint8Array(), {}));
    if (this.pieces.length) this.read("\n");
    if (!this.labelled) {
      if (this.begun || this.lines.length) this.end();
    } else if (this.lines.length) {
      throw new CutError("the log ends within a message");
    } else if (this.bytes === 0) {
      throw new CutError("the log ends before it begins");
    }
  }

  decode(bytes, options) {
    try {
      return this.decoder.decode(bytes, options);
    } catch {
      throw new LogError("the log is not UTF-8");
    }
  }

  read(text) {
    if (text.includes("\r")) text = text.replaceAll("\r", "\n"); // CR LF makes a blank line, which is ignored
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      let line = text.slice(start, end);
      if (this.pieces.length) {
        this.pieces.push(line);
        line = this.pieces.join("");
        this.pieces = [];
        this.open = 0;
      }
      this.line(line);
      start = end + 1;
    }
    if (start === text.length) return;
    this.pieces.push(text.slice(start));
    this.open += text.length - start;
    if (this.open > LONGEST_TEXT) throw new LogError("a statement is too long for this page");
  }

  line(line) {
    if (line[0] === "<" || line[0] === "_") {
      this.statement(line);
    } else if (DELIMITER.test(line)) {
      if (!this.labelled) throw new LogError("MESSAGE in a log that does not announce it");
      this.end();
    } else if (ANNOUNCEMENT.test(line)) {
      const [, label, comment] = ANNOUNCEMENT.exec(line);
      if (label.endsWith("-messages")) this.announce(label);
      this.comment(comment ?? "");
    } else if (NOTHING.test(line)) {
      this.comment(line);
    } else {
      this.statement(line);
    }
  }

  statement(line) {
    this.lines.push(line);
    if (!this.labelled && line.includes("@message")) this.comment(behind(line));
  }

  announce(label) {
    if (!LABELS.includes(label)) throw new LogError(`VERSION "${label}" is not known`);
    if (this.syntax === null && this.lines.length) throw new LogError(`VERSION "${label}" after a statement`);
    if (this.syntax !== null && this.syntax !== label) {
      throw new LogError(`VERSION "${label}" in a log of ${this.syntax}`);
    }
    this.syntax = label;
  }

  /** A comment may delimit: it opens the first message, unless that has begun without, and ends each other. */
  comment(text) {
    if (this.labelled || !COMMENT.test(text)) return;
    if (this.begun || this.lines.length) this.end();
    this.syntax = "rdfm";
    this.begun = true;
  }

  end() {
    const lines = this.lines;
    this.lines = [];
    this.count += 1;
    this.take(new Message(this.count, lines));
  }
}

/** The comment after a statement; a line that is none has none. */
function behind(line) {
  try {
    return commentOf(line);
  } catch {
    return "";
  }
}

/** The pieces of a response's body, which not all browsers iterate over by themselves; leaving off cancels it.
 *  Throws CutError where the connection ends before the body does. */
export async function* piecesOf(body) {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await next(reader);
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {}); // of a body that has failed, which was reported already
  }
}

async function next(reader) {
  try {
    return await reader.read();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new CutError("the connection ended within it");
  }
}

/** Reads pieces of bytes into a LogReader; returns the reader after a complete log. Throws LogError where the log is
 *  malformed, CutError if it was truncated, and errors of the stream itself. */
export async function readLog(pieces, take, syntax = null) {
  const reader = new LogReader(take, syntax);
  for await (const bytes of pieces) reader.feed(bytes);
  reader.close();
  return reader;
}
