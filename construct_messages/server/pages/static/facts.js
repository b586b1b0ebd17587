// Updates the facts of a stream's page from the stream's current description.

const WORDS = {
  kept: ({ firstSequence: first, lastSequence: last }) => {
    const count = (last - first + 1).toLocaleString("en");
    return last < first ? count : `${count}: ${first} to ${last}`;
  },
  read: ({ taken, lag }) =>
    `${taken.toLocaleString("en")} ${taken === 1 ? "element" : "elements"}, ${lag.toLocaleString("en")} waiting`,
  given: ({ given }) => `${given.toLocaleString("en")} ${given === 1 ? "message" : "messages"}`,
};
const PAUSE = 3000; // milliseconds between two requests

export class Facts {
  /** `stream` is the URL of the stream; `document` has elements with `data-fact`. */
  constructor(stream, document) {
    this.stream = stream;
    this.document = document;
    this.timer = 0;
    this.isOutdated = false; // whether elements have arrived since the last request for the description
  }

  /** Updates the facts soon; call it after each change. */
  soon() {
    this.isOutdated = true;
    this.timer ||= setTimeout(() => this.show(), PAUSE);
  }

  async show() {
    this.isOutdated = false;
    try {
      const answer = await fetch(this.stream, { headers: { Accept: "application/json" }, cache: "no-store" });
      if (answer.ok) this.put(await answer.json());
    } catch {
      // the page is unchanged; followers are told that the server does not answer
    } finally {
      this.timer = 0;
      if (this.isOutdated) this.soon();
    }
  }

  put(description) {
    for (const place of this.document.querySelectorAll("[data-fact]")) {
      place.textContent = WORDS[place.dataset.fact](description);
    }
  }
}
