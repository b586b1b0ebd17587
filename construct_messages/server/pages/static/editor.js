// The query editor: a text area that the browser edits, over a painted copy of its text with line numbers.

import { element } from "./message-view.js";
import { bracketPair, declaredPrefixes, placeOf, tokens, undeclaredPrefixes } from "./sparql.js";

const PAINTED = 50_000; // characters; a longer text is shown without colours

export class Editor {
  /** `place` holds the text area, its painted copy and the line numbers; `changed` is called after each change. */
  constructor(place, { run, changed }) {
    this.area = place.querySelector("textarea");
    this.painted = place.querySelector(".paint");
    this.lines = place.querySelector(".lines");
    this.changed = changed;
    this.error = null; // the place that the server complains about
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
    this.area.setSelectionRange(0, 0);
    this.area.scrollTop = this.area.scrollLeft = 0;
    this.error = null;
    this.repaint();
    this.changed();
  }

  /** Puts another text in the place of what is there, as an edit that can be undone. */
  replace(text) {
    this.area.focus();
    this.area.select();
    // the one way to edit that keeps what the browser can undo; it fires `input`
    if (!document.execCommand("insertText", false, text)) this.text = text;
    this.area.setSelectionRange(0, 0);
    this.area.scrollTop = this.area.scrollLeft = 0;
    this.follow();
  }

  /** The prefixes that the query declares. */
  get prefixes() {
    return declaredPrefixes(this.tokens());
  }

  tokens() {
    return this.text.length > PAINTED ? [] : tokens(this.text);
  }

  /** The prefixes of `known` that the query uses without a declaration. */
  missing(known) {
    return undeclaredPrefixes(this.tokens()).filter((prefix) => Object.hasOwn(known, prefix));
  }

  /** Declares prefixes of `known` before the query. */
  declare(known) {
    const lines = this.missing(known).map((prefix) => `PREFIX ${prefix}: <${known[prefix]}>\n`);
    this.replace(lines.join("") + this.text);
  }

  /** Marks a place of the text, by the line and column of the server's error, and puts the cursor there. */
  mark(line, column) {
    this.error = placeOf(this.text, line, column);
    this.area.focus();
    this.area.setSelectionRange(this.error, this.error);
    this.repaint();
  }

  repaint() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  paint() {
    const { text, error } = this;
    const found = this.tokens();
    const focused = document.activeElement === this.area;
    const pair = focused ? bracketPair(found, this.area.selectionStart) : null;
    const parts = [];
    let marked = false;
    for (const token of found) {
      const here = error !== null && !marked && error < token.start + token.text.length;
      marked ||= here;
      if (!here && token.kind === "other") {
        parts.push(token.text);
        continue;
      }
      const match = pair?.includes(token.start) ? " match" : "";
      parts.push(element("span", { class: `token-${token.kind}${match}${here ? " token-error" : ""}` }, token.text));
    }
    if (!found.length) parts.push(text);
    if (error !== null && !marked) parts.push(element("span", { class: "token-error" }, " "));
    this.painted.replaceChildren(...parts, "\n\n");
    const count = text.split("\n").length;
    const wrong = error === null ? 0 : text.slice(0, error).split("\n").length;
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
    this.follow();
  }

  /** Scrolls the painted copy with the text area. */
  follow() {
    this.painted.scrollTop = this.lines.scrollTop = this.area.scrollTop;
    this.painted.scrollLeft = this.area.scrollLeft;
  }
}
