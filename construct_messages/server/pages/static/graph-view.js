// The answer of a client without messages: one graph. The query runs again.

import { button, countOf, element } from "./elements.js";
import { piecesOf } from "./log.js";
import { Refusal, ask } from "./server.js";
import { graphElementOf, isGraph, readGraph, textElement } from "./tables.js";

const GRAPH_TYPE = "application/n-triples, text/turtle;q=0.5, */*;q=0.1";

/** An element that shows the answer as one graph when it has arrived; `signal` ends it. */
export function graphView({ url, query, further, prefixes }, signal) {
  return askedAgain({
    signal,
    what: "triple",
    how: "without messages",
    read: async (own, counted) => {
      const response = await ask(url, query, GRAPH_TYPE, own, further);
      const type = response.headers.get("Content-Type") ?? "";
      const pieces = piecesOf(response.body);
      if (!isGraph(type)) return textElement(pieces, type);
      const graph = await readGraph(pieces, counted);
      const said = `${countOf(graph.statements, "triple")} as one graph, as clients without messages get it`;
      return element("div", {}, element("p", { class: "note", role: "status" }, said), graphElementOf(graph, prefixes));
    },
  });
}

/** An element that shows the progress of `read(signal, counted)`, and then its result. */
export function askedAgain({ signal, what, how, read }) {
  const own = new AbortController();
  signal.addEventListener("abort", () => own.abort());
  const begun = performance.now();
  const note = element("p", { class: "banner busy" });
  const place = element("div", { "aria-busy": "true" }, note, button("Stop", () => own.abort()));
  let count = 0;
  const tick = () => {
    const seconds = Math.round((performance.now() - begun) / 1000);
    note.textContent = `The query runs again, ${how}: ${countOf(count, what)} in ${seconds} s so far.`;
  };
  tick();
  const timer = setInterval(tick, 1000);
  read(own.signal, (number) => (count = number))
    .catch((error) => {
      const refused = error instanceof Refusal ? `Refused (${error.status}): ${error.text}` : null;
      const failed = refused ?? `The answer was cut or failed: ${error.message}.`;
      place.dataset.failed = "";
      const text = own.signal.aborted ? "Stopped: the answer is not complete." : failed;
      return element("p", { class: "banner bad", role: "alert" }, text);
    })
    .then((made) => {
      clearInterval(timer);
      place.removeAttribute("aria-busy");
      place.replaceChildren(made);
    });
  return place;
}
