/* Rows of Jelly frames, written: statements, entries of names and prefixes, and starts and ends of graphs.
 *
 * Beside logs/jelly/encoder.py and logs/jelly/wire.py. Jelly 1.1, serialization (rdf.proto).
 */

#include "wire.h"

enum { SUBJECT, PREDICATE, OBJECT, GRAPH };
enum { ROW = 0x0A, TRIPLE = 0x12, QUAD = 0x1A, GRAPH_START = 0x22, GRAPH_END = 0x2A };
enum { QUOTED = 0x62, DEFAULT_GRAPH = 0x7A, STARTED_DEFAULT_GRAPH = 0x1A };
enum {
    MOST_IRIS = 1 << 14,   /* to remember */
    MOST_NESTED = 16,      /* triple terms; deeper ones are left to Python */
    MOST_BYTES = 1 << 20,  /* of rows at once: then other threads have their turn */
};

/* A lookup table: `Table` of logs/jelly/wire.py. */
typedef struct {
    PyObject *ids, *strings;
    Py_ssize_t size, last, entered;
    byte tag;
} Table;

typedef struct {
    Table names, prefixes;
    PyObject *iris, *named, *suffixes, *iri_of;
    Py_ssize_t prefix, name;  /* the ids of the last IRI */
    int kind;                 /* of rows of statements; GRAPH_START: of triples, in graphs */
    int triple_terms;         /* whether they are allowed */
    Buffer rows, body, text;  /* the body of a row, and a text without escapes */
} Writer;

static size_t number_size(size_t number)
{
    size_t size = 1;
    while (number >>= 7)
        size++;
    return size;
}

static bool add_number(Buffer *buffer, size_t number)
{
    byte bytes[10];
    size_t size = 0;
    for (; number > 0x7F; number >>= 7)
        bytes[size++] = (byte)(number | 0x80);
    bytes[size++] = (byte)number;
    return add(buffer, bytes, size);
}

static bool add_tagged(Buffer *buffer, int tag, size_t number)
{
    byte first = (byte)tag;
    return add(buffer, &first, 1) && add_number(buffer, number);
}

static bool add_row(Buffer *rows, int kind, size_t size)
{
    return add_tagged(rows, ROW, 1 + number_size(size) + size) && add_tagged(rows, kind, size);
}

/* The last place of a character; NULL: there is none. */
static const byte *last_of(const byte *start, const byte *end, byte character)
{
    while (end > start)
        if (*--end == character)
            return end;
    return NULL;
}

/* --- lookup tables ------------------------------------------------------------------------------------------------- */

/* The id of a string, or 0: it has none; -1: an error. */
static Py_ssize_t id_of(const Table *table, PyObject *string)
{
    PyObject *id = PyDict_GetItemWithError(table->ids, string);
    return id ? PyLong_AsSsize_t(id) : PyErr_Occurred() ? -1 : 0;
}

/* Whether a statement may need a string of a table itself: 1 or 0; -1: an error. */
static int may_need(PyObject *quad, PyObject *string, bool is_name)
{
    PyObject *text = PyUnicode_FromFormat(is_name ? "%U>" : "<%U", string);
    int found = text ? 0 : -1;
    for (Py_ssize_t i = 0; !found && i < 4; i++) {
        PyObject *term = PyTuple_GetItem(quad, i);
        if (term == Py_None)
            continue;
        Py_UCS4 first = PyUnicode_ReadChar(term, 0);
        if (first == '<' && PyUnicode_ReadChar(term, 1) == '<')
            found = PyUnicode_Find(term, text, 0, PY_SSIZE_T_MAX, 1) >= 0;
        else if (first == '<')
            found = PyUnicode_Tailmatch(term, text, 0, PY_SSIZE_T_MAX, is_name ? 1 : -1);
    }
    Py_XDECREF(text);
    return PyErr_Occurred() ? -1 : found;
}

/* Enters a string, and adds the row that does so; `old` becomes what it replaces. Returns the id, or 0: the statement
 * may need what has to make room, or an error. */
