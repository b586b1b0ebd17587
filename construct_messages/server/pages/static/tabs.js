// The queries that are open in this window. What is typed into one is kept for the next window; where two windows have the
// same one open, and both type, the later one becomes a query of its own.

import { button } from "./elements.js";
import { isSame, requestIn, titleOf } from "./request.js";
import { newId } from "./storage.js";

const TITLE = 28; // characters

export class Tabs {
  /** `chosen(request)` puts another open query into the form, `closed(request)` is called with one that was typed. */
  constructor(place, { storage, session, chosen, closed }) {
    this.place = place;
    this.storage = storage;
    this.session = session;
    this.chosen = chosen;
    this.closed = closed;
    this.open = []; // {id, stamp, request, isTyped}: `stamp` is that of what is kept, null: nothing is
    this.active = null;
    this.read();
  }

  /** Opens what was open in this window, or else what earlier windows have kept. */
  read() {
    const before = this.session.get("window", "open");
    const kept = this.storage.all("open");
    const open = Array.isArray(before?.open) ? before.open : kept;
    this.open = open
      .map((each) => ({ id: String(each?.id), stamp: each?.stamp ?? null, request: requestIn(each?.request) }))
      .filter(({ request }) => request !== null);
    const latest = kept.reduce((last, each) => (last === null || each.at > last.at ? each : last), null);
    const active = before?.active ?? latest?.id;
    this.active = this.open.find(({ id }) => id === active) ?? this.open.at(-1) ?? null;
  }

  /** Puts a request into a query of its own, which becomes the active one, or into the one that has it already. */
  add(request) {
    this.active = this.open.find((each) => isSame(each.request, request)) ?? null;
    if (this.active === null) this.open.push((this.active = { id: newId(), stamp: null, request }));
    this.save();
  }

  select(id) {
    const found = this.open.find((each) => each.id === id);
    if (found === undefined) return false;
    this.active = found;
    this.save();
    return true;
  }

  /** Takes what is typed for the active query; `save` keeps it. */
  take(request) {
    const { active } = this;
    if (isSame(active.request, request)) return;
    const isRenamed = titleOf(active.request) !== titleOf(request);
    active.request = request;
    active.isTyped = true;
    if (isRenamed) this.show();
  }

  /** Keeps what was typed into a query for other windows. */
  keep(tab) {
    const now = this.storage.get("open", tab.id);
    if (now !== null && now.stamp !== tab.stamp) tab.id = newId(); // another window has typed there
    tab.stamp = newId();
    tab.isTyped = false;
    this.storage.set("open", tab.id, { stamp: tab.stamp, at: Date.now(), request: tab.request });
  }

  /** Closes the active query; the one beside it becomes active. */
  close() {
    const index = this.open.indexOf(this.active);
    const [gone] = this.open.splice(index, 1);
    if (gone.stamp !== null || gone.isTyped) {
      if (this.storage.get("open", gone.id)?.stamp === gone.stamp) this.storage.remove("open", gone.id);
      this.closed(gone.request);
    }
    this.active = this.open[Math.min(index, this.open.length - 1)] ?? null;
  }

  /** Keeps what is open, and shows it. */
  save() {
    for (const tab of this.open.filter(({ isTyped }) => isTyped)) this.keep(tab);
    this.session.set("window", "open", { active: this.active.id, open: this.open });
    this.show();
  }

  show() {
    const tabs = this.open.map((tab) => {
      const isActive = tab === this.active;
      const title = titleOf(tab.request);
      const label = title.length > TITLE ? `${title.slice(0, TITLE)}…` : title;
      return button(label, () => this.choose(tab), { "aria-pressed": String(isActive), title });
    });
    const focused = [...this.place.children].indexOf(document.activeElement);
    this.place.replaceChildren(...tabs);
    this.place.hidden = tabs.length < 2;
    if (focused >= 0) this.place.children[Math.min(focused, tabs.length - 1)]?.focus();
    const shown = tabs[this.open.indexOf(this.active)];
    if (shown !== undefined) this.place.scrollLeft = shown.offsetLeft - this.place.offsetLeft - 40;
  }

  choose(tab) {
    if (tab === this.active) return;
    this.active = tab;
    this.save();
    this.chosen(tab.request);
  }
}
