// The form that registers a query: an editor in the place of its text area, and examples.

import { Editor } from "./editor.js";
import { element } from "./elements.js";
import { markIn } from "./forms.js";
import { COMMON_PREFIXES } from "./prefixes.js";

/** Queries over a stream; `name` is undefined where the query is to name it. */
export function examplesOver(name) {
  const stream = `<${name ?? "NAME"}>`;
  return [
    {
      name: "Each message as it is",
      over: true,
      query: "CONSTRUCT { ?thing ?property ?value }\nWHERE { ?thing ?property ?value }\n",
    },
    {
      name: "Numbers above a bound",
      over: true,
      query: "CONSTRUCT { ?thing ?property ?value }\nWHERE {\n  ?thing ?property ?value\n  FILTER(isNumeric(?value) && ?value > 30)\n}\n",
    },
    {
      name: "The mean of each minute, every ten seconds",
      query: `PREFIX ex: <http://example.org/>
REGISTER RSTREAM <> AS
CONSTRUCT { ?property ex:mean ?mean }
FROM NAMED WINDOW ex:minute ON ${stream} [RANGE PT1M STEP PT10S]
WHERE {
  SELECT ?property (AVG(?value) AS ?mean)
  WHERE { WINDOW ex:minute { ?thing ?property ?value FILTER(isNumeric(?value)) } }
  GROUP BY ?property
}
`,
    },
    {
      name: "How many of the last ten messages have each property",
      query: `PREFIX ex: <http://example.org/>
REGISTER RSTREAM <> AS
CONSTRUCT { ?property ex:messages ?messages }
FROM NAMED WINDOW ex:ten ON ${stream} [ELEMENTS 10 STEP 5]
WHERE {
  SELECT ?property (COUNT(*) AS ?messages)
  WHERE { WINDOW ex:ten { ?thing ?property ?value } }
  GROUP BY ?property
}
`,
    },
  ].filter(({ over }) => name !== undefined || !over);
}

/** Puts the editor into the form; its text area keeps the text, for what sends and keeps forms. */
export function editIn(form, vocabulary) {
  const area = form.elements.query;
  const editor = new Editor(form.querySelector(".editor"), {
    run: () => form.requestSubmit(form.querySelector("[value=preview]")),
    changed: () => {
      area.value = editor.text;
      area.dispatchEvent(new Event("input", { bubbles: true }));
    },
    endpoint: () => ({ url: "", prefixes: COMMON_PREFIXES }),
    vocabulary,
  });
  area.hidden = true;
  form.append(area);
  markIn(form, (line, column, text) => editor.mark(line, column, text));
  const choice = form.querySelector(".examples");
  const examples = examplesOver(form.dataset.over || undefined);
  choice.append(...examples.map(({ name }, index) => element("option", { value: index }, name)));
  choice.addEventListener("change", () => {
    const example = examples[choice.value];
    choice.value = "";
    if (example !== undefined) editor.replace(example.query);
  });
}
