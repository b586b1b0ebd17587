/* Reads the statements of Turtle and TriG, and the messages that delimiters make of them.
 *
 * Beside logs/turtle/decoder.py. Errors are left to pyoxigraph, and what is rare: reifiers and annotations, labels and
 * prefixes of other characters, nodes deep in each other. RDF 1.2 Turtle, section 6.5; RDF 1.2 TriG, section 4.5; RFC
 * 3986, section 5.2; RDF Messages, section 3.
 */

#include "wire.h"

#define XSD "http://www.w3.org/2001/XMLSchema#"
#define RDF "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

enum {
    LONGEST_NAMESPACE = 256,  /* each name with it becomes as long: a few bytes must not make terms of many */
    LOOKED_UP = 32,
    DEEPEST = 64,             /* of nodes in each other */
};

/* A prefix that was looked up, by its bytes in the text, and its namespace. */
typedef struct {
    const byte *start;
    PyObject *iri;
    size_t size;
    const char *bytes;
    Py_ssize_t length;
} Prefix;

enum { TYPE, FIRST, REST, NIL, WORDS };

typedef struct {
    int graphs, delimited, by_comment, restricted;  /* whether they are */
    PyObject *prefixes, *declared, *in_message, *in_log, *mend;
    PyObject *words[WORDS];
    PyObject *base;                       /* text, or None */
    const char *base_start;               /* NULL: nothing is resolved against it */
    size_t base_scheme, base_authority, base_path, base_query;  /* where these parts of it end */
    PyObject *graph;                      /* the graph that is open; NULL: none is */
    PyObject *names;                      /* labels of the open message by those of its text; NULL: there are none yet */
    Py_ssize_t number;                    /* of the open message */
    Py_ssize_t characters, most, least;   /* of the open message, as N-Quads; the maxima, now and of the next ones */
    PyObject **terms;                     /* of the open message */
    size_t count, allocated;
    int depth;
    Buffer made;                          /* a term that is not in the text as it is */
    Prefix looked_up[LOOKED_UP];
    Known known;
} Reader;

/* A function that reads returns the end of what it read; NULL: it is not known here, or there is an exception. */

static bool is_white(byte character)
{
    return character == ' ' || character == '\n' || character == '\t' || character == '\r';
}

static bool begins(const byte *at, const char *word)
{
    return strncmp((const char *)at, word, strlen(word)) == 0;
}

static bool is_long(const byte *at)
{
    return at[1] == *at && at[2] == *at;
}

static const byte *white_end(const byte *at)
{
    for (; is_white(*at); at++)
        ;
    return at;
}

/* Where a keyword ends, with its letters in either case. */
static const byte *keyword_end(const byte *at, const char *word)
{
    for (; *word; at++, word++)
        if ((*at | 0x20) != *word)
            return NULL;
    return is_white(*at) || *at == '#' || *at == '<' ? at : NULL;
}

/* --- comments ----------------------------------------------------------------------------------------------------- */

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

/* --- IRIs and names ----------------------------------------------------------------------------------------------- */

static bool add_text(Buffer *made, const char *text)
{
    return add(made, text, strlen(text));
}

/* Ends what is made with a NUL that is no part of it, which ends a scan. */
static bool end_scan(Buffer *made)
{
    return add(made, "", 1) && made->size--;
}

/* The character of an escape that terms have unescaped; 0: another one. */
static uint32_t unescaped(const byte *at, const byte **end)
{
    uint32_t code = escaped(at, end);
    bool is_other = code == 0x7F || code == 0xFFFE || code == 0xFFFF || (code < ' ' && !short_escapes[code]);
    return is_other ? 0 : code;
}

/* Adds what Python makes of an IRI in brackets or a language after its at sign; false: it is malformed, or an error. */
static bool add_mended(Reader *reader, const byte *start, const byte *end)
{
    Py_ssize_t size;
    PyObject *text = text_of(start, end);
    PyObject *found = text ? PyObject_CallFunctionObjArgs(reader->mend, text, NULL) : none_if(PyExc_UnicodeDecodeError);
    const char *bytes = found && found != Py_None ? PyUnicode_AsUTF8AndSize(found, &size) : NULL;
    bool done = bytes && add(&reader->made, bytes, (size_t)size);
    Py_XDECREF(text);
    Py_XDECREF(found);
    return done;
}

