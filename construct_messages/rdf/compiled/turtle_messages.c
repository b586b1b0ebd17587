/* Reads whole messages of Turtle and TriG that consist of the usual statements.
 *
 * Beside logs/turtle/decoder.py. Collections, anonymous nodes, triple terms, relative IRIs, escapes by number, strings in
 * single quotes, new prefixes and errors are left to pyoxigraph. RDF 1.2 Turtle, section 6.5; RDF 1.2 TriG, section
 * 4.5; RDF Messages, section 3.
 */

#include "wire.h"

#define XSD "http://www.w3.org/2001/XMLSchema#"
#define TYPE "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

enum {
    LONGEST_NAMESPACE = 256,  /* each name with it becomes as long: a few bytes must not make terms of many */
    LOOKED_UP = 32,
};

/* A prefix that was looked up, by its bytes in the text, and its namespace. */
typedef struct {
    const byte *start;
    size_t size;
    PyObject *iri;
    const char *bytes;
    Py_ssize_t length;
} Prefix;

typedef struct {
    bool graphs, by_comment, has_blanks;
    PyObject *prefixes, *type, *graph;    /* the graph that is open; NULL: none is */
    Py_ssize_t characters, most;          /* of the open message, as N-Quads */
    PyObject **terms;                     /* of the open message */
    size_t count, allocated;
    Buffer made;                          /* a term that is not in the text as it is */
    Prefix looked_up[LOOKED_UP];
    Known known;
} Reader;

/* A function that reads returns the end of what it read; NULL: it is not known here, or there is an exception. */

static bool is_white(byte character)
{
    return character == ' ' || character == '\n' || character == '\t' || character == '\r';
}

static const byte *white_end(const byte *at)
{
    while (is_white(*at))
        at++;
    return at;
}

/* --- comments ----------------------------------------------------------------------------------------------------- */

static bool begins(const byte *at, const char *word)
{
    return strncmp((const char *)at, word, strlen(word)) == 0;
}

/* Whether a comment delimits messages: 1 or 0; -1 where other white space than that of Turtle decides it. */
static int is_delimiter(const Reader *reader, const byte *comment)
{
    if (!reader->by_comment)
        return 0;
    const byte *at = comment + 1;
    while (*at == ' ' || *at == '\t')
        at++;
    return *at >= 0x80 || (*at < ' ' && *at != '\n' && *at != '\r') ? -1 : begins(at, "@message");
}

/* Where the line of a comment ends. */
static const byte *comment_end(const byte *at)
{
    while (at && *at != '\n' && *at != '\r')
        at = *at >= 0x80 ? character_end(at) : *at ? at + 1 : NULL;
    return at;
}

/* What follows white space and comments; a comment that delimits messages or is not known is what follows. */
static const byte *space_end(const Reader *reader, const byte *at)
{
    for (;;) {
        at = white_end(at);
        const byte *end = *at == '#' && is_delimiter(reader, at) == 0 ? comment_end(at) : NULL;
        if (!end)
            return at;
        at = end;
    }
}

/* --- terms that are made ------------------------------------------------------------------------------------------ */

static bool add_text(Buffer *made, const char *text)
{
    return add(made, text, strlen(text));
}

/* Where the prefix of a name ends, at its colon. */
static const byte *prefix_end(const byte *at)
{
    while (at && *at != ':')
        at = *at >= 0x80 ? character_end(at) : is(*at, LABEL_CHAR) ? at + 1 : NULL;
    return at;
}

/* The namespace of a prefix; NULL: it has none that is known here. */
static const Prefix *look_up(Reader *reader, const byte *start, size_t size)
{
    Prefix *prefix = &reader->looked_up[(size * 7 + (size ? start[size - 1] + start[0] * 3u : 0)) % LOOKED_UP];
    if (prefix->iri && prefix->size == size && memcmp(prefix->start, start, size) == 0)
        return prefix;
    PyObject *name = text_of(start, start + size);
    PyObject *iri = name ? PyDict_GetItemWithError(reader->prefixes, name) : NULL;
    Py_XDECREF(name);
    Py_ssize_t length;
    const char *bytes = iri && PyUnicode_Check(iri) ? PyUnicode_AsUTF8AndSize(iri, &length) : NULL;
    if (!bytes || length > LONGEST_NAMESPACE)
        return NULL;
    Py_XDECREF(prefix->iri);
    *prefix = (Prefix){start, size, Py_NewRef(iri), bytes, length};
    return prefix;
}

