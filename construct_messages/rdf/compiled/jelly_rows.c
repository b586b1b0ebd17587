/* Rows of Jelly frames, read: entries of names and prefixes, statements, and starts and ends of graphs.
 *
 * Beside logs/jelly/decoder.py. Jelly 1.1, serialization (rdf.proto).
 */

#include "wire.h"

enum { ROW = 0x0A, QUAD = 0x1A, GRAPH_START = 0x22, GRAPH_END = 0x2A, NAME = 0x4A, PREFIX = 0x52 };

enum {
    MOST_PREFIXES = 1 << 6,      /* of one name */
    MOST_NESTED = 16,            /* quoted triples; deeper ones are left to Python */
    LONGEST_LITERAL = 1 << 16,   /* Python lets other threads have their turn within longer ones */
};

/* Bytes of a frame that are still to be read. */
typedef struct {
    const byte *at, *limit;
} Part;

/* Takes a number of at most four bytes; false: there is none. */
static bool take_number(Part *from, size_t *number)
{
    *number = 0;
    for (int shift = 0; shift < 28 && from->at < from->limit; shift += 7) {
        byte next = *from->at++;
        *number |= (size_t)(next & 0x7F) << shift;
        if (next < 0x80)
            return true;
    }
    return false;
}

/* Takes a field of bytes; false: there is none with a tag of one byte. */
static bool take_field(Part *from, byte *tag, Part *field)
{
    size_t size;
    if (from->at == from->limit || *from->at >= 0x80)
        return false;
    *tag = *from->at++;
    if ((*tag & 7) != 2 || !take_number(from, &size) || size > (size_t)(from->limit - from->at))
        return false;
    *field = (Part){from->at, from->at + size};
    from->at += size;
    return true;
}

/* Takes a number after its tag, where that comes next; false: it is cut. */
static bool take_tagged(Part *from, byte tag, size_t *number)
{
    *number = 0;
    if (from->at == from->limit || *from->at != tag)
        return true;
    from->at++;
    return take_number(from, number);
}

/* --- lookup tables ------------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject *strings;  /* by their ids */
    Py_ssize_t size, last;
} Entries;

/* What a dictionary has for an id, borrowed; NULL: nothing, or an error. */
static PyObject *with_id(PyObject *dictionary, Py_ssize_t id)
{
    PyObject *key = PyLong_FromSsize_t(id), *found = key ? PyDict_GetItemWithError(dictionary, key) : NULL;
    Py_XDECREF(key);
    return found;
}

static bool set_with_id(PyObject *dictionary, Py_ssize_t id, PyObject *value)
{
    PyObject *key = value ? PyLong_FromSsize_t(id) : NULL;
    bool done = key && PyDict_SetItem(dictionary, key, value) == 0;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return done;
}

/* Takes an entry; returns its id, or 0: it is not known, or an error. */
static Py_ssize_t enter(Entries *table, Part entry)
{
    size_t number;
    byte tag = 0x12;
    Part string = {entry.limit, entry.limit};
    if (!take_tagged(&entry, 0x08, &number) ||
        (entry.at != entry.limit && !take_field(&entry, &tag, &string)) || tag != 0x12 || entry.at != entry.limit)
        return 0;
    Py_ssize_t id = number ? (Py_ssize_t)number : table->last + 1;
    if (id < 1 || id > table->size || !set_with_id(table->strings, id, text_of(string.at, string.limit)))
        return 0;
    return table->last = id;
}

/* --- terms --------------------------------------------------------------------------------------------------------- */

typedef struct {
    Entries names, prefixes;
    PyObject *iris, *suffixes, *blank;
    PyObject *begin;  /* the last prefix, which belongs to the structure */
    PyObject *last;   /* the terms of the last statement, and the open graph; the empty string: none */
    int depth;        /* of quoted triples */
    Py_ssize_t prefix, name, made, most_made;
    Buffer text;
} Reader;

static bool add_utf8(Buffer *buffer, PyObject *text)
{
    Py_ssize_t size;
    const char *start = PyUnicode_AsUTF8AndSize(text, &size);
    return start && add(buffer, start, (size_t)size);
}

/* The IRI of the last prefix and the last name, which are met together for the first time. */
static PyObject *new_iri(Reader *reader, PyObject *known)
{
    PyObject *name = with_id(reader->names.strings, reader->name);
    if (!name)
        return NULL;
    Py_ssize_t made = reader->made + PyUnicode_GetLength(reader->begin) + PyUnicode_GetLength(name);
    Buffer *text = &reader->text;
    text->size = 0;
    if (made > reader->most_made || !add(text, "<", 1) || !add_utf8(text, reader->begin) || !add_utf8(text, name) ||
        !add(text, ">", 2) || iri_term_end(text->start) != text->start + text->size - 1)
        return NULL;
    PyObject *term = text_of(text->start, text->start + text->size - 1);
    if (term && PyDict_Size(known) >= MOST_PREFIXES)
        PyDict_Clear(known);
    if (!term || PyDict_SetItem(known, reader->begin, term) < 0) {
        Py_XDECREF(term);
        return NULL;
    }
    reader->made = made;
    return term;
}

