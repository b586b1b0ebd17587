// Prefixes of IRIs: declared, common, and made up from the data where neither fits. Touches no document.
//
// RDF 1.2 Turtle, section 2.4 (IRIs). A shortened IRI is only for display: it may have characters that Turtle escapes.

/** Prefixes that need no declaration to be shown; the server's views read them from here, as JSON.
 *
 *  The IRIs are those of the vocabularies' own documents. The names are those of W3C's initial context of RDFa and those
 *  that prefix.cc ranks first; no file of either is copied. */
export const COMMON_PREFIXES = {
  "as": "https://www.w3.org/ns/activitystreams#",
  "bibo": "http://purl.org/ontology/bibo/",
  "brick": "https://brickschema.org/schema/Brick#",
  "cc": "http://creativecommons.org/ns#",
  "crm": "http://www.cidoc-crm.org/cidoc-crm/",
  "csvw": "http://www.w3.org/ns/csvw#",
  "dbc": "http://dbpedia.org/resource/Category:",
  "dbo": "http://dbpedia.org/ontology/",
  "dbp": "http://dbpedia.org/property/",
  "dbr": "http://dbpedia.org/resource/",
  "dbt": "http://dbpedia.org/resource/Template:",
  "dc": "http://purl.org/dc/elements/1.1/",
  "dcat": "http://www.w3.org/ns/dcat#",
  "dcmitype": "http://purl.org/dc/dcmitype/",
  "dct": "http://purl.org/dc/terms/",
  "doap": "http://usefulinc.com/ns/doap#",
  "dqv": "http://www.w3.org/ns/dqv#",
  "earl": "http://www.w3.org/ns/earl#",
  "edm": "http://www.europeana.eu/schemas/edm/",
  "event": "http://purl.org/NET/c4dm/event.owl#",
  "foaf": "http://xmlns.com/foaf/0.1/",
  "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
  "georss": "http://www.georss.org/georss/",
  "gn": "http://www.geonames.org/ontology#",
  "gr": "http://purl.org/goodrelations/v1#",
  "gsp": "http://www.opengis.net/ont/geosparql#",
  "hydra": "http://www.w3.org/ns/hydra/core#",
  "ldes": "https://w3id.org/ldes#",
  "ldp": "http://www.w3.org/ns/ldp#",
  "locn": "http://www.w3.org/ns/locn#",
  "mo": "http://purl.org/ontology/mo/",
  "oa": "http://www.w3.org/ns/oa#",
  "odrl": "http://www.w3.org/ns/odrl/2/",
  "org": "http://www.w3.org/ns/org#",
  "owl": "http://www.w3.org/2002/07/owl#",
  "p": "http://www.wikidata.org/prop/",
  "prov": "http://www.w3.org/ns/prov#",
  "ps": "http://www.wikidata.org/prop/statement/",
  "qb": "http://purl.org/linked-data/cube#",
  "qudt": "http://qudt.org/schema/qudt/",
  "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
  "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
  "saref": "https://saref.etsi.org/core/",
  "schema": "http://schema.org/",
  "sd": "http://www.w3.org/ns/sparql-service-description#",
  "sdo": "https://schema.org/",
  "sf": "http://www.opengis.net/ont/sf#",
  "sh": "http://www.w3.org/ns/shacl#",
  "sioc": "http://rdfs.org/sioc/ns#",
  "skos": "http://www.w3.org/2004/02/skos/core#",
  "sosa": "http://www.w3.org/ns/sosa/",
  "ssn": "http://www.w3.org/ns/ssn/",
  "time": "http://www.w3.org/2006/time#",
  "tree": "https://w3id.org/tree#",
  "unit": "http://qudt.org/vocab/unit/",
  "vann": "http://purl.org/vocab/vann/",
  "vcard": "http://www.w3.org/2006/vcard/ns#",
  "void": "http://rdfs.org/ns/void#",
  "wd": "http://www.wikidata.org/entity/",
  "wdt": "http://www.wikidata.org/prop/direct/",
  "xsd": "http://www.w3.org/2001/XMLSchema#",
  "yago": "http://dbpedia.org/class/yago/"
};

