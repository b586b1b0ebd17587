// Adds to the views of streams what needs JavaScript: forms, and the live part. All else the server has written.

import { keepForms } from "./drafts.js";
import { Facts } from "./facts.js";
import { connectForms } from "./forms.js";
import { followIn } from "./follow.js";

const section = document.getElementById("follow");
const stream = section && new URL(section.dataset.stream, location.href).href;
const facts = section && new Facts(stream, document);
connectForms(document, () => {
  document.getElementById("outdated")?.removeAttribute("hidden");
  facts?.soon();
});
keepForms(document);
if (section !== null) {
  const started = () => (document.getElementById("newest").hidden = true);
  followIn(section, stream, { started, changed: () => facts.soon() });
}
document.documentElement.dataset.ready = "";