/* Adds the IRI of a name with a colon there to what is made. */
static const byte *expand(Reader *reader, const byte *start, const byte *colon)
{
    const Prefix *prefix = colon ? look_up(reader, start, (size_t)(colon - start)) : NULL;
    if (!prefix)
        return NULL;
    const byte *end = local_end(colon + 1);
    Buffer *made = &reader->made;
    size_t before = made->size;
    if (!add_text(made, "<") || !add(made, prefix->bytes, (size_t)prefix->length) ||
        !add(made, colon + 1, (size_t)(end - colon - 1)) || !add(made, ">", 2))
        return NULL;
    made->size--;  /* the NUL ends the scan */
    return iri_term_end(made->start + before) == made->start + made->size ? end : NULL;
}

/* What is made as a term; it is known by its text from then on. */
static bool finish(Reader *reader, const byte *start, const byte *end, PyObject **term)
{
    *term = text_of(reader->made.start, reader->made.start + reader->made.size);
    if (*term)
        keep_term(&reader->known, start, end, *term);
    return *term;
}

/* --- terms -------------------------------------------------------------------------------------------------------- */

/* Where a name ends that was made before, or is now. */
static const byte *name(Reader *reader, const byte *start, PyObject **term)
{
    const byte *colon = prefix_end(start);
    if (!colon)
        return NULL;
    const byte *end = local_end(colon + 1);
    if ((*term = find_term(&reader->known, start, end)))
        return end;
    reader->made.size = 0;
    return expand(reader, start, colon) && finish(reader, start, end, term) ? end : NULL;
}

/* An IRI, a name or a blank node, and nothing that may belong to it after it. */
static const byte *node(Reader *reader, const byte *start, PyObject **term)
{
    const byte *end;
    if (*start == '<' || *start == '_') {
        end = *start == '<' ? iri_term_end(start) : blank_end(start);
        if (!end || !(*term = known_term(&reader->known, start, end)))
            return NULL;
        reader->has_blanks |= *start == '_';
    } else if (!(end = name(reader, start, term))) {
        return NULL;
    }
    if (is_white(*end) || *start == '<' || (*end && strchr("<\"{},;.#", *end)))
        return end;
    Py_CLEAR(*term);
    return NULL;
}

static const byte *digits_end(const byte *at)
{
    while (is(*at, DIGIT))
        at++;
    return at;
}

static const byte *number(Reader *reader, const byte *start, PyObject **term)
{
    const char *type = "\"^^<" XSD "integer>";
    const byte *digits = start + (*start == '-' || *start == '+'), *end = digits_end(digits);
    if (end == digits)
        return NULL;
    if (*end == '.' && is(end[1], DIGIT)) {
        end = digits_end(end + 1);
        type = "\"^^<" XSD "decimal>";
    }
    if (*end == 'e' || *end == 'E') {
        digits = end + 1 + (end[1] == '-' || end[1] == '+');
        end = digits_end(digits);
        if (end == digits)
            return NULL;
        type = "\"^^<" XSD "double>";
    }
    if ((*term = find_term(&reader->known, start, end)))
        return end;
    reader->made.size = 0;
    bool made = add_text(&reader->made, "\"") && add(&reader->made, start, (size_t)(end - start)) &&
                add_text(&reader->made, type);
    return made && finish(reader, start, end, term) ? end : NULL;
}

/* Adds a string in quotes or three quotes to what is made, in canonical form, for which it must be changed. */
static const byte *rewritten(Reader *reader, const byte *at)
{
    Buffer *made = &reader->made;
    bool is_long = at[1] == '"' && at[2] == '"';
    at += is_long ? 3 : 1;
    if (!add_text(made, "\""))
        return NULL;
    for (;;) {
        const byte *start = at;
        while (is(*at, TEXT_CHAR))
            at++;
        if (!add(made, start, (size_t)(at - start)))
            return NULL;
        if (*at == '"' && (!is_long || (at[1] == '"' && at[2] == '"')))
            return add_text(made, "\"") ? at + (is_long ? 3 : 1) : NULL;
        const char *escape = *at == '\t' ? "\\t" : !is_long ? NULL : *at == '"' ? "\\\"" : *at == '\n' ? "\\n" :
                             *at == '\r' ? "\\r" : NULL;
        const byte *end = *at >= 0x80 ? character_end(at) : NULL;
        if (*at == '\\' && at[1] && strchr("tbnrf\"\\", at[1]))
            end = at + 2;
        if (*at == '\\' && at[1] == '\'') {
            escape = "'";
            at++;
        }
        if (escape ? !add_text(made, escape) : !end || !add(made, at, (size_t)(end - at)))
            return NULL;
        at = escape ? at + 1 : end;
    }
}