static Py_ssize_t enter(Writer *writer, Table *table, PyObject *string, PyObject *quad, PyObject **old)
{
    Py_ssize_t size, last = table->last, index = table->size ? last % table->size : 0, number = index + 1;
    const char *data = PyUnicode_AsUTF8AndSize(string, &size);
    if (!data || !table->size)
        return 0;
    if (PyList_Size(table->strings) < table->size) {
        if (PyList_Size(table->strings) != index || PyList_Append(table->strings, string) < 0)
            return 0;
    } else {
        PyObject *replaced = PyList_GetItem(table->strings, index);
        if (!replaced || may_need(quad, replaced, table == &writer->names))
            return 0;
        *old = Py_NewRef(replaced);
        if (PyDict_DelItem(table->ids, replaced) < 0 ||
            PyList_SetItem(table->strings, index, Py_NewRef(string)) < 0)
            return 0;
    }
    PyObject *id = PyLong_FromSsize_t(number);
    int done = id ? PyDict_SetItem(table->ids, string, id) : -1;
    Py_XDECREF(id);
    if (done < 0)
        return 0;
    table->last = number;
    table->entered++;
    /* no id is the one after the last; the first is written, so that logs can be joined end to end */
    bool follows = number == last + 1 && number > 1;
    size_t length = (size_t)size;
    size_t entry = (follows ? 0 : 1 + number_size((size_t)number)) + (size ? 1 + number_size(length) + length : 0);
    if (!add_row(&writer->rows, table->tag, entry) ||
        (!follows && !add_tagged(&writer->rows, 0x08, (size_t)number)) ||
        (size && (!add_tagged(&writer->rows, 0x12, length) || !add(&writer->rows, data, length))))
        return 0;
    return number;
}

/* --- terms --------------------------------------------------------------------------------------------------------- */

/* Adds an IRI without the ids that the previous IRI makes unnecessary. */
static bool add_ids(Writer *writer, int tag, Py_ssize_t prefix, Py_ssize_t name)
{
    bool same = prefix == writer->prefix, next = name == writer->name + 1;
    size_t size = (same ? 0 : 1 + number_size((size_t)prefix)) + (next ? 0 : 1 + number_size((size_t)name));
    writer->prefix = prefix;
    writer->name = name;
    return add_tagged(&writer->body, tag, size) && (same || add_tagged(&writer->body, 0x08, (size_t)prefix)) &&
           (next || add_tagged(&writer->body, 0x10, (size_t)name));
}

static void forget_iris(Writer *writer)
{
    PyDict_Clear(writer->iris);
    PyDict_Clear(writer->named);
}

/* Forgets the IRIs of a name that has no id any more. */
static bool forget_name(Writer *writer, PyObject *name)
{
    PyObject *stale = PyDict_GetItemWithError(writer->named, name);
    if (!stale)
        return !PyErr_Occurred();
    for (Py_ssize_t i = 0; i < PyList_Size(stale); i++)
        if (PyDict_DelItem(writer->iris, PyList_GetItem(stale, i)) < 0)
            return false;
    return PyDict_DelItem(writer->named, name) == 0;
}

/* Remembers an IRI whose prefix and name are in the tables. */
static bool keep_iri(Writer *writer, PyObject *term, PyObject *name, Py_ssize_t prefix_id, Py_ssize_t name_id)
{
    if (PyDict_Size(writer->iris) >= MOST_IRIS)
        forget_iris(writer);
    PyObject *found = PyObject_CallFunction(writer->iri_of, "nn", prefix_id, name_id);
    bool done = found && PyDict_SetItem(writer->iris, term, found) == 0;
    Py_XDECREF(found);
    PyObject *same = done ? PyDict_GetItemWithError(writer->named, name) : NULL;
    if (same)
        return PyList_Append(same, term) == 0;
    PyObject *terms = done && !PyErr_Occurred() ? PyList_New(0) : NULL;
    done = terms && append(terms, Py_NewRef(term)) && PyDict_SetItem(writer->named, name, terms) == 0;
    Py_XDECREF(terms);
    return done;
}

