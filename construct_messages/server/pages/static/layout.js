// How much room the editor has: the border between the query and its results, and whether the editor is shown.

const $ = (id) => document.getElementById(id);
const COLUMNS = matchMedia("(min-width: 60rem)"); // as in results.css
const TOUCH = matchMedia("(pointer: coarse)");
const [LEAST, MOST, USUAL, STEP] = [20, 75, 41, 2]; // percent of the width

export class Layout {
  constructor(storage) {
    this.storage = storage;
    const kept = storage.get("layout", "query");
    this.width = Number.isFinite(kept?.width) ? kept.width : USUAL;
    this.isFolded = kept?.isFolded === true;
    const splitter = $("splitter");
    splitter.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      splitter.setPointerCapture(event.pointerId);
    });
    splitter.addEventListener("pointermove", (event) => {
      if (splitter.hasPointerCapture(event.pointerId)) this.resize(this.percentAt(event.clientX));
    });
    splitter.addEventListener("lostpointercapture", () => this.keep());
    splitter.addEventListener("dblclick", () => this.resize(USUAL, true));
    splitter.addEventListener("keydown", (event) => this.pressed(event));
    $("fold").addEventListener("click", () => this.fold(!this.isFolded));
    this.show();
  }

  percentAt(x) {
    const { left, width } = $("query-section").getBoundingClientRect();
    return (100 * (x - left)) / width;
  }

  pressed(event) {
    const widths = { ArrowLeft: this.width - STEP, ArrowRight: this.width + STEP, Home: LEAST, End: MOST, Enter: USUAL };
    if (!Object.hasOwn(widths, event.key)) return;
    event.preventDefault();
    this.resize(widths[event.key], true);
  }

  resize(width, isKept = false) {
    this.width = Math.round(Math.min(MOST, Math.max(LEAST, width)) * 10) / 10;
    this.show();
    if (isKept) this.keep();
  }

  /** Hides the editor, or shows it. */
  fold(isFolded) {
    this.isFolded = isFolded;
    this.show();
    this.keep();
  }

  /** Brings the results into view where they are below the query. */
  reveal() {
    if (COLUMNS.matches) return;
    if (TOUCH.matches) document.activeElement?.blur(); // its keyboard would cover them
    const scroll = () => $("results").scrollIntoView({ behavior: "instant" });
    scroll();
    requestAnimationFrame(() => requestAnimationFrame(scroll)); // when the editor has measured its text
  }

  keep() {
    this.storage.set("layout", "query", { width: this.width, isFolded: this.isFolded });
  }

  show() {
    $("query-section").style.setProperty("--ask", `${this.width}%`);
    $("splitter").setAttribute("aria-valuenow", String(Math.round(this.width)));
    $("query-section").classList.toggle("folded", this.isFolded);
    $("fold").textContent = this.isFolded ? "Show editor" : "Hide editor";
    $("fold").setAttribute("aria-expanded", String(!this.isFolded));
  }
}