/* Adds the language or datatype there to what is made, in canonical form; nothing for the datatype of plain strings. */
static const byte *suffix(Reader *reader, const byte *at)
{
    static const char plain[] = "^^<" XSD "string>";
    Buffer *made = &reader->made;
    size_t before = made->size;
    const byte *end = at;
    if (*at == '@') {
        do
            end++;
        while (is(*end, LETTER | DIGIT) || *end == '-');
        if (!add(made, at, (size_t)(end - at)) || !add(made, "", 1))
            return NULL;
        made->size--;  /* the NUL ends the scan */
        for (byte *each = made->start + before; *each; each++)
            if ('A' <= *each && *each <= 'Z')
                *each += 'a' - 'A';
    } else if (at[0] == '^' && at[1] == '^') {
        if (!add_text(made, "^^"))
            return NULL;
        end = at[2] == '<' ? iri_term_end(at + 2) : expand(reader, at + 2, prefix_end(at + 2));
        if (!end || (at[2] == '<' && !add(made, at + 2, (size_t)(end - at - 2))))
            return NULL;
        if (made->size - before == strlen(plain) && memcmp(made->start + before, plain, strlen(plain)) == 0) {
            made->size = before;
            return end;
        }
    } else {
        return at;
    }
    return suffix_end(made->start + before) == made->start + made->size ? end : NULL;
}

static const byte *literal(Reader *reader, const byte *start, PyObject **term)
{
    const byte *quoted = string_end(start), *end = NULL;
    bool is_canonical = quoted && *quoted != '"';  /* otherwise it may have three quotes */
    if (is_canonical && (*quoted != '^' || quoted[1] != '^' || quoted[2] == '<'))
        end = suffix_end(quoted);
    if (end)
        return (*term = known_term(&reader->known, start, end)) ? end : NULL;
    reader->made.size = 0;
    if (!is_canonical)
        quoted = rewritten(reader, start);
    else if (!add(&reader->made, start, (size_t)(quoted - start)))
        return NULL;
    if (!quoted || !(end = suffix(reader, quoted)))
        return NULL;
    if ((*term = find_term(&reader->known, start, end)))
        return end;
    return finish(reader, start, end, term) ? end : NULL;
}

static const byte *boolean(const byte *start, PyObject **term)
{
    bool value = *start == 't';
    const byte *end = start + (value ? 4 : 5);
    if (is(*end, LABEL_CHAR) && *end != '.')
        return NULL;
    *term = PyUnicode_FromString(value ? "\"true\"^^<" XSD "boolean>" : "\"false\"^^<" XSD "boolean>");
    return *term ? end : NULL;
}

static const byte *object(Reader *reader, const byte *start, PyObject **term)
{
    if (*start == '"')
        return literal(reader, start, term);
    if (is(*start, DIGIT) || *start == '-' || *start == '+')
        return number(reader, start, term);
    const byte *end = node(reader, start, term);
    return end || PyErr_Occurred() || !(begins(start, "true") || begins(start, "false")) ? end : boolean(start, term);
}

static const byte *verb(Reader *reader, const byte *start, PyObject **term)
{
    if (*start == '_')
        return NULL;
    if (*start == 'a' && is_white(start[1])) {
        *term = Py_NewRef(reader->type);
        return start + 1;
    }
    return node(reader, start, term);
}

/* --- statements --------------------------------------------------------------------------------------------------- */

/* Adds a quad to the open message; takes the reference of the object. */
static bool add_quad(Reader *reader, PyObject *subject, PyObject *predicate, PyObject *object)
{
    PyObject *quad[] = {subject, predicate, object, reader->graph ? reader->graph : Py_None};
    if (reader->allocated - reader->count < 4) {
        size_t more = 2 * reader->allocated + 64;
        PyObject **terms = PyMem_Realloc(reader->terms, more * sizeof *terms);
        if (!terms) {
            Py_DECREF(object);
            PyErr_NoMemory();
            return false;
        }
        reader->terms = terms;
        reader->allocated = more;
    }
    for (int part = 0; part < 4; part++) {
        reader->terms[reader->count++] = part == 2 ? object : Py_NewRef(quad[part]);
        if (quad[part] != Py_None)
            reader->characters += PyUnicode_GetLength(quad[part]) + 1;
    }
    return reader->characters <= reader->most;
}

/* The predicates and objects of a subject, before the dot or the brace after them. */
static const byte *properties(Reader *reader, const byte *at, PyObject *subject)
{
    for (;;) {
        PyObject *predicate;
        if (!(at = verb(reader, space_end(reader, at), &predicate)))
            return NULL;
        do {
            PyObject *value;
            at = object(reader, space_end(reader, at), &value);
            if (!at || !add_quad(reader, subject, predicate, value)) {
                Py_DECREF(predicate);
                return NULL;
            }
            at = space_end(reader, at);
        } while (*at == ',' && at++);
        Py_DECREF(predicate);
        if (*at != ';')
            return at;
        at = space_end(reader, at + 1);
        if (*at == '.')
            return at;
    }
}