/* Adds an IRI by its parts, and enters those that are not in the tables. */
static bool add_parts(Writer *writer, int tag, PyObject *term, PyObject *begin, PyObject *rest, PyObject *quad)
{
    PyObject *old = NULL;
    Py_ssize_t prefix = 0;
    if (writer->prefixes.size && !(prefix = id_of(&writer->prefixes, begin))) {
        prefix = enter(writer, &writer->prefixes, begin, quad, &old);
        if (old)
            forget_iris(writer);
        Py_CLEAR(old);
        if (!prefix)
            return false;
    }
    Py_ssize_t name = id_of(&writer->names, rest);
    if (prefix < 0 || name < 0)
        return false;
    bool done = true;
    if (name) {
        done = keep_iri(writer, term, rest, prefix, name);
    } else {
        name = enter(writer, &writer->names, rest, quad, &old);
        done = name && (!old || forget_name(writer, old));
        Py_XDECREF(old);
    }
    return done && add_ids(writer, tag, prefix, name);
}

static bool add_iri(Writer *writer, int tag, PyObject *term, PyObject *quad)
{
    PyObject *found = PyDict_GetItemWithError(writer->iris, term);
    if (found)
        return PyTuple_Check(found) && PyTuple_Size(found) > 1 &&
               add_ids(writer, tag, PyLong_AsSsize_t(PyTuple_GetItem(found, 0)),
                       PyLong_AsSsize_t(PyTuple_GetItem(found, 1)));
    PyObject *bytes = PyErr_Occurred() ? NULL : PyUnicode_AsUTF8String(term);
    if (!bytes)
        return false;
    const byte *start = (const byte *)PyBytes_AsString(bytes), *end = start + PyBytes_Size(bytes);
    bool done = end - start > 1 && start[1] != '<' && *--end == '>';
    if (done) {
        const byte *cut = NULL;
        start++;
        if (writer->prefixes.size && !(cut = last_of(start, end, '#')))
            cut = last_of(start, end, '/');
        cut = cut ? cut + 1 : start;
        PyObject *begin = text_of(start, cut), *rest = text_of(cut, end);
        done = begin && rest && add_parts(writer, tag, term, begin, rest, quad);
        Py_XDECREF(begin);
        Py_XDECREF(rest);
    }
    Py_DECREF(bytes);
    return done;
}

static bool add_literal(Writer *writer, const byte *start, const byte *end)
{
    const byte *quote = last_of(start + 1, end, '"'), *data = start + 1;
    PyObject *suffix = quote ? text_of(quote + 1, end) : NULL;
    PyObject *kind = suffix ? PyDict_GetItemWithError(writer->suffixes, suffix) : NULL;
    Py_XDECREF(suffix);
    if (!kind || !PyBytes_Check(kind))
        return false;
    size_t size = (size_t)(quote - data), rest = (size_t)PyBytes_Size(kind);
    if (memchr(data, '\\', size)) {
        writer->text.size = 0;
        if (!add_unescaped(&writer->text, data, quote, AS_TEXT))
            return false;
        data = writer->text.start;
        size = writer->text.size;
    }
    return add_tagged(&writer->body, 0x5A, 1 + number_size(size) + size + rest) &&
           add_tagged(&writer->body, 0x0A, size) && add(&writer->body, data, size) &&
           add(&writer->body, PyBytes_AsString(kind), rest);
}

static const byte *add_triple(Writer *writer, const byte *at, PyObject *quad, int depth);

