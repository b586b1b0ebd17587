// What the page uses of CodeMirror, bundled into static/codemirror.js by `make editor`. Nothing of SPARQL is in here.

import { StyleModule } from "style-mod";

export {
  acceptCompletion,
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap, isolateHistory, toggleComment } from "@codemirror/commands";
export { StreamLanguage, bracketMatching, indentUnit, syntaxHighlighting } from "@codemirror/language";
export { lintGutter, lintKeymap, setDiagnostics, setDiagnosticsEffect } from "@codemirror/lint";
export { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
export { EditorState, Prec } from "@codemirror/state";
export { EditorView, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
export { tagHighlighter, tags } from "@lezer/highlight";

/** Lets the styles of CodeMirror go into a sheet that a document adopts.
 *
 *  The policy of the page refuses `style` elements. style-mod makes an adopted sheet for roots without a head, as those
 *  of shadow trees, and keeps it under a symbol: here that of a root which is none, given to the document. */
export function adoptStyles(document) {
  const root = { ownerDocument: document, adoptedStyleSheets: [] };
  StyleModule.mount(root, []);
  for (const key of Object.getOwnPropertySymbols(root)) document[key] = root[key];
}
