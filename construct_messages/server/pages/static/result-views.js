// The views of an answer: its messages as cards, and other views. A view is created when it is opened.
//
// Cards and text have all messages that are kept. Table, map and timeline have the first ones, and show this.

import { documentsView } from "./documents-view.js";
import { button, element } from "./elements.js";
import { Facets } from "./facets.js";
import { graphView } from "./graph-view.js";
import { mapElement } from "./map.js";
import { messageTable } from "./message-table.js";
import { cutIri } from "./term-view.js";
import { LogText } from "./text-view.js";
import { timelineElement } from "./timeline.js";

const $ = (id) => document.getElementById(id);

const VIEWS = {
  messages: "Cards",
  table: "Table",
  map: "Map",
  timeline: "Timeline",
  log: "Text",
  documents: "JSON",
  graph: "One graph",
};

export class ResultViews {
  /** `viewed` is called when another view is chosen. */
  constructor(cards, viewed) {
    this.cards = cards;
    this.viewed = viewed;
    this.view = "messages";
    this.wanted = null; // the view that the next log begins with
    this.reset(null);
    for (const [name, label] of Object.entries(VIEWS)) {
      const choose = () => {
        this.wanted = null;
        this.show(name);
        this.viewed();
      };
      const tab = button(label, choose, { id: `tab-${name}`, "aria-pressed": "false", hidden: true });
      $("tabs").append(tab);
    }
  }

  /** Whether the list of cards is shown. */
  get isList() {
    return !$("messages-view").hidden;
  }

  reset(asked) {
    this.asked = asked;
    this.stops?.abort(); // the requests of a view
    this.stops = new AbortController();
    this.facets = new Facets(); // data of the first messages for other views
    this.made = new Map(); // views that have asked again, by name
    $("tabs").hidden = $("messages-view").hidden = $("other-view").hidden = true;
    $("other-view").replaceChildren();
  }

  /** Offers the views of a log, and shows the one that is wanted, or else cards. */
  offerMessages() {
    $("tabs").hidden = false;
    for (const name of Object.keys(VIEWS)) $(`tab-${name}`).hidden = name === "map" || name === "timeline";
    this.show("messages");
    this.showWanted();
  }

  /** Shows the view that is wanted, once it is offered. */
  showWanted() {
    if (!Object.hasOwn(VIEWS, this.wanted ?? "") || $(`tab-${this.wanted}`).hidden) return;
    this.show(this.wanted);
    this.wanted = null;
  }

  add(message) {
    this.cards.add(message);
    this.facets.expect(message);
    $("tab-map").hidden = !this.facets.isLikely.places;
    $("tab-timeline").hidden = !this.facets.isLikely.times;
  }

  /** Updates views that were opened before all messages had arrived. */
  ended() {
    if ($("tabs").hidden) return;
    $("tabs").hidden = this.cards.store.count === 0; // there is nothing to be seen in any way
    this.showWanted();
    this.wanted = null;
    if (this.view !== "messages") this.show(this.view);
  }

  /** Shows an answer that is not a log. */
  showOther(made) {
    $("other-view").replaceChildren(made);
    $("other-view").hidden = false;
  }

  show(name) {
    this.view = name;
    for (const each of Object.keys(VIEWS)) $(`tab-${each}`).setAttribute("aria-pressed", String(each === name));
    $("messages-view").hidden = name !== "messages";
    $("other-view").hidden = name === "messages";
    $("list-bar").hidden = name !== "messages";
    if (name === "messages") this.cards.fill();
    else $("other-view").replaceChildren(this.viewOf(name));
  }

  viewOf(name) {
    const { cards } = this;
    switch (name) {
      case "table":
        return messageTable(cards.store, cards.prefixes);
      case "map":
        return this.chartOf("places", mapElement);
      case "timeline":
        return this.chartOf("times", timelineElement);
      case "log":
        return new LogText(cards.store).element;
      case "documents":
        return this.once(name, documentsView);
      default:
        return this.once(name, graphView);
    }
  }

  /** The map of places or the timeline of times, once the messages are searched; their entries show their messages. */
  chartOf(kind, chartElement) {
    const { facets, cards } = this;
    const { prefixes } = cards;
    const open = (number) => {
      this.show("messages");
      cards.jump(number);
    };
    const nameOf = ({ label, term, number }) =>
      label ?? (term.kind === "iri" ? (prefixes.shorten(term.value) ?? cutIri(term.value)) : `message ${number.toLocaleString()}`);
    const predicateOf = (iri) => prefixes.shorten(iri) ?? cutIri(iri);
    const place = element("div", {}, element("p", { class: "note" }, "The messages are searched."));
    facets.read(cards.store).then(() => {
      const options = { left: facets.left[kind], said: facets.notesOf(cards.store), nameOf, predicateOf, open };
      place.replaceChildren(chartElement(facets[kind], { ...options, width: Math.max(240, $("results").clientWidth) }));
    });
    return place;
  }

  /** A view that sends a request to the server once, and again after a failure. */
  once(name, viewOf) {
    const before = this.made.get(name);
    if (before !== undefined && !("failed" in before.dataset)) return before;
    const made = viewOf(this.asked, this.stops.signal);
    this.made.set(name, made);
    return made;
  }
}