/* Ends what was made from there on, which has to be an IRI in brackets. */
static bool end_iri(Reader *reader, size_t before)
{
    Buffer *made = &reader->made;
    if (!add_text(made, ">") || !end_scan(made))
        return false;
    const byte *start = made->start + before, *end = made->start + made->size;
    if (iri_term_end(start) == end)
        return true;
    made->size = before;
    return add_mended(reader, start, end);
}

/* Takes the parts of the base apart. */
static bool take_base(Reader *reader, PyObject *base)
{
    Py_ssize_t length;
    Py_XDECREF(reader->base);
    reader->base = Py_NewRef(base);
    reader->base_start = NULL;
    if (base == Py_None)
        return true;
    const char *start = PyUnicode_AsUTF8AndSize(base, &length);
    if (!start)
        return false;
    const char *at = strchr(start, ':');
    if (length > LONGEST_NAMESPACE || strlen(start) != (size_t)length || !at)
        return true;
    reader->base_scheme = (size_t)(++at - start);
    at += begins((const byte *)at, "//") ? 2 + strcspn(at + 2, "/?#") : 0;
    reader->base_authority = (size_t)(at - start);
    reader->base_path = reader->base_authority + strcspn(at, "?#");
    reader->base_query = reader->base_path + strcspn(start + reader->base_path, "#");
    reader->base_start = start;
    return true;
}

/* Drops the last segment of a path, after its slash: all of them end with one then. */
static bool drop_segment(Buffer *made, size_t path)
{
    for (; made->size > path && made->start[made->size - 1] != '/'; made->size--)
        ;
    return made->size > path || add_text(made, "/");
}

static bool ends_with(const Buffer *made, size_t from, const char *end, size_t size)
{
    return made->size - from >= size && memcmp(made->start + made->size - size, end, size) == 0;
}

/* Adds the path of a reference after the base's, and what follows it. */
static bool add_path(Buffer *made, size_t path, const byte *at, const byte *end)
{
    if (*at == '/')
        at++;
    for (;;) {
        size_t size = strcspn((const char *)at, "/?#>");
        if (!add(made, at, size))
            return false;
        at += size;
        if (ends_with(made, path, "/..", 3)) {
            made->size -= 3;
            if (!drop_segment(made, path))
                return false;
        } else if (ends_with(made, path, "/.", 2)) {
            made->size--;
        } else if (*at == '/' && !add_text(made, "/")) {
            return false;
        }
        if (*at != '/')
            return add(made, at, (size_t)(end - at));
        at++;
    }
}

/* Adds a reference, of characters that an IRI has after its authority, resolved against the base; `>` follows it. */
static bool add_resolved(Reader *reader, const byte *start, const byte *end)
{
    Buffer *made = &reader->made;
    size_t before = made->size, path = before + 1 + reader->base_authority;
    bool has_authority = begins(start, "//"), has_path = start < end && *start != '?' && *start != '#' && !has_authority;
    if (!reader->base_start || (has_path && reader->base_authority == reader->base_scheme))
        return false;
    if (has_path && memchr(start, ':', strcspn((const char *)start, "/?#>")))
        return false;  /* another scheme, or none that a reference may begin with */
    size_t kept = start == end || *start == '#' ? reader->base_query : *start == '?' ? reader->base_path :
                  has_authority ? reader->base_scheme : *start == '/' ? reader->base_authority : reader->base_path;
    if (!add_text(made, "<") || !add(made, reader->base_start, kept))
        return false;
    if (!has_path ? !add(made, start, (size_t)(end - start)) :
        !(*start == '/' ? add_text(made, "/") : drop_segment(made, path)) || !add_path(made, path, start, end))
        return false;
    return end_iri(reader, before);
}

