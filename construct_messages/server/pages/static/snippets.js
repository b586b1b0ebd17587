// The query as a command or program that asks the same: text only.

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** How curl asks for messages, or for whatever the source answers to other queries. */
export function asCurl(url, query, type) {
  return [
    "curl --fail-with-body --no-buffer \\",
    `  --header ${quoted(`Accept: ${type}`)} \\`,
    `  --data-urlencode ${quoted(`query=${query}`)} \\`,
    `  ${quoted(url)}`,
    "",
  ].join("\n");
}

/** A string of Python. */
function python(text) {
  // JSON strings are Python's as well, but for the halves of characters beyond the first plane, which stay characters
  return JSON.stringify(text).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
}

/** A program that prints each message. */
export function asPython(url, query) {
  const lines = query.split("\n").map((line) => `    ${python(`${line}\n`)}`);
  return [
    "from construct_messages import construct_messages",
    "",
    "query = (",
    ...lines,
    ")",
    `for message in construct_messages(query, ${python(url)}):`,
    "    print(len(message), 'quads')",
    "    for quad in message:",
    "        print(quad)",
    "",
  ].join("\n");
}

/** The command line, with the query on standard input. */
export function asCommand(url, query, format) {
  let end = "QUERY";
  while (query.split("\n").includes(end)) end += "_END";
  return `construct-messages run - --source ${quoted(url)} --format ${quoted(format)} <<'${end}'\n${query}\n${end}\n`;
}
