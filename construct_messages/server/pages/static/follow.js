// The elements of a stream's view: controls, state, and cards of those that are stored and of those that come.

import { Cards } from "./cards.js";
import { button, element } from "./elements.js";
import { Follower } from "./live.js";
import { COMMON_PREFIXES, Prefixes } from "./prefixes.js";

const TIMES = 10_000; // of elements, which the page knows for those that come while it is open
const STATES = {
  connecting: "connecting …",
  live: "live",
  waiting: "not connected",
  released: "not connected while this tab is hidden",
  ended: "stopped",
};

function option(value, text, selected = false) {
  return element("option", { value, selected }, text);
}

/** Fills a section with the elements of a stream, and follows it. `times` has those of elements that are known, by sequence;
 *  `live` is called when it is followed first, and `came(message, isNew)` with each element. */
export function followIn(section, stream, { times = new Map(), live = () => {}, came = () => {} } = {}) {
  const begin = element(
    "select",
    {},
    option("20", "the last 20", true),
    option("100", "the last 100"),
    option("next", "what comes next"),
    option("after", "after element …"),
  );
  const after = element("input", { type: "number", min: "0", value: "0", class: "short", "aria-label": "after element" });
  after.hidden = true;
  begin.addEventListener("change", () => {
    after.hidden = begin.value !== "after";
    start();
  });
  after.addEventListener("change", () => start());
  const go = button("Follow", () => (follower.stopped ? start() : follower.stop()), { class: "primary" });
  const pause = button("Pause", () => setPaused(!cards.paused), { "aria-pressed": "false", disabled: true });
  const filter = element("input", { type: "search", autocomplete: "off" });
  filter.addEventListener("input", () => {
    filtered = true;
    cards.show(filter.value);
    count();
  });
  const state = element("span", { class: "state", role: "status" }, "not followed");
  const counts = element("span", { class: "help counts" });
  const announced = element("span", { class: "unseen", role: "status" });
  const gaps = element("div", { class: "gaps", role: "alert" });
  const list = element("ol", { class: "cards", "aria-label": "Elements" });
  const tail = element("div", { class: "tail", tabindex: "0", role: "region", "aria-label": "Elements in order" }, list);
  tail.hidden = true;

  let received = 0;
  let behind = 0; // elements that arrived while paused
  let filtered = false; // whether the result of a filter is still to be announced
  let sticks = true; // whether the newest card is to stay in sight
  tail.addEventListener("scroll", () => {
    sticks = tail.scrollTop + tail.clientHeight > tail.scrollHeight - 40;
    cards.keepsToEnd = sticks;
  });
  const shown = () => {
    count();
    if (sticks) tail.scrollTop = tail.scrollHeight;
  };
  const aboutOf = (number) => ({
    title: `element ${number.toLocaleString()}`,
    href: `${section.dataset.elements}/${number}`,
    time: times.get(number),
  });
  const cards = new Cards(list, { changed: shown, keepsToEnd: true, aboutOf });
  cards.prefixes = new Prefixes(COMMON_PREFIXES);

  const follower = new Follower(stream, {
    element: (message, isNew) => {
      received += 1;
      if (isNew) times.set(message.number, new Date());
      if (times.size > TIMES) times.delete(times.keys().next().value);
      if (cards.paused) behind += 1;
      cards.add(message);
      if (cards.paused) count();
      came(message, isNew);
    },
    gap: (first, last) => {
      const which = first === last ? `Element ${first} is` : `Elements ${first} to ${last} are`;
      gaps.append(element("p", { class: "banner warn" }, `${which} missing: retention removed them before they came.`));
    },
    state: (name, detail) => {
      state.dataset.state = name;
      if (name === "live") live();
      let text = STATES[name];
      if (name === "waiting") text += `: trying again in ${Math.max(1, Math.round(detail / 1000))} s`;
      if (name === "ended") text += `: ${detail}`;
      state.textContent = text;
      go.textContent = name === "ended" ? "Follow" : "Stop";
      pause.disabled = name === "ended" && !cards.paused; // held back elements can be shown after the end, too
      count();
    },
  });

  function count() {
    const reconnected = Math.max(0, follower.connections - 1);
    const parts = [`${received.toLocaleString()} received`];
    if (behind) parts.push(`${behind.toLocaleString()} of them since the pause`);
    if (reconnected) parts.push(`connected again ${reconnected === 1 ? "once" : `${reconnected} times`}`);
    parts.push(cards.described());
    counts.textContent = parts.filter((part) => part !== "").join(", ");
    if (!filtered || !cards.isDone) return;
    filtered = false;
    announced.textContent = cards.described();
  }

  function setPaused(paused) {
    behind = 0;
    cards.pause(paused);
    pause.setAttribute("aria-pressed", String(paused));
    pause.disabled = follower.stopped && !paused;
    count();
  }

  function start() {
    received = 0;
    follower.connections = 0;
    gaps.replaceChildren();
    cards.clear();
    cards.show(filter.value);
    setPaused(false);
    sticks = cards.keepsToEnd = true;
    tail.hidden = false;
    pause.disabled = false;
    if (begin.value === "after") follower.start({ after: Number(after.value) });
    else follower.start({ newest: begin.value === "next" ? 0 : Number(begin.value) });
  }

  section.append(
    element("div", { class: "bar" }, element("label", {}, "From ", begin), after, go, pause),
    element(
      "div",
      { class: "bar" },
      element("label", {}, "Filter ", filter),
      state,
      counts,
      announced,
    ),
    gaps,
    tail,
  );
  follower.seen(!document.hidden);
  document.addEventListener("visibilitychange", () => follower.seen(!document.hidden));
  section.hidden = false;
  start();
  return follower;
}
