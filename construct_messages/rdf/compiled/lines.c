/* Canonical lines of N-Triples and N-Quads: taken apart into terms, only checked, or written.
 *
 * Beside logs/lines/decoder.py. RDF 1.2 N-Quads, section 2; N-Triples, section 4.
 */

#include "wire.h"

#include <stdlib.h>

/* The terms of a statement; without a graph, that has no start. */
typedef struct {
    const byte *start[4], *end[4];
} Statement;

/* Where a subject or the name of a graph ends. */
static const byte *node_end(const byte *start)
{
    return *start == '<' ? iri_term_end(start) : blank_end(start);
}

/* A predicate that was met, in lines that are still there; without one, it has no start. */
typedef struct {
    const byte *start;
    size_t size;
} Predicate;

/* Parses the statement at `at`. Returns the byte after its LF, or NULL.
 *
 * `before` is the previous statement, whose subject is tried first; it may alias `statement`. `likely` is the predicate
 * that is tried first.
 */
static const byte *statement_end(const byte *at, const byte *limit, bool graphs, Statement *statement,
                                 const Statement *before, Predicate likely)
{
    const byte *end = NULL;
    if (before->start[0]) {
        size_t size = (size_t)(before->end[0] - before->start[0]);
        if (size < (size_t)(limit - at) && at[size] == ' ' && memcmp(at, before->start[0], size) == 0)
            end = at + size;
    }
    statement->start[0] = at;
    statement->end[0] = end = end ? end : node_end(at);
    if (!end || *end++ != ' ')
        return NULL;
    statement->start[1] = end;
    if (likely.start && likely.size < (size_t)(limit - end) && memcmp(end, likely.start, likely.size) == 0)
        end += likely.size;
    else
        end = iri_term_end(end);
    statement->end[1] = end;
    if (!end || *end++ != ' ')
        return NULL;
    statement->start[2] = end;
    statement->end[2] = end = *end == '"' ? literal_end(end) : node_end(end);
    if (!end || *end++ != ' ')
        return NULL;
    statement->start[3] = NULL;
    if (graphs && *end != '.') {
        statement->start[3] = end;
        statement->end[3] = end = node_end(end);
        if (!end || *end++ != ' ')
            return NULL;
    }
    return end[0] == '.' && end[1] == '\n' ? end + 2 : NULL;
}

/* --- statements --------------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject *terms, *blanks, *others;
    Known known;
} Found;

static bool add_statement(Found *found, const Statement *statement, Py_ssize_t index)
{
    for (int part = 0; part < 4; part++) {
        const byte *start = statement->start[part];
        PyObject *term = start ? known_term(&found->known, start, statement->end[part]) : Py_NewRef(Py_None);
        if (!append(found->terms, term))
            return false;
        if (start && *start == '_' && !append(found->blanks, PyLong_FromSsize_t(4 * index + part)))
            return false;
    }
    return true;
}

static bool read_lines(Found *found, const byte *at, const byte *limit, bool graphs)
{
    Statement statements[2] = {{{NULL}, {NULL}}, {{NULL}, {NULL}}};
    const byte *other = at;
    Py_ssize_t count = 0;
    while (at < limit) {
        Statement *statement = &statements[count & 1];
        const byte *end = statement_end(at, limit, graphs, statement, &statements[~count & 1], (Predicate){0});
        if (end) {
            if (!append(found->others, text_of(other, at)) || !add_statement(found, statement, count++))
                return false;
            other = at = end;
        } else {
            at = memchr(at, '\n', (size_t)(limit - at));
            at = at ? at + 1 : limit;
        }
    }
    return append(found->others, text_of(other, limit));
}

PyObject *statements(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *lines, *result = NULL;
    char *start;
    Py_ssize_t size;
    int graphs;
    if (!PyArg_ParseTuple(arguments, "Sp:statements", &lines, &graphs) ||
        PyBytes_AsStringAndSize(lines, &start, &size) < 0)
        return NULL;
    Found found = {PyList_New(0), PyList_New(0), PyList_New(0), {{{NULL, 0, NULL}}}};
    if (found.terms && found.blanks && found.others &&
        read_lines(&found, (const byte *)start, (const byte *)start + size, graphs))
        result = PyTuple_Pack(3, found.terms, found.blanks, found.others);
    Py_XDECREF(found.terms);
    Py_XDECREF(found.blanks);
    Py_XDECREF(found.others);
    forget(&found.known);
    return result ? result : none_if(PyExc_UnicodeDecodeError);
}

/* --- documents ---------------------------------------------------------------------------------------------------- */

/* A line, for comparison: by a number that is another one for nearly every other line of its document. */
typedef struct {
    uint64_t number;
    const byte *start;
    size_t size;
    Predicate predicate;
} Line;

static int compared(const void *left, const void *right)
{
    const Line *a = left, *b = right;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    return memcmp(a->start, b->start, a->size);
}

/* A number, mixed with the last bytes before an end. */
static uint64_t mixed(uint64_t number, const byte *end, size_t size)
{
    uint64_t part = 0;
    if (size > sizeof part)
        size = sizeof part;
    memcpy(&part, end - size, size);
    number = (number ^ part) * UINT64_C(0x9E3779B97F4A7C15);
    return number ^ number >> 29;
}

