// The page's access to its server, by paths relative to this file, so that any prefix of a proxy is kept.

/** The root of the server, wherever a proxy puts it. */
export const ROOT = new URL("../../", import.meta.url);

/** The description of the server: endpoints, the path of streams, formats. */
export async function serverDescription() {
  const response = await fetch(new URL("-/server.json", ROOT));
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return response.json();
}

/** The absolute URL of a path that the description names. */
export function urlOf(path) {
  return new URL(path, ROOT).href;
}

/** The error of an unsuccessful answer, from the server's problem document (RFC 9457). */
export class Refusal extends Error {
  constructor(problem, status) {
    super(problem.detail ?? problem.title ?? `status ${status}`);
    this.status = status;
    this.hint = problem.hint ?? null;
    this.line = problem.line ?? null;
    this.column = problem.column ?? null;
  }

  /** The message with its hint, in a sentence or two. */
  get text() {
    return this.hint === null ? `${this.message}.` : `${this.message}. Try: ${this.hint}.`;
  }
}

/** The response, or its Refusal thrown. */
export async function accepted(response) {
  if (response.ok) return response;
  const text = await response.text();
  const isProblem = (response.headers.get("Content-Type") ?? "").includes("application/problem+json");
  throw new Refusal(isProblem ? JSON.parse(text) : { detail: text.trim().slice(0, 2000) || null }, response.status);
}

/** Sends a query by POST, as a form; `parameters` are further ones of the server, such as `group-by`. */
export async function ask(url, query, accept, signal, parameters = []) {
  const body = new URLSearchParams([["query", query], ...parameters]);
  return accepted(await fetch(url, { method: "POST", body, headers: { Accept: accept }, signal }));
}
