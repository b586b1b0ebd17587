// The streams section: the streams of the server.

/** Shows the section; `path` is what stands behind `#streams` in the fragment, without its slash. */
export async function showStreams(section, server, path) {
  section.textContent = `${server.streams} ${path}`;
}
