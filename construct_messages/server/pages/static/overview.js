// Keeps the list of streams as it is now: the page is asked for again, and what has changed in it is put in its place.
//
// The server writes it as it does for every reader, with every value escaped; what is taken over runs no script.

const PAUSE = 5000; // milliseconds

/** Keeps an element of the page; returns a function that looks at once. */
export function keepOverview(overview) {
  const look = async () => {
    const page = await pageAt(location.href);
    const fresh = page?.getElementById(overview.id);
    if (fresh) renew(overview, fresh);
  };
  setInterval(() => document.hidden || look(), PAUSE);
  return look;
}

/** The page at a URL, as a document; null where it does not come. */
function pageAt(url) {
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    request.open("GET", url);
    request.responseType = "document";
    request.setRequestHeader("Accept", "text/html");
    request.addEventListener("loadend", () => done(request.status === 200 ? request.response : null));
    request.send();
  });
}

function renew(old, fresh) {
  const ids = (list) => [...list.querySelectorAll(".stream")].map(({ id }) => id);
  if (ids(old).join() !== ids(fresh).join()) {
    if (!old.contains(document.activeElement)) old.replaceChildren(...document.adoptNode(fresh).childNodes);
    return;
  }
  for (const part of [".note", ".named .status", ".rate", ".figures", ".filled > .facts"]) {
    const [places, parts] = [old, fresh].map((list) => [...list.querySelectorAll(part)]);
    if (places.length !== parts.length) continue;
    for (const [index, place] of places.entries()) {
      if (!place.contains(document.activeElement)) place.replaceWith(document.adoptNode(parts[index]));
    }
  }
}