/* Adds a term as a field; false: it is left to Python, or an error. */
static bool add_term(Writer *writer, int position, PyObject *term, PyObject *quad)
{
    int tag = 0x0A + 0x20 * position;
    Py_UCS4 first = PyUnicode_ReadChar(term, 0);
    bool quoted = first == '<' && position == OBJECT && PyUnicode_ReadChar(term, 1) == '<';
    if (first == '<' && !quoted)
        return add_iri(writer, tag, term, quad);
    if (!quoted && !((first == '"' && position == OBJECT) || (first == '_' && position != PREDICATE)))
        return false;
    PyObject *bytes = PyUnicode_AsUTF8String(term);
    if (!bytes)
        return false;
    const byte *start = (const byte *)PyBytes_AsString(bytes), *end = start + PyBytes_Size(bytes);
    size_t label = (size_t)(end - start) - 2;
    bool done = quoted         ? add_triple(writer, start, quad, 0) == end
                : first == '"' ? add_literal(writer, start, end)
                               : end - start > 1 && add_tagged(&writer->body, tag + 8, label) &&
                                     add(&writer->body, start + 2, label);
    Py_DECREF(bytes);
    return done;
}

/* Adds the triple term that begins there as a field, and returns its end; NULL: it is left to Python, or an error. */
static const byte *add_triple(Writer *writer, const byte *at, PyObject *quad, int depth)
{
    Buffer *body = &writer->body;
    size_t start = body->size;
    if (!writer->triple_terms || depth == MOST_NESTED || strncmp((const char *)at, "<<( ", 4) != 0)
        return NULL;
    at += 4;
    for (int position = SUBJECT; position <= OBJECT; position++) {
        const byte *end = *at == '"' ? literal_end(at) : *at == '<' ? iri_term_end(at) : blank_end(at);
        if (at[0] == '<' && at[1] == '<') {
            end = position == OBJECT ? add_triple(writer, at, quad, depth + 1) : NULL;
        } else {
            PyObject *term = end ? text_of(at, end) : NULL;
            if (term && !add_term(writer, position, term, quad))
                end = NULL;
            Py_XDECREF(term);
        }
        if (!end || *end != ' ')
            return NULL;
        at = end + 1;
    }
    size_t size = body->size - start, before = 1 + number_size(size);
    if (strncmp((const char *)at, ")>>", 3) != 0 ||
        (body->allocated - body->size < before && !grow(body, before)))
        return NULL;
    memmove(body->start + start + before, body->start + start, size);
    body->size = start;
    if (!add_tagged(body, QUOTED, size))
        return NULL;
    body->size += size;
    return at + 3;
}

/* --- statements ---------------------------------------------------------------------------------------------------- */

/* Whether these are four terms, of which the last may be None. */
static bool are_terms(PyObject *quad)
{
    if (!PyTuple_Check(quad) || PyTuple_Size(quad) != 4)
        return false;
    for (Py_ssize_t i = 0; i < 4; i++) {
        PyObject *term = PyTuple_GetItem(quad, i);
        if (!PyUnicode_CheckExact(term) && (i < GRAPH || term != Py_None))
            return false;
    }
    return true;
}

static bool is_same(PyObject *one, PyObject *other)
{
    return one == other || (one != Py_None && other != Py_None && PyUnicode_Compare(one, other) == 0);
}

/* Replaces the open graph; the empty string: none is. */
static bool set_graph(PyObject **last, PyObject *graph)
{
    PyObject *before = *last, *now = graph ? PyTuple_Pack(4, PyTuple_GetItem(before, SUBJECT),
                                                          PyTuple_GetItem(before, PREDICATE),
                                                          PyTuple_GetItem(before, OBJECT), graph) : NULL;
    Py_XDECREF(graph);
    if (!now)
        return false;
    *last = now;
    Py_DECREF(before);
    return true;
}

/* Adds the rows that end the open graph, if one is, and start another one; false: it is left to Python, or an error. */
static bool start_graph(Writer *writer, PyObject *quad, PyObject **last)
{
    PyObject *name = PyTuple_GetItem(quad, GRAPH), *open = PyTuple_GetItem(*last, GRAPH);
    if ((open == Py_None || PyUnicode_GetLength(open) > 0) &&
        (!add_row(&writer->rows, GRAPH_END, 0) || !set_graph(last, PyUnicode_FromString(""))))
        return false;
    writer->body.size = 0;
    return (name == Py_None ? add_tagged(&writer->body, STARTED_DEFAULT_GRAPH, 0)
                            : add_term(writer, SUBJECT, name, quad)) &&
           add_row(&writer->rows, GRAPH_START, writer->body.size) &&
           add(&writer->rows, writer->body.start, writer->body.size) && set_graph(last, Py_NewRef(name));
}