/* Adds an IRI in angle brackets to what is made: absolute, and without escapes. */
static const byte *add_iri(Reader *reader, const byte *start)
{
    const byte *end = iri_term_end(start), *at = start + 1;
    if (end)
        return add(&reader->made, start, (size_t)(end - start)) ? end : NULL;
    while (is(*at, SCHEME_CHAR))
        at++;
    end = start + strcspn((const char *)start, ">");
    if (*end == '>' && *at == ':' && is(start[1], LETTER))  /* with escapes, a user, an address, … */
        return add_mended(reader, start, end + 1) ? end + 1 : NULL;
    return *end == '>' && iri_part_end(start + 1) == end && add_resolved(reader, start + 1, end) ? end + 1 : NULL;
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
    *prefix = (Prefix){start, Py_NewRef(iri), size, bytes, length};
    return prefix;
}

/* Adds a local name, without the backslashes of its escapes. */
static const byte *add_local(Buffer *made, const byte *start)
{
    for (const byte *at = start;;) {
        const byte *end = local_run_end(at, at == start);
        if (*end != '\\') {
            while (end > at && end[-1] == '.')
                end--;
            return add(made, at, (size_t)(end - at)) ? end : NULL;
        }
        if (!end[1] || !strchr("_~.-!$&'()*+,;=/?#@%", end[1]) || !add(made, at, (size_t)(end - at)) ||
            !add(made, end + 1, 1))
            return NULL;
        at = end + 2;
    }
}

/* Adds the IRI of a name with a colon there to what is made. */
static const byte *expand(Reader *reader, const byte *start, const byte *colon)
{
    const Prefix *prefix = colon ? look_up(reader, start, (size_t)(colon - start)) : NULL;
    Buffer *made = &reader->made;
    size_t before = made->size;
    if (!prefix || !add_text(made, "<") || !add(made, prefix->bytes, (size_t)prefix->length))
        return NULL;
    const byte *end = add_local(made, colon + 1);
    return end && end_iri(reader, before) ? end : NULL;
}

/* What is made as a term; it is known by its text from then on. */
static bool finish(Reader *reader, const byte *start, const byte *end, PyObject **term)
{
    *term = text_of(reader->made.start, reader->made.start + reader->made.size);
    if (*term)
        keep_term(&reader->known, start, end, *term);
    return *term;
}

/* Where a name ends that was made before, or is now. */
static const byte *name(Reader *reader, const byte *start, PyObject **term)
{
    const byte *colon = prefix_end(start);
    if (!colon)
        return NULL;
    const byte *end = local_end(colon + 1);
    if (*end != '\\' && (*term = find_term(&reader->known, start, end)))
        return end;
    reader->made.size = 0;
    end = expand(reader, start, colon);
    return end && finish(reader, start, end, term) ? end : NULL;
}

static const byte *iri(Reader *reader, const byte *start, PyObject **term)
{
    const byte *end = iri_term_end(start);
    if (end)
        return (*term = known_term(&reader->known, start, end)) ? end : NULL;
    end = start + strcspn((const char *)start, ">");
    if (*end == '>' && (*term = find_term(&reader->known, start, end + 1)))
        return end + 1;
    reader->made.size = 0;
    end = add_iri(reader, start);
    return end && finish(reader, start, end, term) ? end : NULL;
}

/* --- blank nodes -------------------------------------------------------------------------------------------------- */

static Py_ssize_t count_names(const Reader *reader)
{
    return reader->names ? PyObject_Size(reader->names) : 0;
}

static bool has_names(Reader *reader)
{
    return reader->names || (reader->names = PyObject_CallFunction(reader->in_message, "n", reader->number));
}

/* The label of a blank node of this message, by its label there. */
static PyObject *in_message(Reader *reader, PyObject *label)
{
    return label && has_names(reader) ? PyObject_GetItem(reader->names, label) : NULL;
}

/* A new node without a label, entered by a number, as MessageLabels enters labels. */
static bool new_node(Reader *reader, PyObject **term)
{
    if (!has_names(reader))
        return false;
    PyObject *key = PyLong_FromSsize_t(count_names(reader)), *stem = PyObject_GetAttrString(reader->names, "stem");
    *term = key && stem ? PyUnicode_FromFormat("%S%S", stem, key) : NULL;
    if (*term && PyDict_SetItem(reader->names, key, *term) < 0)
        Py_CLEAR(*term);
    Py_XDECREF(stem);
    Py_XDECREF(key);
    return *term;
}

