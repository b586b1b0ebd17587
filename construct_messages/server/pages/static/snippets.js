// A request as a command or program that gets the same messages: text only.

import { LOG_TYPE } from "./log.js";

const DATASET = { "default-graph-uri": "default_graph", "named-graph-uri": "named_graphs" };
const FLAGS = { "default-graph-uri": "--default-graph", "named-graph-uri": "--named-graph" };

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** The Accept header for curl: messages, or the source's answer to other queries. */
export function asCurl(url, query, parameters, type) {
  return [
    "curl --fail-with-body --no-buffer \\",
    `  --header ${quoted(`Accept: ${type}`)} \\`,
    ...[["query", query], ...parameters].map(([name, value]) => `  --data-urlencode ${quoted(`${name}=${value}`)} \\`),
    `  ${quoted(url)}`,
    "",
  ].join("\n");
}

/** A string of Python, or of JavaScript. */
function literal(text) {
  // JSON strings are also strings of Python, except for surrogates, which stay characters
  return JSON.stringify(text).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
}

/** What clients of the package have for parameters: {options, others}; the others are part of the endpoint's URL. */
function sorted(url, parameters) {
  const values = (wanted) => parameters.filter(([name]) => name === wanted).map(([, value]) => value);
  const known = ["group-by", "distinct", "max-messages", "page-size", "lenient", ...Object.keys(DATASET)];
  const others = parameters.filter(([name]) => !known.includes(name));
  return { values, source: others.length ? `${url}?${new URLSearchParams(others)}` : url };
}

function list(values) {
  return `[${values.map(literal).join(", ")}]`;
}

/** The arguments of `construct_messages` after the query, and the names that they need. */
function pythonArguments(url, parameters) {
  const { values, source } = sorted(url, parameters);
  const [maximum, pages] = [values("max-messages"), values("page-size")];
  const dataset = Object.entries(DATASET).filter(([name]) => values(name).length);
  const made = [literal(source)];
  if (values("group-by").length) made.push(`group_by=${list(values("group-by"))}`);
  if (values("distinct").includes("true")) made.push("distinct=True");
  if (maximum.length) made.push(`max_messages=${Number(maximum[0])}`);
  if (values("lenient").includes("true")) made.push("lenient=True");
  if (dataset.length) made.push(`dataset=Dataset(${dataset.map(([name, key]) => `${key}=${list(values(name))}`).join(", ")})`);
  if (pages.length) made.push(`requests=Requests(page_size=${Number(pages[0])})`);
  const names = ["construct_messages"];
  if (pages.length) names.unshift("Requests");
  if (dataset.length) names.unshift("Dataset");
  return { made: made.join(", "), names: names.join(", ") };
}

function pythonQuery(query) {
  return ["query = (", ...query.split("\n").map((line) => `    ${literal(`${line}\n`)}`), ")"];
}

/** A program that prints each message. */
export function asPython(url, query, parameters) {
  const { made, names } = pythonArguments(url, parameters);
  return [
    `from construct_messages import ${names}`,
    "",
    ...pythonQuery(query),
    `for message in construct_messages(query, ${made}):`,
    "    print(len(message), 'quads')",
    "    for quad in message:",
    "        print(quad)",
    "",
  ].join("\n");
}

/** A program that makes a table of the messages on Spark, a row each. */
export function asSpark(url, query, parameters) {
  const { made, names } = pythonArguments(url, parameters);
  return [
    `from construct_messages import ${names}`,
    "from construct_messages.spark import register",
    "from pyspark.sql import SparkSession",
    "",
    ...pythonQuery(query),
    `construct_messages(query, ${made}).write("messages.nq")`,
    "",
    "spark = SparkSession.builder.getOrCreate()",
    "register(spark)",
    'messages = spark.read.format("rdfm").load("messages.nq")',
    'messages.orderBy("file", "block", "ordinal").show(truncate=False)',
    "",
  ].join("\n");
}

/** The command line, with the query on standard input. */
export function asCommand(url, query, parameters, format) {
  const { values, source } = sorted(url, parameters);
  const flags = [
    ...values("group-by").map((name) => `--group-by ${quoted(`?${name}`)}`),
    ...["distinct", "lenient"].filter((name) => values(name).includes("true")).map((name) => `--${name}`),
    ...["max-messages", "page-size"].flatMap((name) => values(name).slice(0, 1).map((value) => `--${name} ${quoted(value)}`)),
    ...Object.entries(FLAGS).flatMap(([name, flag]) => values(name).map((value) => `${flag} ${quoted(value)}`)),
  ];
  let end = "QUERY";
  while (query.split("\n").includes(end)) end += "_END";
  const command = ["construct-messages run -", `--source ${quoted(source)}`, `--format ${quoted(format)}`, ...flags];
  return `${command.join(" ")} <<'${end}'\n${query}\n${end}\n`;
}

/** A program for browsers and Node.js that prints each message as soon as it is complete. */
export function asJavaScript(url, query, parameters) {
  const body = [["query", query], ...parameters].map((pair) => `  [${pair.map(literal).join(", ")}],`);
  return `const body = new URLSearchParams([
${body.join("\n")}
]);
const headers = { Accept: ${literal(LOG_TYPE)} };
const response = await fetch(${literal(url)}, { method: "POST", headers, body });
if (!response.ok) throw new Error(\`\${response.status}: \${await response.text()}\`);

/** The messages of a log in N-Quads, each a list of statements; the line MESSAGE ends each. */
async function* messages(body) {
  let rest = "";
  let statements = [];
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line === "MESSAGE") {
        yield statements;
        statements = [];
      } else if (line !== "" && !/^(?:#|VERSION )/.test(line)) {
        statements.push(line);
      }
    }
  }
  if (statements.length > 0 || rest !== "") throw new Error("the answer was cut");
}

for await (const message of messages(response.body)) {
  console.log(message.length, "quads");
  for (const statement of message) console.log(statement);
}
`;
}
