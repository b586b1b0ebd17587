// Adds to the views of streams what needs JavaScript: cards, forms, and elements as they arrive.

import { keepForms } from "./drafts.js";
import { Facts } from "./facts.js";
import { followIn } from "./follow.js";
import { connectForms } from "./forms.js";
import { keepOverview } from "./overview.js";
import { RateChart } from "./rate.js";
import { SeenTerms } from "./seen.js";
import { drawLong, drawShort } from "./stored.js";
import { keepTimes, timeElement } from "./times.js";

const section = document.getElementById("follow");
const overview = document.getElementById("overview");
const vocabulary = new SeenTerms();
let facts = null;

keepForms(document);
connectForms(document, () => {
  facts?.soon();
  look?.();
});
connectEditor(document.querySelector("form[data-form=register]"));
drawShort(document);
const look = overview && keepOverview(overview);
if (section === null) await drawLong(document);
else follow();
keepTimes(document);
document.documentElement.dataset.ready = "";

function follow() {
  const stream = new URL(section.dataset.stream, location.href).href;
  const newest = document.getElementById("newest");
  const chart = new RateChart(document.getElementById("rate"));
  const newestTime = document.getElementById("newest-time");
  const times = new Map();
  for (const card of [...newest.querySelectorAll(".card")].toReversed()) {
    times.set(Number(card.dataset.number), new Date(card.querySelector("header time").dateTime));
  }
  facts = new Facts(stream, document);
  followIn(section, stream, {
    times,
    live: () => (newest.hidden = true),
    came: (message, isNew) => {
      vocabulary.learn(message);
      facts.soon();
      if (!isNew) return;
      chart.add();
      newestTime.replaceChildren(timeElement(new Date()));
    },
  });
}

/** Loads the editor when the form is opened that it is in: most readers register nothing. */
function connectEditor(form) {
  const panel = form?.closest("details");
  const open = async () => {
    const { editIn } = await import("./registering.js");
    editIn(form, vocabulary);
  };
  if (panel?.open) open();
  else panel?.addEventListener("toggle", open, { once: true });
}
