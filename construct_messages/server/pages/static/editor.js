// The query editor: a text area that the browser edits, over a painted copy of its text with line numbers.

import { element } from "./elements.js";
import { bracketPair, declaredPrefixes, placeOf, queryForm, tokenAt, tokens, undeclaredPrefixes } from "./sparql.js";

const READ = 50_000; // characters that are read as tokens and painted; what is behind them is plain text
const UNDOABLE = 200; // lines: Chromium takes a second for a thousand, and a minute for some thousands

export class Editor {
  /** `place` holds the text area, its painted copy and the line numbers; `changed` is called after each change. */
  constructor(place, { run, changed }) {
    this.area = place.querySelector("textarea");
    this.painted = place.querySelector(".paint");
    this.lines = place.querySelector(".lines");
    this.changed = changed;
    this.error = null; // the part of the text that the server complains about
    this.read = null; // the text whose tokens `found` has
    this.found = [];
    this.frame = 0;
    this.area.addEventListener("input", () => {
      this.error = null;
      this.repaint();
      changed();
    });
    this.area.addEventListener("scroll", () => this.follow());
    this.area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        run();
      }
    });
    document.addEventListener("selectionchange", () => {
      if (document.activeElement === this.area) this.repaint();
    });
    this.area.addEventListener("blur", () => this.repaint());
    this.repaint();
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    this.area.value = text;
    this.toTop();
    this.error = null;
    this.repaint();
    this.changed();
  }

  /** Puts another text in the place of what is there, as an edit that can be undone where the text is no long one. */
  replace(text) {
    this.area.focus();
    this.area.select();
    if (text.split("\n").length > UNDOABLE || !this.insert(text)) this.text = text;
    this.toTop();
    this.follow();
  }

  /** Inserts a text for what is selected; false: the browser does not. */
  insert(text) {
    // the one way to edit that keeps what the browser can undo; it fires `input`
    return document.execCommand("insertText", false, text);
  }

  toTop() {
    this.area.setSelectionRange(0, 0);
    this.area.scrollTop = this.area.scrollLeft = 0;
  }

  /** The prefixes that the query declares. */
  get prefixes() {
    return declaredPrefixes(this.tokens());
  }

  /** The form of the query; see `queryForm`. */
  get form() {
    return queryForm(this.tokens());
  }

  /** The tokens of the text, read once; of a long one those at its beginning. */
  tokens() {
    const { text } = this;
    if (this.read !== text) {
      this.found = tokens(text.slice(0, READ));
      this.read = text;
    }
    return this.found;
  }

  /** The prefixes of `known` that the query uses without a declaration. */
  missing(known) {
    return undeclaredPrefixes(this.tokens()).filter((prefix) => Object.hasOwn(known, prefix));
  }

  /** Declares prefixes of `known` before the query, whose text stays as it is: writing it anew takes long. */
  declare(known) {
    const lines = this.missing(known).map((prefix) => `PREFIX ${prefix}: <${known[prefix]}>\n`);
    this.area.focus();
    this.toTop();
    if (!this.insert(lines.join(""))) this.text = lines.join("") + this.text;
    this.toTop();
    this.follow();
  }

  /** Marks the token at a line and column of the server's error, and puts the cursor there. */
  mark(line, column) {
    const place = placeOf(this.text, line, column);
    this.error = tokenAt(this.tokens(), this.text, place);
    this.area.focus();
    this.area.setSelectionRange(place, place);
    this.repaint();
  }

  repaint() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  paint() {
    const { text } = this;
    const found = this.tokens();
    const focused = document.activeElement === this.area;
    const pair = focused ? bracketPair(found, this.area.selectionStart) : null;
    const parts = [];
    for (const { kind, text: said, start } of found) {
      const match = pair?.includes(start) ? " match" : "";
      parts.push(...this.pieces(said, start, kind === "other" ? "" : `token-${kind}${match}`));
    }
    parts.push(...this.pieces(text.slice(READ), READ, ""));
    if (this.error !== null && this.error.start >= text.length) parts.push(marker());
    this.painted.replaceChildren(...parts, "\n\n");
    this.number(text);
    this.follow();
  }

  /** A part of the text that begins at a place, as what it is painted by; what the error is about is marked in it. */
  pieces(text, start, kind) {
    if (text === "") return [];
    const { error } = this;
    if (error === null || error.start < start || error.start >= start + text.length) return [painted(text, kind)];
    const [from, to] = [error.start - start, error.end - start];
    const about = from === to ? marker() : painted(text.slice(from, to), `${kind} token-error`.trim());
    return [text.slice(0, from), about, text.slice(to)].filter((piece) => piece !== "");
  }

  number(text) {
    const count = text.split("\n").length;
    const wrong = this.error === null ? 0 : text.slice(0, this.error.start).split("\n").length;
    const numbers = Array.from({ length: count }, (_, index) => `${index + 1}`);
    if (wrong) {
      this.lines.replaceChildren(
        numbers.slice(0, wrong - 1).map((number) => `${number}\n`).join(""),
        element("span", { class: "token-error" }, numbers[wrong - 1]),
        `\n${numbers.slice(wrong).join("\n")}\n\n`,
      );
    } else {
      this.lines.replaceChildren(`${numbers.join("\n")}\n\n`);
    }
  }

  /** Scrolls the painted copy with the text area. */
  follow() {
    this.painted.scrollTop = this.lines.scrollTop = this.area.scrollTop;
    this.painted.scrollLeft = this.area.scrollLeft;
  }
}

function painted(text, kind) {
  return kind === "" ? text : element("span", { class: kind }, text);
}

/** What marks an end of line, or of the text, where there is no character to underline. */
function marker() {
  return element("span", { class: "token-error" }, " ");
}
