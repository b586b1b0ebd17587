// Copies terms of messages as N-Triples, independent of their form in a card.

import { element } from "./elements.js";

const BLOCKS = "p, dd, dt, li, tr, h3, div";

/** Copies a text; false where the browser does not let the page. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return selectAndCopy(text); // no clipboard without HTTPS
  }
}

function selectAndCopy(text) {
  const area = element("textarea", { class: "unseen", "aria-hidden": "true", tabindex: "-1" });
  const focused = document.activeElement;
  area.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return isCopied;
}

/** Copies selections within `place` with whole terms. */
export function copyWhole(place) {
  place.addEventListener("copy", (event) => {
    const selection = document.getSelection();
    if (selection.isCollapsed || event.target.closest?.("textarea, input")) return;
    const range = selection.getRangeAt(0);
    const container = range.commonAncestorContainer;
    const within = (container.nodeType === Node.ELEMENT_NODE ? container : container.parentElement).closest("[data-copy]");
    if (within !== null && !within.matches(".iri")) return; // a part of a literal
    const text = within === null ? textOf(range.cloneContents()) : within.dataset.copy;
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  });
}

function textOf(fragment) {
  for (const each of fragment.querySelectorAll("button, header .size")) each.remove();
  for (const each of fragment.querySelectorAll("[data-copy]")) {
    if (fragment.contains(each)) each.replaceChildren(each.dataset.copy);
  }
  for (const each of fragment.querySelectorAll(BLOCKS)) each.append(each.matches("dt") ? "\t" : "\n");
  return fragment.textContent.replace(/\n{2,}/g, "\n").trim();
}
