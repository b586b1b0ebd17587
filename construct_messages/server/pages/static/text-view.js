// The text of a log: the kept messages as N-Quads, in pieces.

import { button, element } from "./elements.js";

const MESSAGES = 200; // that one click adds
const CHARACTERS = 1 << 18;

export class LogText {
  constructor(store) {
    this.store = store;
    this.next = store.first;
    const region = { class: "scroll text", tabindex: "0", role: "region", "aria-label": "Text of the log" };
    this.text = element("pre", region);
    this.more = button("show more", () => this.grow());
    this.element = element("div", {}, this.text, this.more);
    this.grow();
  }

  async grow() {
    const parts = [];
    let characters = 0;
    for (let count = 0; count < MESSAGES && characters < CHARACTERS && this.next < this.store.count; count += 1) {
      const message = await this.store.at(this.next);
      this.next += 1;
      if (message === null) continue;
      const part = `# @message ${message.number}\n${message.lines.map((line) => `${line}\n`).join("")}`;
      parts.push(part.slice(0, CHARACTERS));
      characters += part.length;
    }
    this.text.append(parts.join(""));
    const left = this.store.count - this.next;
    this.more.hidden = left === 0;
    this.more.textContent = `show more: ${left.toLocaleString()} messages are left`;
  }
}