static PyObject *read_iri(Reader *reader, Part ids)
{
    size_t prefix, name;
    if (!take_tagged(&ids, 0x08, &prefix) || !take_tagged(&ids, 0x10, &name) || ids.at != ids.limit)
        return NULL;
    reader->name = name ? (Py_ssize_t)name : reader->name + 1;
    if (prefix) {
        PyObject *begin = with_id(reader->prefixes.strings, (Py_ssize_t)prefix), *before = reader->begin;
        if (!begin)
            return NULL;
        reader->prefix = (Py_ssize_t)prefix;
        reader->begin = Py_NewRef(begin);
        Py_DECREF(before);
    }
    PyObject *known = with_id(reader->iris, reader->name);
    PyObject *term = known ? PyDict_GetItemWithError(known, reader->begin) : NULL;
    if (term || !known || PyErr_Occurred())
        return Py_XNewRef(term);
    return new_iri(reader, known);
}

/* Adds the characters of a literal with their escapes; false: it has one without a short escape, or an error. */
static bool add_escaped(Buffer *text, Part lexical)
{
    while (lexical.at < lexical.limit) {
        const byte *end = lexical.at;
        while (end < lexical.limit && (is(*end, TEXT_CHAR) || *end >= 0x80)) {
            if (*end == 0xEF && lexical.limit - end > 2 && end[1] == 0xBF && end[2] >= 0xBE)
                return false;  /* U+FFFE and U+FFFF are escaped */
            end++;
        }
        if (!add(text, lexical.at, (size_t)(end - lexical.at)))
            return false;
        lexical.at = end;
        if (end < lexical.limit) {
            byte escape[2] = {'\\', short_escapes[*end]};
            if (!escape[1] || !add(text, escape, 2))
                return false;
            lexical.at++;
        }
    }
    return true;
}

static PyObject *read_literal(Reader *reader, Part literal)
{
    byte tag;
    Part lexical = {literal.limit, literal.limit};
    if (literal.at != literal.limit && *literal.at == 0x0A && !take_field(&literal, &tag, &lexical))
        return NULL;
    if (lexical.limit - lexical.at > LONGEST_LITERAL)
        return NULL;
    PyObject *key = PyBytes_FromStringAndSize((const char *)literal.at, literal.limit - literal.at);
    PyObject *suffix = key ? PyDict_GetItemWithError(reader->suffixes, key) : NULL;
    Py_XDECREF(key);
    Buffer *text = &reader->text;
    text->size = 0;
    if (!suffix || !add(text, "\"", 1) || !add_escaped(text, lexical) || !add_utf8(text, suffix))
        return NULL;
    return text_of(text->start, text->start + text->size);
}

static PyObject *read_blank(Reader *reader, Part label)
{
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)label.at, label.limit - label.at);
    PyObject *term = bytes ? PyObject_CallFunctionObjArgs(reader->blank, bytes, NULL) : NULL;
    Py_XDECREF(bytes);
    if (!term && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();  /* Python meets the error again */
    return term;
}

static PyObject *read_triple(Reader *reader, Part fields);

static PyObject *read_term(Reader *reader, byte tag, Part data)
{
    switch (tag) {
    case 0x0A: case 0x2A: case 0x4A: case 0x6A:
        return read_iri(reader, data);
    case 0x12: case 0x52: case 0x72:
        return read_blank(reader, data);
    case 0x5A:
        return read_literal(reader, data);
    case 0x62:
        return read_triple(reader, data);
    case 0x7A:
        return Py_NewRef(Py_None);
    }
    return NULL;
}

/* --- rows ---------------------------------------------------------------------------------------------------------- */

/* Reads the terms of a statement in order; false: one is not known, or comes twice, or an error. */
static bool read_terms(Reader *reader, Part fields, int count, PyObject **found)
{
    int due = 0;
    while (fields.at < fields.limit) {
        byte tag;
        Part data;
        if (!take_field(&fields, &tag, &data) || tag < 0x0A)
            return false;
        int position = (tag - 0x0A) >> 5;
        if (position < due || position >= count || !(found[position] = read_term(reader, tag, data)))
            return false;
        due = position + 1;
    }
    return true;
}

/* Reads a quoted triple, which has all terms itself; one that Python skips begins with a NUL. */
static PyObject *read_triple(Reader *reader, Part fields)
{
    PyObject *found[3] = {NULL}, *term = NULL;
    if (reader->depth == MOST_NESTED)
        return NULL;
    reader->depth++;
    bool done = read_terms(reader, fields, 3, found);
    reader->depth--;
    for (int i = 0; i < 3; i++)
        done = done && found[i] && PyUnicode_ReadChar(found[i], 0) != 0;
    if (done)
        term = PyUnicode_FromFormat("<<( %U %U %U )>>", found[0], found[1], found[2]);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(found[i]);
    return term;
}

