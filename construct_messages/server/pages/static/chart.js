// A picture whose marks are buttons, and the list of what they stand for: what maps and timelines share.
//
// One mark is a tab stop, and arrow keys go from it to the others (ARIA Authoring Practices, "Developing a Keyboard
// Interface"). A mark of one thing opens its message; a mark of several lists them, and the list reaches every message.

import { button, countOf, element } from "./elements.js";
import { svg } from "./svg.js";

const LISTED = 100; // things that one click adds
const ZOOM = 2;
const STILL = 4; // pixels: a pointer that moves less does not drag
/** The least size of a mark and the least distance of two, in pixels (WCAG 2.2, 2.5.8). */
export const TARGET = 24;

export class Chart {
  /** `scene` draws: `fit(things)` returns a view, `zoomed(view, factor, at)` and `moved(view, dx, dy)` another one, and
   *  `draw(view, width)` returns {picture, marks, count}: marks are {x, y, things, name, shapes}, and `count` is the number
   *  of things in the view. `said` are sentences about the whole, `left` things that are not drawn, `nameOf(thing)` and
   *  `detailOf(thing)` its texts, and `open(number)` shows a message. */
  constructor(scene, { things, left, what, said, nameOf, detailOf, open, width }) {
    Object.assign(this, { scene, things, what, nameOf, detailOf, open, width });
    this.marks = []; // {x, y, things, name, shapes}
    this.current = 0; // the mark that is a tab stop
    this.state = element("span", { class: "note", role: "status" });
    this.place = element("div", {});
    this.chosen = element("div", {});
    const all = () => {
      this.view = this.scene.fit(this.things);
      this.draw();
      this.list(this.things, null);
    };
    const bar = element(
      "div",
      { class: "bar" },
      button("Zoom in", () => this.zoom(ZOOM), { class: "quiet" }),
      button("Zoom out", () => this.zoom(1 / ZOOM), { class: "quiet" }),
      button("Show all", all, { class: "quiet" }),
      this.state,
    );
    const notes = [countOf(things.length, what), ...said].join(". ").replace(/([^.])$/, "$1.");
    this.element = element("div", { class: "chart" }, element("p", { class: "note" }, notes));
    if (left.length) this.element.append(this.leftOut(left));
    if (things.length) this.element.append(bar, this.place, this.chosen);
    if (!things.length) return;
    this.view = scene.fit(things);
    this.draw();
    this.list(things, null);
    this.observer = new ResizeObserver(([{ contentRect }]) => this.resized(Math.floor(contentRect.width)));
    this.observer.observe(this.place);
  }

  resized(width) {
    if (width < 100 || width === this.width) return; // it is not shown, or is as it was drawn
    this.width = width;
    this.draw();
  }

  draw() {
    const hadFocus = this.place.contains(document.activeElement);
    const [before] = this.marks[this.current]?.things ?? [null];
    const { picture, marks, count } = this.scene.draw(this.view, this.width);
    this.marks = marks;
    this.current = Math.max(0, marks.findIndex(({ things }) => things.includes(before)));
    this.buttons = marks.map((mark, index) => this.buttonOf(mark, index));
    picture.append(...this.buttons);
    picture.setAttribute("role", "group");
    const reached = marks.length ? "; arrow keys go from mark to mark" : "";
    picture.setAttribute("aria-label", `${this.scene.name} of ${countOf(this.things.length, this.what)}${reached}`);
    picture.addEventListener("keydown", (event) => this.pressed(event));
    this.listenToDrags(picture);
    this.place.replaceChildren(picture);
    this.state.textContent = count === this.things.length ? "" : `${count.toLocaleString()} of them are in sight`;
    if (hadFocus) this.buttons[this.current]?.focus();
  }

  buttonOf({ name, shapes, things }, index) {
    const label = name ?? this.marked(things);
    const tabindex = index === this.current ? "0" : "-1";
    const made = svg("g", { class: "mark-button", role: "button", tabindex, "aria-label": label }, ...shapes, svg("title", {}, label));
    made.addEventListener("focus", () => this.go(index));
    made.addEventListener("click", () => this.wasDragged || this.choose(index));
    return made;
  }

  /** The things of a mark in words. */
  marked(things) {
    const [first] = things;
    if (things.length === 1) return `${this.nameOf(first)}, ${this.detailOf(first)}`;
    return `${countOf(things.length, this.what)}, the first: ${this.nameOf(first)}`;
  }

  choose(index) {
    const { things } = this.marks[index];
    if (things.length === 1) this.open(things[0].number);
    else this.list(things, `${countOf(things.length, this.what)} at this mark`);
  }

  go(index) {
    this.buttons[this.current]?.setAttribute("tabindex", "-1");
    this.current = index;
    this.buttons[index].setAttribute("tabindex", "0");
  }