const LOCAL = /^(?:[\p{L}\p{N}_][\p{L}\p{M}\p{N}_.:%(),'!*&+;=~@$-]*)?$/u;
const SEGMENT = /^[a-z][a-z-]{1,14}$/;
const GENERIC = new Set(["core", "def", "id", "ns", "ontologies", "ontology", "owl", "rdf", "resource", "schema", "terms", "vocab"]);
const MOST = 200; // prefixes that are made up
const MOST_REMEMBERED = 5000; // IRIs
const MOST_WATCHED = 5000; // namespaces of which one name was seen

/** Shortens IRIs by prefixes: {prefix: IRI}. The longest namespace takes precedence, and for one prefix the last table.
 *  */
export class Prefixes {
  constructor(...tables) {
    const byPrefix = new Map();
    for (const table of tables) {
      for (const [prefix, iri] of Object.entries(table)) {
        byPrefix.delete(prefix);
        byPrefix.set(prefix, iri);
      }
    }
    this.names = new Set(byPrefix.keys());
    this.made = new Map(); // by namespace: prefixes that are made up
    this.seen = new Map(); // by namespace: the one local name that was seen
    this.shortened = new Map(); // by IRI: the results
    const last = [...byPrefix].reverse(); // of several prefixes for a namespace the one that was declared last
    this.namespaces = last.filter(([, iri]) => iri !== "").sort(([, a], [, b]) => b.length - a.length);
  }

  /** `ex:name` where a prefix fits and the rest is a simple local name, else null. */
  shorten(iri) {
    let short = this.shortened.get(iri);
    if (short !== undefined) return short;
    short = this.found(iri);
    if (this.shortened.size >= MOST_REMEMBERED) this.shortened.clear();
    this.shortened.set(iri, short);
    return short;
  }

  found(iri) {
    for (const [prefix, namespace] of this.namespaces) {
      if (!iri.startsWith(namespace)) continue;
      const local = iri.slice(namespace.length);
      if (isLocal(local)) return `${prefix}:${local}`;
    }
    const namespace = namespaceOf(iri);
    const prefix = this.made.get(namespace);
    return prefix === undefined ? null : `${prefix}:${iri.slice(namespace.length)}`;
  }

  /** The IRI of a prefixed name; null: its prefix is unknown. */
  expand(name) {
    const colon = name.indexOf(":");
    const declared = this.namespaces.find(([prefix]) => prefix === name.slice(0, colon));
    return declared === undefined ? null : declared[1] + name.slice(colon + 1).replace(/\\(.)/g, "$1");
  }

  /** Whether the name of a prefix that is used holds a text in lower case, or "a" does, which is shown for rdf:type. */
  has(text) {
    return "a".includes(text) || [...this.names].some((name) => name.toLowerCase().includes(text));
  }

  /** Makes a prefix up for the namespace of an IRI that has none.
   *
   *  It is one where two names were seen; `isTerm` says that an IRI names a property or a class, of which one is enough. */
  learn(iri, isTerm = false) {
    if (this.shorten(iri) !== null) return;
    const namespace = namespaceOf(iri);
    const local = iri.slice(namespace.length);
    if (namespace === "" || local === "" || !isLocal(local) || this.made.size >= MOST) return;
    const before = this.seen.get(namespace);
    if (isTerm || (before !== undefined && before !== local)) {
      this.seen.delete(namespace);
      this.made.set(namespace, this.nameOf(namespace));
      this.shortened.clear();
    } else if (this.seen.size < MOST_WATCHED) {
      this.seen.set(namespace, local);
    }
  }

  nameOf(namespace) {
    const name = wordOf(namespace);
    let made = name;
    for (let number = 2; this.names.has(made); number += 1) made = `${name}${number}`;
    this.names.add(made);
    return made;
  }
}

function isLocal(text) {
  return LOCAL.test(text) && !text.endsWith(".");
}

/** An IRI up to its last `#` or `/`; empty where that is not in its path. */
function namespaceOf(iri) {
  const [start] = /^[a-z][a-z0-9+.-]*:\/\/[^/]*\/|^urn:[^:]*:/i.exec(iri) ?? [null];
  if (start === null) return "";
  const end = Math.max(iri.lastIndexOf("#"), iri.lastIndexOf("/"), start.length - 1);
  return iri.slice(0, end + 1);
}

/** A word for a namespace: the last meaningful part of its path, or else of its host. */
function wordOf(namespace) {
  const [, host = "", path = ""] = /^[^:]*:\/\/([^/:]*)[^/]*(.*)$/.exec(namespace) ?? ["", "", namespace.slice(4)];
  const segments = path.toLowerCase().split(/[/#:]/).map((segment) => segment.replace(/\.(?:owl|rdf|ttl)$/, ""));
  const found = segments.reverse().find((segment) => SEGMENT.test(segment) && !GENERIC.has(segment));
  if (found !== undefined) return found;
  const labels = host.split(".").filter((label) => SEGMENT.test(label) && label !== "www");
  return labels.slice(0, -1).reduce((longest, label) => (label.length > longest.length ? label : longest), "") || "ns";
}
