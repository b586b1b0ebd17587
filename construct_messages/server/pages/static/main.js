// Starts the page: asks what the server has, and shows the section that the fragment names.

import { element } from "./message-view.js";
import { QuerySection } from "./query.js";
import { serverDescription } from "./server.js";
import { showStreams } from "./streams.js";

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
  const queries = server.endpoints.length ? new QuerySection(server) : null;
  $("to-streams").hidden = server.streams === null;
  $("to-query").hidden = queries === null;

  const route = (event) => {
    const streams = server.streams !== null && (queries === null || /^#streams(?:\/|$)/.test(location.hash));
    $("query-section").hidden = streams;
    $("streams-section").hidden = !streams;
    $("to-query").setAttribute("aria-current", String(!streams));
    $("to-streams").setAttribute("aria-current", String(streams));
    if (streams) showStreams($("streams-section"), server, location.hash.replace(/^#streams\/?/, ""));
    else if (event !== undefined && location.hash.includes("query=")) queries.restore();
  };
  window.addEventListener("hashchange", route);
  route();
  document.documentElement.dataset.ready = "";
}

start();