/* The number of a line, of the ends of its terms and of the middle of its object. */
static uint64_t number_of(const Statement *statement, size_t size)
{
    uint64_t number = size;
    for (int part = 0; part < 4 && statement->start[part]; part++)
        number = mixed(number, statement->end[part], (size_t)(statement->end[part] - statement->start[part]));
    size_t half = (size_t)(statement->end[2] - statement->start[2]) / 2;
    return mixed(number, statement->start[2] + half, half);
}

enum { FEW = 64 };

static bool are_different(Line *lines, size_t count)
{
    if (count <= FEW) {  /* numbers alone are compared, in less time than it takes to sort the lines */
        for (size_t i = 1; i < count; i++)
            for (size_t j = 0; j < i; j++)
                if (lines[i].number == lines[j].number && compared(&lines[i], &lines[j]) == 0)
                    return false;
        return true;
    }
    qsort(lines, count, sizeof *lines, compared);  /* whatever the numbers are, not in quadratic time */
    for (size_t i = 1; i < count; i++)
        if (compared(&lines[i - 1], &lines[i]) == 0)
            return false;
    return true;
}

/* The lines of the documents that were looked at; their memory is used again. */
typedef struct {
    Line *lines;
    size_t count, allocated;
} Look;

/* The number of statements of a document, one or more, each of which is another one; 0: it is something else; -1: there
 * is no memory.
 *
 * Most documents have the predicates of the one before, in its order.
 */
static Py_ssize_t count_statements(Look *look, const byte *at, const byte *limit, bool graphs)
{
    Statement statement = {{NULL}, {NULL}};
    size_t count = 0, before = look->count;
    look->count = 0;  /* its lines are replaced from the first one on */
    while (at < limit) {
        Predicate likely = count < before ? look->lines[count].predicate : (Predicate){0};
        const byte *end = statement_end(at, limit, graphs, &statement, &statement, likely);
        if (!end)
            return 0;
        if (count == look->allocated) {
            size_t more = 2 * count + 64;
            Line *lines = PyMem_Realloc(look->lines, more * sizeof *lines);
            if (!lines)
                return -1;
            look->lines = lines;
            look->allocated = more;
        }
        size_t size = (size_t)(end - at);
        Predicate predicate = {statement.start[1], (size_t)(statement.end[1] - statement.start[1])};
        look->lines[count++] = (Line){number_of(&statement, size), at, size, predicate};
        at = end;
    }
    look->count = count;
    return are_different(look->lines, count) ? (Py_ssize_t)count : 0;
}

PyObject *count_canonical(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *documents;
    int graphs;
    if (!PyArg_ParseTuple(arguments, "O!p:count_canonical", &PyList_Type, &documents, &graphs))
        return NULL;
    Look look = {NULL, 0, 0};
    Py_ssize_t count = 0, found = 1;
    for (Py_ssize_t i = 0; found > 0 && i < PyList_Size(documents); i++) {
        char *start;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyList_GetItem(documents, i), &start, &size) < 0)
            found = -2;
        else
            found = count_statements(&look, (const byte *)start, (const byte *)start + size, graphs);
        count += found;
    }
    PyMem_Free(look.lines);
    if (found < 0)
        return found == -1 ? PyErr_NoMemory() : NULL;
    return found ? PyLong_FromSsize_t(count) : Py_NewRef(Py_None);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* Adds a term and a space; false: it is none that is known in this position, or there is an error. */
static bool add_term(Buffer *lines, PyObject *term, int part, bool known)
{
    Py_ssize_t size;
    if (!PyUnicode_CheckExact(term))
        return false;
    const byte *start = (const byte *)PyUnicode_AsUTF8AndSize(term, &size);
    if (!start)
        return false;
    if (!known) {
        const byte *end;
        if (part == 1)
            end = *start == '<' ? iri_term_end(start) : NULL;
        else
            end = part == 2 && *start == '"' ? literal_end(start) : node_end(start);
        if (end != start + size)
            return false;
    }
    return add(lines, start, (size_t)size) && add(lines, " ", 1);
}

/* Adds the line of a statement. `subject` is that of the one before, which most have. */
static bool add_line(Buffer *lines, PyObject *statement, PyObject **subject)
{
    if (!PyTuple_Check(statement) || PyTuple_Size(statement) != 4)
        return false;
    for (int part = 0; part < 4; part++) {
        PyObject *term = PyTuple_GetItem(statement, part);
        if (part == 3 && term == Py_None)
            break;
        if (!add_term(lines, term, part, part == 0 && term == *subject))
            return false;
    }
    *subject = PyTuple_GetItem(statement, 0);
    return add(lines, ".\n", 2);
}

PyObject *lines_of(PyObject *Py_UNUSED(module), PyObject *statements)
{
    PyObject *subject = NULL, *result = NULL, *all = PySequence_Tuple(statements);  /* which keeps the subject */
    if (!all)
        return NULL;
    Buffer lines = {0};
    Py_ssize_t count = PyTuple_Size(all), i = 0;
    while (i < count && add_line(&lines, PyTuple_GetItem(all, i), &subject))
        i++;
    if (i == count)
        result = PyBytes_FromStringAndSize((const char *)lines.start, (Py_ssize_t)lines.size);
    Py_DECREF(all);
    PyMem_Free(lines.start);
    return result ? result : PyErr_Occurred() ? none_if(PyExc_UnicodeEncodeError) : Py_NewRef(Py_None);
}