/* A node with a label, which is one in the message or in the whole log. */
static const byte *blank(Reader *reader, const byte *start, PyObject **term)
{
    const byte *end = blank_end(start);
    if (!end || (reader->in_log != Py_None && (*term = find_term(&reader->known, start, end))))
        return end;
    PyObject *label = reader->in_log == Py_None ? known_term(&reader->known, start, end) : text_of(start, end);
    *term = !label || reader->in_log == Py_None ? in_message(reader, label) :
                                                  PyObject_CallFunctionObjArgs(reader->in_log, label, NULL);
    Py_XDECREF(label);
    if (*term && reader->in_log != Py_None)
        keep_term(&reader->known, start, end, *term);
    return *term ? end : NULL;
}

/* An IRI, a name or a blank node, and nothing that may belong to it after it. */
static const byte *node(Reader *reader, const byte *start, PyObject **term)
{
    const byte *end = *start == '<' ? iri(reader, start, term) : *start == '_' && start[1] == ':' ?
                      blank(reader, start, term) : name(reader, start, term);
    if (!end || *start == '<' || is_white(*end) || (*end && strchr("<>\"'{}[](),;.#|~", *end)))
        return end;
    Py_CLEAR(*term);
    return NULL;
}

/* --- literals ----------------------------------------------------------------------------------------------------- */

