// Starts the page: reads the server's description. A server that only has streams begins with their view.

import { element } from "./elements.js";
import { QuerySection } from "./query.js";
import { serverDescription, urlOf } from "./server.js";

const $ = (id) => document.getElementById(id);

async function start() {
  let server;
  try {
    server = await serverDescription();
  } catch (error) {
    document.querySelector("main").replaceChildren(
      element("p", { class: "banner bad", role: "alert" }, `The server does not answer: ${error.message}.`),
    );
    return;
  }
  if (!server.endpoints.length && server.streams !== null) {
    location.replace(urlOf(server.streams));
    return;
  }
  $("to-streams").hidden = server.streams === null;
  if (server.streams !== null) $("to-streams").href = urlOf(server.streams);
  const queries = new QuerySection(server);
  // not hashchange: a timer may run before it, and save the input in the wrong entry
  window.addEventListener("popstate", () => queries.moved());
  document.documentElement.dataset.ready = "";
}

start();