/* Reads a statement, adds its terms, and keeps them as the last ones; false: it is not known, or an error. */
static bool read_statement(Reader *reader, Part fields, int count, PyObject *terms)
{
    PyObject *found[4] = {NULL}, *last = reader->last;
    bool done = read_terms(reader, fields, count, found);
    for (int i = 0; done && i < 4; i++) {
        PyObject *term = found[i] ? found[i] : PyList_GetItem(last, i);
        done = term == Py_None || PyUnicode_GetLength(term) > 0;
    }
    for (int i = 0; i < 4; i++) {
        if (!done)
            Py_XDECREF(found[i]);
        else if (found[i])
            done = PyList_SetItem(last, i, found[i]) == 0;
    }
    for (int i = 0; done && i < 4; i++)
        done = PyList_Append(terms, PyList_GetItem(last, i)) == 0;
    return done;
}

static bool start_graph(Reader *reader, Part fields)
{
    byte tag;
    Part data;
    if (!take_field(&fields, &tag, &data) || fields.at != fields.limit || tag > 0x1A)
        return false;
    PyObject *name = tag == 0x1A ? Py_NewRef(Py_None) : read_term(reader, tag, data);
    return name && PyList_SetItem(reader->last, 3, name) == 0;
}

/* Reads a row, and returns its end; NULL: it is not known, or an error. */
static const byte *row_end(Reader *reader, Part rest, int statement, bool graphs, PyObject *terms)
{
    byte tag, kind;
    Part row, content;
    if (!take_field(&rest, &tag, &row) || tag != ROW || !take_field(&row, &kind, &content) || row.at != row.limit)
        return NULL;
    bool done = false;
    Py_ssize_t id = 0, prefix = reader->prefix, name = reader->name;
    PyObject *begin = Py_NewRef(reader->begin);
    if (kind == statement) {
        done = read_statement(reader, content, kind == QUAD ? 4 : 3, terms);
    } else if (kind == GRAPH_START && graphs) {
        done = start_graph(reader, content);
    } else if (kind == GRAPH_END && graphs) {
        done = PyList_SetItem(reader->last, 3, PyUnicode_FromString("")) == 0;
    } else if (kind == NAME) {
        id = enter(&reader->names, content);
        done = id && set_with_id(reader->iris, id, PyDict_New());
    } else if (kind == PREFIX) {
        id = enter(&reader->prefixes, content);
        done = id;
        if (done && id == prefix) {
            Py_DECREF(reader->begin);
            reader->begin = Py_NewRef(with_id(reader->prefixes.strings, id));
        }
    }
    if (!done) {  /* Python reads it from its start */
        PyObject *after = reader->begin;
        reader->prefix = prefix, reader->name = name, reader->begin = begin;
        begin = after;
    }
    Py_DECREF(begin);
    return done ? rest.at : NULL;
}

PyObject *jelly_rows(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *frame, *terms, *names, *prefixes, *result = NULL;
    Py_ssize_t at, stop, size;
    int statement, graphs;
    char *start;
    Reader reader = {0};
    if (!PyArg_ParseTuple(arguments, "SnnipO!O!(O!n)(O!n)O!O!OnUnnnnn:jelly_rows", &frame, &at, &stop, &statement,
                          &graphs, &PyList_Type, &reader.last, &PyList_Type, &terms, &PyDict_Type, &names, &reader.names.size,
                          &PyDict_Type, &prefixes, &reader.prefixes.size, &PyDict_Type, &reader.iris, &PyDict_Type,
                          &reader.suffixes, &reader.blank, &reader.most_made, &reader.begin, &reader.prefix,
                          &reader.name, &reader.made, &reader.names.last, &reader.prefixes.last) ||
        PyBytes_AsStringAndSize(frame, &start, &size) < 0)
        return NULL;
    if (PyList_Size(reader.last) != 4 || at < 0 || at > size || stop > size) {
        PyErr_SetString(PyExc_ValueError, "no part of the frame, or not four terms");
        return NULL;
    }
    reader.names.strings = names;
    reader.prefixes.strings = prefixes;
    Py_INCREF(reader.begin);
    const byte *begin = (const byte *)start, *end;
    while (at < stop && (end = row_end(&reader, (Part){begin + at, begin + size}, statement, graphs, terms)))
        at = end - begin;
    PyMem_Free(reader.text.start);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
        PyErr_Clear();
    if (!PyErr_Occurred())
        result = Py_BuildValue("nOnnnnn", at, reader.begin, reader.prefix, reader.name, reader.made,
                               reader.names.last, reader.prefixes.last);
    Py_DECREF(reader.begin);
    return result;
}
