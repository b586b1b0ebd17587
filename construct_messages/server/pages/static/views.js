// Adds to the views of streams what needs JavaScript: forms, and the live part. All else the server has written.

import { connectForms } from "./forms.js";
import { followIn } from "./follow.js";

connectForms(document);
const section = document.getElementById("follow");
if (section !== null) {
  const stream = new URL(section.dataset.stream, location.href).href;
  followIn(section, stream, () => (document.getElementById("newest").hidden = true));
}
document.documentElement.dataset.ready = "";
