/* Writes the statements of one message as Turtle or TriG: grouped by graph, subject and predicate, with prefixed names.
 *
 * Beside logs/turtle/encoder.py. Triple terms, base directions and strings that are not terms are left to Python. RDF 1.2 Turtle
 * and TriG, section 2.
 */

#include "wire.h"

#define XSD "<http://www.w3.org/2001/XMLSchema#"
#define TYPE "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

enum {
    MOST_NAMESPACES = 128,
    MOST_STATEMENTS = 1 << 16,  /* Python lets other threads have their turn within more */
};

typedef struct {
    const char *iri, *prefix;
    size_t size, prefix_size;
} Namespace;

/* A term and what was written with it first, by indexes: a graph has subjects, a subject predicates, and so on. */
typedef struct {
    PyObject *term;
    uint32_t parent, first, last, next;  /* 0: none */
} Group;

typedef struct {
    bool graphs;
    Namespace namespaces[MOST_NAMESPACES];  /* the longest first */
    size_t count;
    Group *groups;  /* the first is that of all graphs */
    uint32_t used;
    uint32_t *places;  /* of groups, by their hashes */
    size_t mask;
    Buffer text;
} Writer;

/* --- terms -------------------------------------------------------------------------------------------------------- */

static bool add_iri(Writer *writer, const byte *start, const byte *end)
{
    if (end[-1] != '>')
        return false;
    size_t size = (size_t)(end - start) - 2;
    for (size_t i = 0; i < writer->count; i++) {
        const Namespace *namespace = &writer->namespaces[i];
        const byte *local = start + 1 + namespace->size;
        /* most differ in their last character */
        if (namespace->size <= size && local[-1] == (byte)namespace->iri[namespace->size - 1] &&
            memcmp(start + 1, namespace->iri, namespace->size) == 0 && local_end(local) == end - 1)
            return add(&writer->text, namespace->prefix, namespace->prefix_size) && add(&writer->text, ":", 1) &&
                   add(&writer->text, local, (size_t)(end - 1 - local));
    }
    return add(&writer->text, start, (size_t)(end - start));
}

/* Where a number without a needless sign or zero ends. */
static const byte *integer_end(const byte *at, bool signed_zero)
{
    const byte *digits = at + (*at == '-');
    if (*digits == '0')
        return digits == at || signed_zero ? digits + 1 : NULL;
    const byte *end = digits_end(digits);
    return end > digits ? end : NULL;
}

static bool is_text(const byte *at, const byte *end, const char *text)
{
    return (size_t)(end - at) == strlen(text) && memcmp(at, text, strlen(text)) == 0;
}

/* Whether a literal may be written without quotes and datatype: _ABBREVIATED of logs/turtle/encoder.py. */
static bool is_abbreviated(const byte *at, const byte *end, const byte *datatype, const byte *limit)
{
    const byte *name = datatype + strlen(XSD), *digits = at + (*at == '-');
    if ((size_t)(limit - datatype) < strlen(XSD) || memcmp(datatype, XSD, strlen(XSD)) != 0)
        return false;
    if (is_text(name, limit, "integer>"))
        return integer_end(at, false) == end;
    if (is_text(name, limit, "boolean>"))
        return is_text(at, end, "true") || is_text(at, end, "false");
    bool is_decimal = is_text(name, limit, "decimal>");
    if (!is_decimal && !is_text(name, limit, "double>"))
        return false;
    at = is_decimal ? integer_end(at, true) : is(*digits, DIGIT) ? digits + 1 : NULL;
    if (!at || *at != '.' || !is(at[1], DIGIT))
        return false;
    at = digits_end(at + 1);
    return is_decimal ? at == end : *at == 'E' && integer_end(at + 1, true) == end;
}

static bool add_literal(Writer *writer, const byte *start, const byte *end)
{
    if (end[-1] != '>') {
        bool directed = end - start > 5 && (is_text(end - 5, end, "--ltr") || is_text(end - 5, end, "--rtl"));
        return !directed && add(&writer->text, start, (size_t)(end - start));
    }
    const byte *quote = end;
    while (*--quote != '"')
        ;
    const byte *datatype = quote + 3;
    if (quote == start || strncmp((const char *)quote, "\"^^<", 4) != 0)
        return false;
    if (is_abbreviated(start + 1, quote, datatype, end))
        return add(&writer->text, start + 1, (size_t)(quote - start - 1));
    return add(&writer->text, start, (size_t)(datatype - start)) && add_iri(writer, datatype, end);
}

static bool add_term(Writer *writer, PyObject *term)
{
    Py_ssize_t size;
    const byte *start = (const byte *)PyUnicode_AsUTF8AndSize(term, &size);
    if (!start || size < 2 || memcmp(start, "<<", 2) == 0)
        return false;
    switch (*start) {
    case '<':
        return add_iri(writer, start, start + size);
    case '"':
        return add_literal(writer, start, start + size);
    case '_':
        return add(&writer->text, start, (size_t)size);
    }
    return false;
}

