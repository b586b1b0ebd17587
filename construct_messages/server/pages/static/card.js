// The card of a message: its number, its size, its actions, and its content.

import { copyText } from "./copying.js";
import { button, countOf, element } from "./elements.js";
import { graphElement } from "./graph.js";
import { messageElement, statementsOf } from "./message-view.js";
import { timeElement } from "./times.js";

/** The card of a message; `title` is said where the number alone would not say what it is, `href` is where the message is
 *  by itself, and `time` when it came. */
export function cardElement(message, prefixes, { title, href, time } = {}) {
  const name = title ?? message.number.toLocaleString();
  const label = title ?? `message ${message.number}`;
  const picture = element("div", { class: "picture", hidden: true, tabindex: "0", role: "region", "aria-label": "Picture" });
  const draw = button(
    "picture",
    () => {
      picture.hidden = !picture.hidden;
      draw.setAttribute("aria-expanded", String(!picture.hidden));
      if (!picture.firstChild) picture.append(graphElement(statementsOf(message.lines).statements, prefixes));
    },
    { class: "quiet", "aria-expanded": "false", "aria-label": `picture of ${label}` },
  );
  const copy = button(
    "copy",
    async () => {
      copy.textContent = (await copyText(`${message.lines.join("\n")}\n`)) ? "copied" : "not copied";
    },
    { class: "quiet", "aria-label": `copy ${label} as N-Quads` },
  );
  const head = element(
    "header",
    {},
    element("h3", { class: title === undefined ? "number" : null }, href === undefined ? name : element("a", { href }, name)),
    ...(time === undefined ? [] : [timeElement(time)]),
    element("span", { class: "size" }, countOf(message.lines.length, "statement")),
    ...(message.lines.length ? [draw, copy] : []),
  );
  const content = messageElement(message.lines, prefixes);
  const made = element("li", { class: "card", tabindex: "-1", "aria-label": label, "data-number": message.number });
  made.append(head, content, picture);
  return made;
}
