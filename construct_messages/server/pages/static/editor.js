// The query editor: CodeMirror in place of a text area, with SPARQL, completion, and errors of the server.
//
// Tab leaves the editor, as everywhere in the page: Ctrl-] and Ctrl-[ indent. The text area is for browsers without
// JavaScript; text that was typed before this module was loaded is kept.

import {
  EditorState,
  EditorView,
  Prec,
  acceptCompletion,
  adoptStyles,
  autocompletion,
  bracketMatching,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  defaultKeymap,
  highlightActiveLineGutter,
  highlightSelectionMatches,
  history,
  historyKeymap,
  indentUnit,
  isolateHistory,
  keymap,
  lineNumbers,
  lintKeymap,
  search,
  searchKeymap,
  setDiagnostics,
  setDiagnosticsEffect,
} from "./codemirror.js";
import { SAME_WORD, ownCompletions, termCompletions, typedAt, wanted } from "./completion.js";
import { formatted } from "./formatting.js";
import { sparqlLanguage } from "./language.js";
import { declaredPrefixes, placeOf, queryForm, tokenAt, tokens, undeclaredPrefixes } from "./sparql.js";
import { Vocabulary } from "./vocabulary.js";

export const READ = 300_000; // characters that are read as tokens for prefixes, completion and the form of the query

export class Editor {
  /** `place` holds a text area. `run` is called where the query is to be run, `changed` after each change, with whether
   *  another text was typed or pasted in the place of all that was there; `endpoint` returns {url, prefixes}: the
   *  endpoint for classes and predicates, and the prefixes that may be declared. `vocabulary` has them. */
  constructor(place, { run, changed, endpoint, vocabulary = new Vocabulary() }) {
    this.changed = changed;
    this.endpoint = endpoint;
    this.vocabulary = vocabulary;
    this.read = null; // the text whose tokens `found` has
    this.found = [];
    this.extensions = this.extended(run);
    adoptStyles(document);
    const area = place.querySelector("textarea");
    const { value, selectionStart: anchor, selectionEnd: head } = area;
    const hadFocus = document.activeElement === area;
    area.remove();
    this.view = new EditorView({ parent: place, state: this.stateOf(value) });
    this.view.dispatch({ selection: this.within(anchor, head) });
    if (hadFocus) this.view.focus();
  }

  extended(run) {
    const keys = [{ key: "Mod-Enter", run: () => (run(), true) }, { key: "Tab", run: acceptCompletion }];
    keys.push({ key: "Shift-Alt-f", run: () => (this.format(), true) });
    return [
      Prec.highest(keymap.of(keys)),
      lineNumbers(),
      EditorView.lineWrapping,
      highlightActiveLineGutter(),
      history(),
      sparqlLanguage,
      indentUnit.of("  "),
      bracketMatching(),
      closeBrackets(),
      autocompletion({ override: [(context) => this.complete(context)], activateOnTypingDelay: 150, icons: false }),
      highlightSelectionMatches(),
      search({ top: true }),
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
      // an error is of the text that was sent
      EditorState.transactionExtender.of((change) => (change.docChanged ? { effects: setDiagnosticsEffect.of([]) } : null)),
      EditorView.domEventHandlers({ beforeinput: replaceSelection }),
      EditorView.updateListener.of((update) => update.docChanged && this.changed(isOther(update))),
      EditorView.contentAttributes.of({
        id: "query",
        "aria-label": "SPARQL query",
        "aria-describedby": "query-help",
        spellcheck: "false",
        tabindex: "0", // it scrolls, so it must be reachable by keyboard
      }),
    ];
  }

  stateOf(text) {
    return EditorState.create({ doc: text, extensions: this.extensions });
  }

  get text() {
    return this.view.state.doc.toString();
  }

  /** Replaces the text and the history of edits. */
  set text(text) {
    // CodeMirror measures what is due: after another state, it would look for places of the old text in the new one
    this.view.coordsAtPos(0);
    this.view.setState(this.stateOf(text));
    this.changed();
  }

  /** Replaces the text, as an edit that can be undone. */
  replace(text) {
    const { doc } = this.view.state;
    this.edit({ from: 0, to: doc.length, insert: text }, { selection: { anchor: 0 } });
  }

  /** Formats the text, as an edit that can be undone. */
  format() {
    const text = formatted(this.text);
    if (text !== this.text) this.replace(text);
  }

  /** A selection that is in the text. */
  within(anchor, head = anchor) {
    const { length } = this.view.state.doc;
    return { anchor: Math.min(anchor, length), head: Math.min(head, length) };
  }

  // --- the text -----------

  /** The prefixes that the query declares. */
  get prefixes() {
    return declaredPrefixes(this.tokens());
  }

  /** The names of the variables in the query. */
  get variables() {
    return new Set(this.tokens().filter(({ kind }) => kind === "variable").map(({ text }) => text.slice(1)));
  }

