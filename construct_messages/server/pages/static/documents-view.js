// The answer as JSON documents, one for each message, as the server frames them. The query runs again.

import { element } from "./elements.js";
import { askedAgain } from "./graph-view.js";
import { CutError, piecesOf } from "./log.js";
import { ask } from "./server.js";

const DOCUMENTS_TYPE = "application/x-ndjson";
const SHOWN = 100;
const CHARACTERS = 1 << 20; // of the shown documents

/** An element that shows the first documents of the answer. */
export function documentsView({ url, query, parameters }, signal) {
  return askedAgain({
    signal,
    what: "document",
    how: "for JSON",
    read: async (own, counted) => {
      const response = await ask(url, query, DOCUMENTS_TYPE, own, parameters);
      return documentsElement(await firstDocuments(piecesOf(response.body), counted));
    },
  });
}

/** The first documents of a body: {documents, isAll}. It is read no further. */
async function firstDocuments(pieces, counted) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const documents = [];
  let characters = 0;
  let open = "";
  for await (const bytes of pieces) {
    open += decoder.decode(bytes, { stream: true });
    const lines = open.split("\n");
    open = lines.pop();
    for (const line of lines) {
      documents.push(line);
      characters += line.length;
      if (documents.length >= SHOWN || characters > CHARACTERS) return { documents, isAll: false };
    }
    counted(documents.length);
  }
  if (open.trim() !== "") throw new CutError("the last document is not whole");
  return { documents, isAll: true };
}

function documentsElement({ documents, isAll }) {
  const shown = documents.map((line) => JSON.stringify(JSON.parse(line), null, 2)).join("\n");
  const count = documents.length.toLocaleString();
  const note = isAll ? `all ${count} documents` : `the first ${count} documents; Download saves all`;
  const region = { class: "scroll text", tabindex: "0", role: "region", "aria-label": "JSON documents" };
  return element("div", {}, element("p", { class: "note" }, note), element("pre", region, shown));
}