  pressed(event) {
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const { key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || !this.marks.length) return;
    if (Object.hasOwn(ways, key)) this.focus(this.nearest(ways[key]));
    else if (key === "Home" || key === "End") this.focus(key === "Home" ? 0 : this.marks.length - 1);
    else if (key === "Enter" || key === " ") this.choose(this.current);
    else if (key === "+" || key === "-") this.zoom(key === "+" ? ZOOM : 1 / ZOOM);
    else return;
    event.preventDefault();
  }

  focus(index) {
    this.buttons[index].focus();
  }

  /** The mark that comes next in a direction: near, and rather straight on. */
  nearest([right, down]) {
    const from = this.marks[this.current];
    let [best, least] = [this.current, Infinity];
    for (const [index, { x, y }] of this.marks.entries()) {
      const [along, aside] = right ? [(x - from.x) * right, Math.abs(y - from.y)] : [(y - from.y) * down, Math.abs(x - from.x)];
      const distance = along + 2 * aside;
      if (along > 0.5 && distance < least) [best, least] = [index, distance];
    }
    return best;
  }

  /** Zooms about the mark that has the focus, else about the middle. */
  zoom(factor) {
    const mark = this.place.contains(document.activeElement) ? this.marks[this.current] : null;
    this.view = this.scene.zoomed(this.view, factor, mark);
    this.draw();
  }

  /** A mouse drags the picture; a finger scrolls the page. */
  listenToDrags(picture) {
    let from = null;
    picture.addEventListener("pointerdown", ({ pointerType, clientX, clientY }) => {
      this.wasDragged = false;
      if (pointerType === "mouse") from = { x: clientX, y: clientY, view: this.view };
    });
    picture.addEventListener("pointermove", ({ clientX, clientY, buttons, pointerId }) => {
      if (from === null || !buttons) return;
      const [dx, dy] = [clientX - from.x, clientY - from.y];
      if (!this.wasDragged && Math.hypot(dx, dy) < STILL) return;
      this.wasDragged = true;
      picture.setPointerCapture(pointerId);
      this.view = this.scene.moved(from.view, dx, dy);
      this.drawing ||= requestAnimationFrame(() => {
        this.drawing = 0;
        this.redraw(picture);
      });
    });
  }

  /** Draws into a picture that is there already, which a pointer drags. */
  redraw(picture) {
    const { picture: next, marks, count } = this.scene.draw(this.view, this.width);
    this.marks = marks;
    this.current = 0;
    this.buttons = marks.map((mark, index) => this.buttonOf(mark, index));
    picture.replaceChildren(...next.childNodes, ...this.buttons);
    this.state.textContent = count === this.things.length ? "" : `${count.toLocaleString()} of them are in sight`;
  }

  // --- lists ---

  /** Lists things: those of a mark under a heading, or all. */
  list(things, title) {
    const list = listOf(things, (thing) => this.itemOf(thing), this.what);
    if (title === null) {
      this.chosen.replaceChildren(...list);
      return;
    }
    const heading = element("h3", { tabindex: "-1" }, title);
    const fit = () => {
      this.view = this.scene.fit(things);
      this.draw();
    };
    const zoom = button("Zoom to them", fit, { class: "quiet" });
    const back = button(`List all ${countOf(this.things.length, this.what)}`, () => this.list(this.things, null), { class: "quiet" });
    this.chosen.replaceChildren(heading, element("div", { class: "bar" }, zoom, back), ...list);
    heading.focus({ preventScroll: true });
    heading.scrollIntoView({ block: "nearest" });
  }

  itemOf(thing, detail = this.detailOf(thing)) {
    const go = button(this.nameOf(thing), () => this.open(thing.number), { title: `message ${thing.number}` });
    return element("li", {}, go, " ", element("span", { class: "note" }, detail));
  }

  leftOut(left) {
    const item = (thing) => this.itemOf(thing, `${thing.text}: ${thing.problem}`);
    const summary = `${countOf(left.length, this.what)} not in the picture, and why`;
    return element("details", { class: "left-out", open: !this.things.length }, element("summary", {}, summary), ...listOf(left, item, this.what));
  }
}

/** A list of things and a button for more of them, as elements. */
function listOf(things, itemOf, what) {
  const list = element("ul", { class: "things" });
  let shown = 0;
  const show = () => {
    const before = shown;
    list.append(...things.slice(shown, shown + LISTED).map(itemOf));
    shown = Math.min(things.length, shown + LISTED);
    more.hidden = shown === things.length;
    more.textContent = `show more: ${countOf(things.length - shown, what)} are left`;
    if (before > 0) list.children[before].querySelector("button").focus();
  };
  const more = button("", show);
  show();
  return [list, more];
}