  /** The form of the query; see `queryForm`. */
  get form() {
    return queryForm(this.tokens());
  }

  /** The tokens of the text, read once; of a long one those at its beginning. */
  tokens() {
    const { text } = this;
    if (this.read !== text) {
      this.found = tokens(text.slice(0, READ));
      this.read = text;
    }
    return this.found;
  }

  /** The prefixes of `known` that the query uses without a declaration. */
  missing(known) {
    return undeclaredPrefixes(this.tokens()).filter((prefix) => Object.hasOwn(known, prefix));
  }

  /** Declares prefixes of `known` before the query. */
  declare(known) {
    const insert = this.missing(known).map((prefix) => declaration(prefix, known[prefix])).join("");
    this.edit({ from: 0, insert });
  }

  /** Changes the text, as an edit that is undone by itself. */
  edit(changes, further = {}) {
    this.view.dispatch({ changes, ...further, scrollIntoView: true, annotations: isolateHistory.of("full") });
    this.view.focus();
  }

  /** Marks the token at a line and column of the server's error, and puts the cursor there. */
  mark(line, column, message) {
    const { text } = this;
    const place = placeOf(text, line, column);
    const { start: from, end: to } = tokenAt(this.tokens(), text, place);
    this.view.dispatch(setDiagnostics(this.view.state, [{ from, to, severity: "error", message }]), {
      selection: { anchor: place },
      scrollIntoView: true,
    });
    this.view.focus();
  }

  // --- completion ---

  /** The completions at a position; queries the endpoint only if a class or a predicate is expected. */
  async complete(context) {
    const found = this.tokens();
    const typed = typedAt(found, context.pos);
    if ((typed.text === "" && !context.explicit) || !this.view.hasFocus) return null; // as where it is run at once
    const { url, prefixes } = this.endpoint();
    const options = ownCompletions(this.read, found, typed, prefixes);
    const needed = wanted(found, typed, prefixes);
    if (needed !== null) {
      const left = new AbortController();
      context.addEventListener("abort", () => left.abort(), { onDocChange: true });
      const iris = await this.vocabulary.terms(url, needed.kind, needed.namespace, left.signal);
      // the editor may have been given another text meanwhile, in which the position means nothing
      if (context.state.doc !== this.view.state.doc) return null;
      options.push(...termCompletions(iris, needed.kind, found, prefixes));
    }
    if (options.length === 0) return null;
    return { from: typed.from, options: options.map(applied), validFor: SAME_WORD[typed.kind] };
  }
}

/** Whether a text was typed or pasted in the place of all that was there. */
function isOther({ changes, startState, transactions }) {
  let isWhole = false;
  changes.iterChangedRanges((from, to) => (isWhole ||= from === 0 && to === startState.doc.length && to > 0));
  return isWhole && transactions.some((each) => each.isUserEvent("input"));
}

/** Types over a selection; Chromium would write style attributes to do so, which the policy refuses. */
function replaceSelection(event, view) {
  if (event.inputType !== "insertText" || event.data === null || event.isComposing) return false;
  const { from, to } = selectedIn(view);
  if (from === to) return false;
  const text = view.state.toText(event.data); // whose lines end as those of the editor
  const insert = () =>
    view.state.update({
      changes: { from, to, insert: text },
      selection: { anchor: from + text.length },
      userEvent: "input.type",
      scrollIntoView: true,
    });
  const handlers = view.state.facet(EditorView.inputHandler);
  if (!handlers.some((handle) => handle(view, from, to, event.data, insert))) view.dispatch(insert());
  event.preventDefault();
  return true;
}

/** The part of the text that the browser has selected, which the state may not know yet; all of it where that is all
 *  that is drawn. */
function selectedIn(view) {
  const { isCollapsed, rangeCount } = document.getSelection();
  if (isCollapsed || rangeCount === 0) return { from: 0, to: 0 };
  const range = document.getSelection().getRangeAt(0);
  if (!view.contentDOM.contains(range.commonAncestorContainer)) return { from: 0, to: 0 };
  const from = view.posAtDOM(range.startContainer, range.startOffset);
  const to = view.posAtDOM(range.endContainer, range.endOffset);
  if (from > view.viewport.from || to < view.viewport.to) return { from, to };
  return { from: 0, to: view.state.doc.length };
}

function declaration(prefix, iri) {
  return `PREFIX ${prefix}: <${iri}>\n`;
}

/** A completion that declares the prefix that it needs. */
function applied({ declare, ...option }) {
  if (declare === null || declare === undefined) return option;
  const apply = (view, { label }, from, to) => {
    const insert = declaration(...declare);
    view.dispatch({
      changes: [{ from: 0, insert }, { from, to, insert: label }],
      selection: { anchor: from + insert.length + label.length },
      userEvent: "input.complete",
    });
  };
  return { ...option, apply };
}
