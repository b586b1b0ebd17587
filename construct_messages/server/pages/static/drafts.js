// Text that was typed, kept with the page's entry in the browser's history: reload, Back and Forward bring it back.
//
// WHATWG HTML, section 7.2.5 (History): the state of an entry is of one tab, and goes to no server. Browsers that
// restore forms by themselves do it for some fields only, and not where a page fills them.

const PAUSE = 500; // milliseconds: browsers refuse more than a hundred changes in 30 seconds

/** The state of the current entry of the history, or null. */
export function keptDraft() {
  return history.state?.draft ?? null;
}

export class Drafts {
  /** `read` returns the state to save, as a value that can be cloned. */
  constructor(read) {
    this.read = read;
    this.timer = 0;
    document.addEventListener("focusout", () => this.flush()); // as where a link is clicked
    window.addEventListener("pagehide", () => this.flush());
  }

  /** Saves the state soon; call it after each change. */
  changed() {
    this.timer ||= setTimeout(() => this.save(), PAUSE);
  }

  /** Saves pending changes now. */
  flush() {
    if (this.timer) this.save();
  }

  /** Saves the current state; the entry gets another URL if one is passed. With `before`, which this entry keeps, a new
   *  one follows it. */
  save(url = location.href, { before = null } = {}) {
    clearTimeout(this.timer);
    this.timer = 0;
    try {
      const state = { draft: this.read() };
      if (before !== null) history.replaceState({ draft: before }, "");
      if (before !== null) history.pushState(state, "", url);
      else history.replaceState(state, "", url);
    } catch {
      // too long for the history of this browser: the text stays in the page, as long as that is open
    }
  }
}

/** Saves the input of the forms of a document, except passwords, and restores it. */
export function keepForms(document) {
  const fields = () =>
    [...document.querySelectorAll("form[data-form]")].flatMap((form) =>
      [...form.elements]
        .filter(({ name, type }) => name !== "" && type !== "password" && type !== "submit")
        .map((field) => [`${form.dataset.form} ${field.name}`, field]),
    );
  const kept = new Map(Object.entries(keptDraft() ?? {}));
  for (const [name, field] of fields()) {
    const text = kept.get(name) ?? "";
    if (text === "" || text === field.value) continue;
    field.value = text;
    field.closest("details")?.setAttribute("open", "");
  }
  const drafts = new Drafts(() => Object.fromEntries(fields().map(([name, field]) => [name, field.value])));
  document.addEventListener("input", () => drafts.changed());
}