/* A declaration of a prefix that is declared already. */
static const byte *declaration(Reader *reader, const byte *at)
{
    bool dotted = *at == '@';
    const byte *start = white_end(at + (dotted ? strlen("@prefix") : strlen("PREFIX")));
    const byte *colon = prefix_end(start);
    const Prefix *prefix = colon ? look_up(reader, start, (size_t)(colon - start)) : NULL;
    at = prefix ? white_end(colon + 1) : NULL;
    if (!at || *at != '<' || strncmp((const char *)at + 1, prefix->bytes, (size_t)prefix->length) != 0)
        return NULL;
    at += prefix->length + 1;
    if (*at++ != '>')
        return NULL;
    if (!dotted)
        return at;
    at = white_end(at);
    return *at == '.' ? at + 1 : NULL;
}

/* A statement, a declaration, or the beginning or end of a graph. */
static const byte *statement(Reader *reader, const byte *at)
{
    if (*at == '}' && reader->graph) {
        Py_CLEAR(reader->graph);
        return at + 1;
    }
    bool may_open = reader->graphs && !reader->graph;
    if (*at == '{' && may_open) {
        reader->graph = Py_NewRef(Py_None);
        return at + 1;
    }
    if ((begins(at, "PREFIX") && is_white(at[6])) || (begins(at, "@prefix") && is_white(at[7])))
        return reader->graph ? NULL : declaration(reader, at);
    bool opens = may_open && begins(at, "GRAPH") && (is_white(at[5]) || at[5] == '<');
    PyObject *subject;
    if (!(at = node(reader, opens ? white_end(at + 5) : at, &subject)))
        return NULL;
    at = space_end(reader, at);
    if (may_open && *at == '{') {
        reader->graph = subject;
        return at + 1;
    }
    at = opens ? NULL : properties(reader, at, subject);
    Py_DECREF(subject);
    if (at && *at == '.')
        return is_white(at[1]) || (at[1] == '}' && reader->graph) ? at + 1 : NULL;
    return at && *at == '}' && reader->graph ? at : NULL;
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

/* Where the delimiter ends that begins there. */
static const byte *delimiter_end(const Reader *reader, const byte *at)
{
    if (reader->by_comment)
        return *at == '#' && is_delimiter(reader, at) == 1 ? comment_end(at) : NULL;
    return begins(at, "MESSAGE") && is_white(at[7]) ? at + 7 : NULL;
}

static bool add_message(Reader *reader, PyObject *messages)
{
    PyObject *message = PyList_New((Py_ssize_t)reader->count);
    if (!message)
        return false;
    for (size_t i = 0; i < reader->count; i++)
        PyList_SetItem(message, (Py_ssize_t)i, reader->terms[i]);
    reader->count = 0;
    reader->characters = 0;
    return append(messages, message);
}

/* Reads messages with their delimiters, as many as are known, and returns where they end. */
static const byte *read_messages(Reader *reader, const byte *at, PyObject *messages)
{
    const byte *end = at;
    while (at) {
        at = space_end(reader, at);
        const byte *next = reader->graph ? NULL : delimiter_end(reader, at);
        if (!next)
            at = statement(reader, at);
        else if (add_message(reader, messages))
            at = end = next;
        else
            at = NULL;
    }
    return end;
}

PyObject *turtle_messages(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *text, *messages, *result = NULL;
    char *start;
    Py_ssize_t size;
    int graphs, by_comment;
    Reader reader = {0};
    if (!PyArg_ParseTuple(arguments, "SO!ppn:turtle_messages", &text, &PyDict_Type, &reader.prefixes, &graphs,
                          &by_comment, &reader.most) ||
        PyBytes_AsStringAndSize(text, &start, &size) < 0)
        return NULL;
    reader.graphs = graphs;
    reader.by_comment = by_comment;
    reader.type = PyUnicode_FromString(TYPE);
    messages = PyList_New(0);
    if (reader.type && messages) {
        const byte *end = read_messages(&reader, (const byte *)start, messages);
        if (!PyErr_Occurred())
            result = Py_BuildValue("OnO", messages, (Py_ssize_t)(end - (const byte *)start),
                                   reader.has_blanks ? Py_True : Py_False);
    }
    Py_XDECREF(messages);
    Py_XDECREF(reader.type);
    Py_XDECREF(reader.graph);
    for (size_t i = 0; i < reader.count; i++)
        Py_DECREF(reader.terms[i]);
    for (size_t i = 0; i < LOOKED_UP; i++)
        Py_XDECREF(reader.looked_up[i].iri);
    PyMem_Free(reader.terms);
    PyMem_Free(reader.made.start);
    forget(&reader.known);
    return result;
}