static const byte *number(Reader *reader, const byte *start, PyObject **term)
{
    const char *type = "\"^^<" XSD "integer>";
    const byte *digits = start + (*start == '-' || *start == '+'), *end = digits_end(digits);
    bool has_digits = end > digits, has_point = *end == '.' && (is(end[1], DIGIT) || (has_digits && (end[1] | 0x20) == 'e'));
    if (has_point) {
        end = digits_end(end + 1);
        type = "\"^^<" XSD "decimal>";
    } else if (!has_digits) {
        return NULL;
    }
    if ((*end | 0x20) == 'e') {
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

/* Adds a string in quotes of any kind to what is made, in canonical form, for which it must be changed. */
static const byte *rewritten(Reader *reader, const byte *at)
{
    Buffer *made = &reader->made;
    byte quote = *at;
    bool over_lines = is_long(at);
    at += over_lines ? 3 : 1;
    if (!add_text(made, "\""))
        return NULL;
    for (;;) {
        const byte *start = at, *end;
        while (is(*at, TEXT_CHAR) && *at != quote)
            at++;
        if (!add(made, start, (size_t)(at - start)))
            return NULL;
        if (*at == quote && (!over_lines || is_long(at)))
            return add_text(made, "\"") ? at + (over_lines ? 3 : 1) : NULL;
        uint32_t code = *at;
        if (*at >= 0x80)
            code = character_end(at) ? character(at, &end) : 0;
        else if (*at == '\\')
            code = unescaped(at, &end);
        else if (*at == '\n' || *at == '\r' ? !over_lines : *at != '\t' && *at != quote && *at != '"')
            return NULL;
        else
            end = at + 1;
        if (!code || !add_in_literal(made, code))
            return NULL;
        at = end;
    }
}

/* Adds the language there to what is made, in lower case, and its base direction. */
static const byte *language(Reader *reader, const byte *at)
{
    Buffer *made = &reader->made;
    size_t before = made->size;
    const byte *end = at + 1;
    while (is(*end, LETTER | DIGIT) || *end == '-')
        end++;
    const byte *tag = end - at > 6 && (begins(end - 5, "--ltr") || begins(end - 5, "--rtl")) ? end - 5 : end;
    if ((tag < end && reader->restricted) || !add(made, at, (size_t)(tag - at)) || !end_scan(made))
        return NULL;
    for (byte *each = made->start + before; *each; each++)
        if ('A' <= *each && *each <= 'Z')
            *each += 'a' - 'A';
    const byte *lower = made->start + before, *limit = made->start + made->size;
    if (suffix_end(lower) != limit) {
        made->size = before;
        if (!add_mended(reader, lower, limit))
            return NULL;
    }
    return add(made, tag, (size_t)(end - tag)) ? end : NULL;
}

/* Adds the language or datatype there to what is made, in canonical form; nothing for the datatype of plain strings. */
static const byte *suffix(Reader *reader, const byte *at)
{
    static const char plain[] = "^^<" XSD "string>";
    Buffer *made = &reader->made;
    size_t before = made->size;
    if (*at == '@')
        return language(reader, at);
    if (at[0] != '^' || at[1] != '^')
        return at;
    if (!add_text(made, "^^"))
        return NULL;
    const byte *end = at[2] == '<' ? add_iri(reader, at + 2) : expand(reader, at + 2, prefix_end(at + 2));
    if (!end || !end_scan(made))
        return NULL;
    if (made->size - before == strlen(plain) && memcmp(made->start + before, plain, strlen(plain)) == 0) {
        made->size = before;
        return end;
    }
    const byte *limit = made->start + made->size, *datatype = made->start + before;
    return suffix_end(datatype) == limit || !iri_term_end(datatype + 2) ? end : NULL;
}

static const byte *literal(Reader *reader, const byte *start, PyObject **term)
{
    const byte *quoted = *start == '"' ? string_end(start) : NULL, *end = NULL;
    bool is_canonical = quoted && *quoted != '"';  /* otherwise it may have three quotes */
    if (is_canonical && (*quoted != '^' || quoted[1] != '^' || quoted[2] == '<') && (end = suffix_end(quoted)))
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

/* A literal, an IRI or a node with a label. */
static const byte *simple(Reader *reader, const byte *start, PyObject **term)
{
    if (*start == '"' || *start == '\'')
        return literal(reader, start, term);
    if (is(*start, DIGIT) || *start == '-' || *start == '+' || *start == '.')
        return number(reader, start, term);
    const byte *end = begins(start, "true") ? start + 4 : begins(start, "false") ? start + 5 : NULL;
    if (!end || !(is_white(*end) || (*end && strchr(",;)]}#", *end)) || (*end == '.' && is_white(end[1]))))
        return node(reader, start, term);
    *term = PyUnicode_FromFormat("\"%s\"^^<" XSD "boolean>", *start == 't' ? "true" : "false");
    return *term ? end : NULL;
}

/* --- statements --------------------------------------------------------------------------------------------------- */

static const byte *properties(Reader *reader, const byte *at, PyObject *subject);
static const byte *object(Reader *reader, const byte *at, PyObject **term);

/* Adds a quad to the open message. */
static bool add_quad(Reader *reader, PyObject *subject, PyObject *predicate, PyObject *object)
{
    PyObject *quad[] = {subject, predicate, object, reader->graph ? reader->graph : Py_None};
    if (reader->allocated - reader->count < 4) {
        size_t more = 2 * reader->allocated + 64;
        PyObject **terms = PyMem_Realloc(reader->terms, more * sizeof *terms);
        if (!terms) {
            PyErr_NoMemory();
            return false;
        }
        reader->terms = terms;
        reader->allocated = more;
    }
    for (int part = 0; part < 4; part++) {
        Py_ssize_t length = quad[part] == Py_None ? 0 : PyUnicode_GetLength(quad[part]) + 1;
        if (length == 0 && quad[part] != Py_None)
            return false;  /* a label that Python gave is no text */
        reader->terms[reader->count++] = Py_NewRef(quad[part]);
        reader->characters += length;
    }
    return reader->characters <= reader->most;
}

static const byte *verb(Reader *reader, const byte *start, PyObject **term)
{
    if (*start == 'a' && (is_white(start[1]) || (start[1] && strchr("<\"'[(#", start[1])))) {
        *term = Py_NewRef(reader->words[TYPE]);
        return start + 1;
    }
    return *start == '_' ? NULL : node(reader, start, term);
}

/* A triple term; no string in three quotes is in one, which pyoxigraph refuses. */
static const byte *triple(Reader *reader, const byte *at, PyObject **term)
{
    PyObject *parts[3] = {NULL};
    if (reader->restricted || reader->depth == DEEPEST)
        return NULL;
    reader->depth++;
    at += strlen("<<(");
    for (int part = 0; at && part < 3; part++) {
        const byte *start = space_end(reader, at);
        if (part == 1)
            at = verb(reader, start, &parts[1]);
        else if (*start == '[')
            at = *(start = space_end(reader, start + 1)) == ']' && new_node(reader, &parts[part]) ? start + 1 : NULL;
        else if (part == 0)
            at = node(reader, start, &parts[0]);
        else if (begins(start, "<<("))
            at = triple(reader, start, &parts[2]);
        else
            at = (*start == '"' || *start == '\'') && is_long(start) ? NULL : simple(reader, start, &parts[2]);
    }
    reader->depth--;
    at = at ? space_end(reader, at) : NULL;
    at = at && begins(at, ")>>") ? at + strlen(")>>") : NULL;
    if (at && !(*term = PyUnicode_FromFormat("<<( %S %S %S )>>", parts[0], parts[1], parts[2])))
        at = NULL;
    for (int part = 0; part < 3; part++)
        Py_XDECREF(parts[part]);
    return at;
}

static const byte *anonymous(Reader *reader, const byte *at, PyObject **term)
{
    if (reader->depth == DEEPEST || !new_node(reader, term))
        return NULL;
    reader->depth++;
    at = space_end(reader, at + 1);
    at = *at == ']' ? at : properties(reader, at, *term);
    reader->depth--;
    if (at && *at == ']')
        return at + 1;
    Py_CLEAR(*term);
    return NULL;
}

static const byte *collection(Reader *reader, const byte *at, PyObject **term)
{
    PyObject *list = NULL, *last = NULL, *nil = reader->words[NIL];
    bool done = reader->depth++ < DEEPEST;
    at = space_end(reader, at + 1);
    while (done && *at != ')') {
        PyObject *item, *node;
        if ((done = new_node(reader, &node))) {
            done = !last || add_quad(reader, last, reader->words[REST], node);
            Py_XDECREF(last);
            last = node;
            list = list ? list : Py_NewRef(node);
        }
        const byte *end = done ? object(reader, at, &item) : NULL;
        done = end;
        if (done) {
            done = add_quad(reader, last, reader->words[FIRST], item);
            Py_DECREF(item);
            at = space_end(reader, end);
        }
    }
    reader->depth--;
    done = done && (!last || add_quad(reader, last, reader->words[REST], nil));
    Py_XDECREF(last);
    if (done)
        *term = list ? list : Py_NewRef(nil);
    else
        Py_XDECREF(list);
    return done ? at + 1 : NULL;
}

static const byte *object(Reader *reader, const byte *at, PyObject **term)
{
    if (*at == '[')
        return anonymous(reader, at, term);
    if (*at == '(')
        return collection(reader, at, term);
    return begins(at, "<<(") ? triple(reader, at, term) : simple(reader, at, term);
}

/* The predicates and objects of a subject, before what ends them. */
static const byte *properties(Reader *reader, const byte *at, PyObject *subject)
{
    for (;;) {
        PyObject *predicate;
        if (!(at = verb(reader, at, &predicate)))
            return NULL;
        do {
            PyObject *value;
            if (!(at = object(reader, space_end(reader, at), &value)))
                break;
            at = add_quad(reader, subject, predicate, value) ? space_end(reader, at) : NULL;
            Py_DECREF(value);
        } while (at && *at == ',' && at++);
        Py_DECREF(predicate);
        if (!at || *at != ';')
            return at;
        while (*at == ';')
            at = space_end(reader, at + 1);
        if (*at == '.' || *at == ']' || *at == '}')
            return at;
    }
}

/* --- directives --------------------------------------------------------------------------------------------------- */

/* Enters a declaration: a prefix for what is made, or, without a name, the base. */
static bool declare(Reader *reader, const byte *start, const byte *end)
{
    Buffer *made = &reader->made;
    PyObject *iri = made->size > LONGEST_NAMESPACE ? NULL : text_of(made->start + 1, made->start + made->size - 1);
    PyObject *name = iri && start ? text_of(start, end) : NULL;
    PyObject *known = name ? PyDict_GetItemWithError(reader->prefixes, name) : reader->base;
    bool done = iri && (!start || name) && !PyErr_Occurred();
    if (done && !(known && PyUnicode_Check(known) && PyUnicode_Compare(known, iri) == 0)) {
        forget(&reader->known);
        for (size_t i = 0; i < LOOKED_UP; i++)
            Py_CLEAR(reader->looked_up[i].iri);
        done = !start ? take_base(reader, iri) : PyDict_SetItem(reader->prefixes, name, iri) == 0 &&
                                                 PyDict_SetItem(reader->declared, name, iri) == 0;
    }
    Py_XDECREF(name);
    Py_XDECREF(iri);
    return done;
}

/* The declaration of a prefix or of the base; `is_one` is false where there is none. */
static const byte *directive(Reader *reader, const byte *at, bool *is_one)
{
    bool dotted = *at == '@';
    const byte *name = NULL, *colon = NULL, *next;
    at += dotted;
    if (dotted && !begins(at, "prefix") && !begins(at, "base"))
        return NULL;
    bool has_base = (next = keyword_end(at, "base"));
    if (!next)
        next = keyword_end(at, "prefix");
    if (!(*is_one = next) || (*next == '<' && !has_base))
        return NULL;
    at = space_end(reader, next);
    if (!has_base) {
        name = at;
        colon = prefix_end(at);
        /* those beyond ASCII, where pyoxigraph allows not all, are left to it */
        if (!colon || (name < colon && (!is(*name, LETTER) || colon[-1] == '.' || local_run_end(name, true) < colon)))
            return NULL;
        at = space_end(reader, colon + 1);
    }
    reader->made.size = 0;
    at = *at == '<' ? add_iri(reader, at) : NULL;
    if (at && dotted)
        at = *(at = space_end(reader, at)) == '.' ? at + 1 : NULL;
    return at && declare(reader, name, colon) ? at : NULL;
}

/* A statement, a declaration, or the beginning or end of a graph. */
static const byte *statement(Reader *reader, const byte *at)
{
    if (*at == '}' && reader->graph) {
        Py_CLEAR(reader->graph);
        return at + 1;
    }
    bool may_open = reader->graphs && !reader->graph, is_directive = false;
    if (*at == '{' && may_open) {
        reader->graph = Py_NewRef(Py_None);
        return at + 1;
    }
    const byte *end = reader->graph ? NULL : directive(reader, at, &is_directive);
    if (end || is_directive)
        return end;
    PyObject *subject;
    const byte *name = may_open ? keyword_end(at, "graph") : NULL;
    bool is_node = name || (*at != '[' && *at != '(');
    end = is_node ? node(reader, name ? space_end(reader, name) : at, &subject) : object(reader, at, &subject);
    bool is_alone = *at == '[' && *space_end(reader, at + 1) != ']';
    if (!end)
        return NULL;
    at = space_end(reader, end);
    if (may_open && is_node && *at == '{') {
        reader->graph = subject;
        return at + 1;
    }
    if (name)
        at = NULL;
    else if (!is_alone || (*at != '.' && *at != '}'))
        at = properties(reader, at, subject);
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
    if (begins(at, "@message"))
        return *(at = white_end(at + strlen("@message"))) == '.' ? at + 1 : NULL;
    const byte *end = keyword_end(at, "message");
    return end && is_white(*end) ? end : NULL;
}

/* The terms of the open message, from one on, as a list; they are no longer the reader's. */
static PyObject *taken_terms(Reader *reader)
{
    PyObject *message = PyList_New((Py_ssize_t)reader->count);
    for (size_t i = 0; message && i < reader->count; i++)
        PyList_SetItem(message, (Py_ssize_t)i, reader->terms[i]);
    reader->count = message ? 0 : reader->count;
    return message;
}

/* Reads statements and delimiters, as many as are known, and returns where they end; `open`: where the open message
 * begins. What is whole is read to `limit`, with the space at its end. */
static const byte *read_text(Reader *reader, const byte *at, const byte *limit, PyObject *messages, const byte **open)
{
    const byte *end = at;
    size_t count = 0;
    Py_ssize_t characters = reader->characters, named = count_names(reader);
    bool is_between = true;
    for (;;) {
        at = space_end(reader, at);
        const byte *next = reader->graph || !reader->delimited ? NULL : delimiter_end(reader, at);
        if (next) {
            if (!append(messages, taken_terms(reader)))
                return NULL;
            Py_CLEAR(reader->names);
            reader->number++;
            reader->characters = 0;
            reader->most = reader->least;
            *open = next;
        } else if (!(next = statement(reader, at))) {
            break;
        }
        at = next;
        /* a graph with a blank node is read whole: nothing else can open it again */
        is_between = !reader->graph || reader->graph == Py_None || PyUnicode_ReadChar(reader->graph, 0) != '_';
        if (is_between) {
            end = at;
            count = reader->count;
            characters = reader->characters;
            named = count_names(reader);
        }
    }
    while (reader->count > count)
        Py_DECREF(reader->terms[--reader->count]);
    while (!PyErr_Occurred() && count_names(reader) > named)
        Py_XDECREF(PyObject_CallMethod(reader->names, "popitem", NULL));
    reader->characters = characters;
    if (!is_between)
        Py_CLEAR(reader->graph);
    return is_between && at == limit ? at : end;
}

static bool make_words(Reader *reader)
{
    static const char *const words[] = {"type", "first", "rest", "nil"};
    for (size_t word = 0; word < WORDS; word++)
        if (!(reader->words[word] = PyUnicode_FromFormat("<" RDF "%s>", words[word])))
            return false;
    return true;
}

static void let_go(Reader *reader)
{
    for (size_t word = 0; word < WORDS; word++)
        Py_XDECREF(reader->words[word]);
    for (size_t i = 0; i < LOOKED_UP; i++)
        Py_XDECREF(reader->looked_up[i].iri);
    while (reader->count)
        Py_DECREF(reader->terms[--reader->count]);
    Py_XDECREF(reader->base);
    Py_XDECREF(reader->graph);
    Py_XDECREF(reader->names);
    PyMem_Free(reader->terms);
    PyMem_Free(reader->made.start);
    forget(&reader->known);
}

PyObject *turtle_messages(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *text, *base, *graph, *names, *messages, *result = NULL;
    char *start;
    Py_ssize_t size;
    int is_whole;
    Reader reader = {0};
    if (!PyArg_ParseTuple(arguments, "SpppppO!O!OOOOUOnnnn:turtle_messages", &text, &is_whole, &reader.graphs,
                          &reader.delimited, &reader.by_comment, &reader.restricted, &PyDict_Type, &reader.prefixes, &PyDict_Type, &reader.declared,
                          &reader.in_message, &reader.in_log, &reader.mend, &base, &graph, &names, &reader.number,
                          &reader.characters, &reader.most, &reader.least) ||
        PyBytes_AsStringAndSize(text, &start, &size) < 0)
        return NULL;
    if (PyUnicode_GetLength(graph))
        reader.graph = Py_NewRef(PyUnicode_CompareWithASCIIString(graph, "{") ? graph : Py_None);
    reader.names = names == Py_None ? NULL : Py_NewRef(names);
    messages = PyList_New(0);
    if (messages && make_words(&reader) && take_base(&reader, base)) {
        const byte *first = (const byte *)start, *open = first;
        const byte *end = read_text(&reader, first, is_whole ? first + size : NULL, messages, &open);
        PyObject *left = PyErr_Occurred() ? NULL : taken_terms(&reader);
        graph = !reader.graph || reader.graph == Py_None ? PyUnicode_FromString(reader.graph ? "{" : "") :
                                                           Py_NewRef(reader.graph);
        if (left && graph)
            result = Py_BuildValue("OOnnOOOn", messages, left, (Py_ssize_t)(end - first), (Py_ssize_t)(open - first),
                                   reader.base, graph, reader.names ? reader.names : Py_None, reader.characters);
        Py_XDECREF(left);
        Py_XDECREF(graph);
    }
    Py_XDECREF(messages);
    let_go(&reader);
    return result;
}