/* Adds the row of a statement, after those of the entries that it needs; false: it is left to Python, or an error. */
static bool add_statement(Writer *writer, PyObject *quad, PyObject *last)
{
    int kind = writer->kind;
    writer->body.size = 0;
    for (int position = 0; position < 4; position++) {
        PyObject *term = PyTuple_GetItem(quad, position);
        if (is_same(term, PyTuple_GetItem(last, position)))
            continue;
        if (term != Py_None) {
            if ((position == GRAPH && kind != QUAD) || !add_term(writer, position, term, quad))
                return false;
        } else if (kind == QUAD && !add_tagged(&writer->body, DEFAULT_GRAPH, 0)) {
            return false;
        }
    }
    return add_row(&writer->rows, kind == QUAD ? QUAD : TRIPLE, writer->body.size) &&
           add(&writer->rows, writer->body.start, writer->body.size);
}

/* Adds rows until a statement that is left to Python, which is returned; NULL: none is, or an error. */
static PyObject *add_statements(Writer *writer, PyObject *quads, PyObject **last)
{
    PyObject *quad;
    while ((quad = PyIter_Next(quads))) {
        Py_ssize_t prefix = writer->prefix, name = writer->name;
        bool done = writer->rows.size <= MOST_BYTES && are_terms(quad);
        if (done && writer->kind == GRAPH_START &&
            !is_same(PyTuple_GetItem(quad, GRAPH), PyTuple_GetItem(*last, GRAPH))) {
            done = start_graph(writer, quad, last);
            if (done)
                prefix = writer->prefix, name = writer->name;
        }
        if (!done || !add_statement(writer, quad, *last)) {
            writer->prefix = prefix, writer->name = name;
            break;
        }
        Py_DECREF(*last);
        *last = quad;
    }
    return quad;
}

PyObject *jelly_statements(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *quads, *last, *result = NULL;
    Writer writer = {.names.tag = 0x4A, .prefixes.tag = 0x52};
    Table *names = &writer.names, *prefixes = &writer.prefixes;
    if (!PyArg_ParseTuple(arguments, "OipO!nnO!O!O!O(O!O!nn)(O!O!nn):jelly_statements", &quads, &writer.kind,
                          &writer.triple_terms, &PyTuple_Type, &last, &writer.prefix, &writer.name, &PyDict_Type, &writer.iris, &PyDict_Type, &writer.named,
                          &PyDict_Type, &writer.suffixes, &writer.iri_of, &PyDict_Type, &names->ids, &PyList_Type,
                          &names->strings, &names->size, &names->last, &PyDict_Type, &prefixes->ids, &PyList_Type,
                          &prefixes->strings, &prefixes->size, &prefixes->last))
        return NULL;
    if (!PyIter_Check(quads) || !are_terms(last) || names->last < 0 || prefixes->last < 0) {
        PyErr_SetString(PyExc_TypeError, "no iterator, not four terms, or no id");
        return NULL;
    }
    Py_INCREF(last);
    PyObject *stopped = add_statements(&writer, quads, &last);
    /* a term without UTF-8, or without characters, is refused by Python */
    if (PyErr_Occurred() && (PyErr_ExceptionMatches(PyExc_UnicodeError) || PyErr_ExceptionMatches(PyExc_IndexError)))
        PyErr_Clear();
    if (!PyErr_Occurred())
        result = Py_BuildValue("y#OOnnnn", writer.rows.start ? (const char *)writer.rows.start : "",
                               (Py_ssize_t)writer.rows.size, stopped ? stopped : Py_None, last, writer.prefix,
                               writer.name, names->entered, prefixes->entered);
    PyMem_Free(writer.rows.start);
    PyMem_Free(writer.body.start);
    PyMem_Free(writer.text.start);
    Py_XDECREF(stopped);
    Py_DECREF(last);
    return result;
}