static bool add_verb(Writer *writer, PyObject *term)
{
    if (PyUnicode_CompareWithASCIIString(term, TYPE) == 0)
        return add(&writer->text, "a", 1);
    return add_term(writer, term);
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

static bool is_same(PyObject *one, PyObject *other)
{
    return one == other || (one != Py_None && other != Py_None && PyUnicode_Compare(one, other) == 0);
}

static uint32_t add_group(Writer *writer, uint32_t parent, PyObject *term)
{
    uint32_t group = writer->used++, last = writer->groups[parent].last;
    writer->groups[group] = (Group){term, parent, 0, 0, 0};
    *(last ? &writer->groups[last].next : &writer->groups[parent].first) = group;
    return writer->groups[parent].last = group;
}

/* The group of a term in another one. */
static uint32_t group_of(Writer *writer, uint32_t parent, PyObject *term)
{
    uint32_t group = writer->groups[parent].last;
    if (group && writer->groups[group].term == term)
        return group;
    size_t place = (size_t)PyObject_Hash(term) + parent * (size_t)0x9E3779B1;
    while ((group = writer->places[++place & writer->mask]))
        if (writer->groups[group].parent == parent && is_same(writer->groups[group].term, term))
            return group;
    return writer->places[place & writer->mask] = add_group(writer, parent, term);
}

/* Puts a statement into its groups; false: it is not a statement. */
static bool enter(Writer *writer, PyObject *statement)
{
    static const int order[] = {3, 0, 1};
    if (!PyTuple_Check(statement) || PyTuple_Size(statement) != 4)
        return false;
    for (Py_ssize_t part = 0; part < 4; part++) {
        PyObject *term = PyTuple_GetItem(statement, part);
        if (!PyUnicode_CheckExact(term) && (part < 3 || term != Py_None))
            return false;
    }
    if (!writer->graphs && PyTuple_GetItem(statement, 3) != Py_None)
        return false;
    uint32_t group = 0;
    for (int level = 0; level < 3; level++)
        group = group_of(writer, group, PyTuple_GetItem(statement, order[level]));
    add_group(writer, group, PyTuple_GetItem(statement, 2));
    return true;
}

/* --- statements --------------------------------------------------------------------------------------------------- */

static bool add_text(Writer *writer, const char *text)
{
    return add(&writer->text, text, strlen(text));
}

/* Adds a subject with its predicates and objects. */
static bool add_subject(Writer *writer, const Group *subject, const char *indent)
{
    const Group *groups = writer->groups;
    if (!add_text(writer, indent) || !add_term(writer, subject->term) || !add_text(writer, " "))
        return false;
    for (uint32_t verb = subject->first; verb; verb = groups[verb].next) {
        if (verb != subject->first &&
            (!add_text(writer, " ;\n") || !add_text(writer, indent) || !add_text(writer, "    ")))
            return false;
        if (!add_verb(writer, groups[verb].term))
            return false;
        for (uint32_t object = groups[verb].first; object; object = groups[object].next)
            if (!add_text(writer, object == groups[verb].first ? " " : " , ") ||
                !add_term(writer, groups[object].term))
                return false;
    }
    return add_text(writer, " .\n");
}

static bool add_graph(Writer *writer, const Group *graph)
{
    bool is_named = graph->term != Py_None;
    if (is_named && (!add_term(writer, graph->term) || !add_text(writer, " {\n")))
        return false;
    for (uint32_t subject = graph->first; subject; subject = writer->groups[subject].next)
        if (!add_subject(writer, &writer->groups[subject], is_named ? "    " : ""))
            return false;
    return !is_named || add_text(writer, "}\n");
}

/* Adds the statements; false: one of them is left to Python, or there is an error. */
static bool add_statements(Writer *writer, PyObject *statements)
{
    size_t count = (size_t)PyTuple_Size(statements), places = 16;
    if (count > MOST_STATEMENTS)
        return false;
    while (places < 6 * count)
        places *= 2;
    writer->groups = PyMem_Calloc(4 * count + 1, sizeof *writer->groups);
    writer->places = PyMem_Calloc(places, sizeof *writer->places);
    if (!writer->groups || !writer->places) {
        PyErr_NoMemory();
        return false;
    }
    writer->mask = places - 1;
    writer->used = 1;
    for (size_t i = 0; i < count; i++)
        if (!enter(writer, PyTuple_GetItem(statements, (Py_ssize_t)i)))
            return false;
    for (uint32_t graph = writer->groups[0].first; graph; graph = writer->groups[graph].next)
        if (!add_graph(writer, &writer->groups[graph]))
            return false;
    return true;
}

/* Takes IRIs and prefixes in turn, each with a NUL after it; false: they are more than are known here. */
static bool take_namespaces(Writer *writer, const char *at, const char *end)
{
    for (; at < end; writer->count++) {
        if (writer->count == MOST_NAMESPACES)
            return false;
        Namespace *namespace = &writer->namespaces[writer->count];
        namespace->iri = at;
        namespace->size = strlen(at);
        namespace->prefix = at + namespace->size + 1;
        if (!namespace->size || namespace->prefix >= end)
            return false;
        namespace->prefix_size = strlen(namespace->prefix);
        at = namespace->prefix + namespace->prefix_size + 1;
    }
    return true;
}

PyObject *turtle_statements(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *statements, *namespaces, *tuple, *result = NULL;
    char *start;
    Py_ssize_t size;
    int graphs;
    Writer writer = {0};
    if (!PyArg_ParseTuple(arguments, "OSp:turtle_statements", &statements, &namespaces, &graphs) ||
        PyBytes_AsStringAndSize(namespaces, &start, &size) < 0 || !(tuple = PySequence_Tuple(statements)))
        return NULL;
    writer.graphs = graphs;
    if (take_namespaces(&writer, start, start + size) && add_statements(&writer, tuple))
        result = PyBytes_FromStringAndSize((const char *)writer.text.start, (Py_ssize_t)writer.text.size);
    Py_DECREF(tuple);
    PyMem_Free(writer.groups);
    PyMem_Free(writer.places);
    PyMem_Free(writer.text.start);
    /* Python rejects a term that is not UTF-8 */
    return result ? result : PyErr_Occurred() ? none_if(PyExc_UnicodeEncodeError) : Py_NewRef(Py_None);
}
