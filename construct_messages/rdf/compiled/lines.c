/* Lines of N-Triples and N-Quads, taken apart into terms; canonical ones, only checked, or written.
 *
 * Beside logs/lines/decoder.py. RDF 1.2 N-Quads, section 2; N-Triples, section 4.
 */

#include "wire.h"

#include <stdlib.h>

/* Where a subject or the name of a graph ends. */
static const byte *node_end(const byte *start)
{
    return *start == '<' ? iri_term_end(start) : blank_end(start);
}

/* --- statements --------------------------------------------------------------------------------------------------- */

enum { MOST_NESTED = 16 };  /* triple terms; deeper ones are left to Python */

/* What was found, and the line that is read. */
typedef struct {
    PyObject *terms, *blanks, *others;
    bool triple_terms;  /* whether they are known */
    const byte *limit;  /* the LF of the line */
    bool has_blank;     /* whether a triple term of the line has one */
    Buffer text;        /* a term in canonical form that is written in another one */
    Known known;        /* terms by the bytes they are written in */
} Found;

/* A function that reads returns the end of what it read; NULL: it is not known here, or there is an exception. */
static const byte *read_term(Found *found, const byte *at, int depth, PyObject **term);

static const byte *space_end(const byte *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

/* Reads up to so many terms with what separates them, each in a position where it may be. */
static const byte *read_terms(Found *found, const byte *at, int depth, int most, PyObject **terms)
{
    at = space_end(at);
    for (int i = 0; at && i < most && *at != '.'; i++) {
        bool may_be = *at == '<' || (*at == '_' && i != 1) || (*at == '"' && i == 2);
        at = may_be && (i == 2 || at[1] != '<') ? read_term(found, at, depth, &terms[i]) : NULL;
        at = at ? space_end(at) : NULL;
    }
    return at && terms[2] ? at : NULL;
}

static const byte *read_triple(Found *found, const byte *at, int depth, PyObject **term)
{
    PyObject *parts[3] = {NULL};
    if (!found->triple_terms || depth == MOST_NESTED || at[2] != '(')
        return NULL;
    at = read_terms(found, at + 3, depth + 1, 3, parts);
    if (at && at[0] == ')' && at[1] == '>' && at[2] == '>') {
        for (int i = 0; i < 3; i++)
            found->has_blank |= PyUnicode_ReadChar(parts[i], 0) == '_';
        *term = PyUnicode_FromFormat("<<( %U %U %U )>>", parts[0], parts[1], parts[2]);
    }
    for (int i = 0; i < 3; i++)
        Py_XDECREF(parts[i]);
    return *term ? at + 3 : NULL;
}

/* Where an IRI or a literal ends in any form. */
static const byte *written_end(const byte *at, const byte *limit)
{
    if (*at == '"') {
        for (at++; at < limit && *at != '"'; at++)
            if (*at == '\\')
                at++;
        if (at++ >= limit)
            return NULL;
        if (*at == '@')
            do
                at++;
            while (is(*at, LETTER | DIGIT) || *at == '-');
        if (at[0] != '^' || at[1] != '^')
            return at;
        at += 2;
    }
    const byte *end = *at == '<' ? memchr(at, '>', (size_t)(limit - at)) : NULL;
    return end ? end + 1 : NULL;
}

/* Makes the term of other than canonical form that is written there; NULL: it is not known, or an error. */
static PyObject *make_term(Buffer *text, const byte *at, const byte *end)
{
    static const char string[] = "^^<http://www.w3.org/2001/XMLSchema#string>";
    text->size = 0;
    if (*at == '"') {
        const byte *quote = end;
        while (*--quote != '"')
            ;
        if (!add(text, "\"", 1) || !add_unescaped(text, at + 1, quote, IN_LITERAL) || !add(text, "\"", 1))
            return NULL;
        size_t size = text->size;
        for (at = quote + 1; at < end && *at != '<'; at++)
            if (!add(text, &(byte){is(*at, LETTER) ? *at | 0x20 : *at}, 1))
                return NULL;
        if (!add_unescaped(text, at, end, IN_IRI))
            return NULL;
        if (text->size - size == strlen(string) && memcmp(text->start + size, string, strlen(string)) == 0)
            text->size = size;
    } else if (!add_unescaped(text, at, end, IN_IRI)) {
        return NULL;
    }
    if (!add(text, "", 1))  /* the NUL ends the scan */
        return NULL;
    const byte *start = text->start, *whole = *start == '"' ? literal_end(start) : iri_term_end(start);
    return whole == start + text->size - 1 ? text_of(start, whole) : NULL;
}

static const byte *read_term(Found *found, const byte *at, int depth, PyObject **term)
{
    if (at[0] == '<' && at[1] == '<')
        return read_triple(found, at, depth, term);
    const byte *canonical = *at == '_' ? blank_end(at) : *at == '"' ? literal_end(at) : NULL;
    const byte *end = canonical || *at == '_' ? canonical : written_end(at, found->limit);
    if (!end || (*term = find_term(&found->known, at, end)))
        return end;
    if (*at == '<')
        canonical = iri_term_end(at);
    *term = canonical == end ? text_of(at, end) : make_term(&found->text, at, end);
    if (!*term)
        return NULL;
    keep_term(&found->known, at, end, *term);
    return end;
}

/* Whether a statement ends there with its line; a comment with an @ may delimit messages. */
static bool is_end(const byte *at, const byte *limit)
{
    if (*at != '.')
        return false;
    at = space_end(at + 1);
    if (*at == '#')
        while (at && at < limit && *at != '@' && *at != '\r')
            at = *at >= 0x80 ? character_end(at) : *at ? at + 1 : NULL;
    return at == limit;
}

/* Reads the statement of a line, and adds its terms: 1, or 0: it is not known; -1: an error. */
static int read_statement(Found *found, const byte *at, bool graphs, Py_ssize_t index)
{
    PyObject *terms[4] = {NULL};
    found->has_blank = false;
    at = read_terms(found, at, 0, graphs ? 4 : 3, terms);
    int done = at && is_end(at, found->limit);
    for (int i = 0; i < 4; i++) {
        if (done <= 0) {
            Py_XDECREF(terms[i]);
            continue;
        }
        bool has_blank = terms[i] && PyUnicode_ReadChar(terms[i], 0) == '_';
        has_blank |= i == 2 && found->has_blank;
        if (!append(found->terms, terms[i] ? terms[i] : Py_NewRef(Py_None)) ||
            (has_blank && !append(found->blanks, PyLong_FromSsize_t(4 * index + i))))
            done = -1;
    }
    return PyErr_Occurred() ? -1 : done;
}

static bool read_lines(Found *found, const byte *at, const byte *limit, bool graphs)
{
    const byte *other = at;
    Py_ssize_t count = 0;
    while (at < limit && (found->limit = memchr(at, '\n', (size_t)(limit - at)))) {
        int done = read_statement(found, at, graphs, count);
        if (done < 0 || (done && !append(found->others, text_of(other, at))))
            return false;
        at = found->limit + 1;
        if (done) {
            count++;
            other = at;
        }
    }
    return append(found->others, text_of(other, limit));
}

PyObject *statements(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *lines, *result = NULL;
    char *start;
    Py_ssize_t size;
    int graphs, triple_terms;
    if (!PyArg_ParseTuple(arguments, "Spp:statements", &lines, &graphs, &triple_terms) ||
        PyBytes_AsStringAndSize(lines, &start, &size) < 0)
        return NULL;
    Found found = {PyList_New(0), PyList_New(0), PyList_New(0), triple_terms, .known = {{{NULL, 0, NULL}}}};
    if (found.terms && found.blanks && found.others &&
        read_lines(&found, (const byte *)start, (const byte *)start + size, graphs))
        result = PyTuple_Pack(3, found.terms, found.blanks, found.others);
    Py_XDECREF(found.terms);
    Py_XDECREF(found.blanks);
    Py_XDECREF(found.others);
    PyMem_Free(found.text.start);
    forget(&found.known);
    return result ? result : none_if(PyExc_UnicodeDecodeError);
}

/* --- documents ---------------------------------------------------------------------------------------------------- */

/* A line, for comparison: by a number that is another one for nearly every other line of its document. */
typedef struct {
    uint64_t number;
    const byte *start;
    size_t size;
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

/* The lines of a document, whose memory is used again, and the IRIs of all documents. */
typedef struct {
    Line *lines;
    size_t allocated;
    Known known;
} Look;

/* Where an IRI ends, in angle brackets; most were met before. */
static const byte *known_iri_end(Known *known, const byte *start, const byte *limit)
{
    const byte *end = memchr(start, '>', (size_t)(limit - start));
    PyObject *found = end ? find_term(known, start, end + 1) : NULL;
    Py_XDECREF(found);
    if (found)
        return end + 1;
    end = iri_term_end(start);
    if (end)
        keep_term(known, start, end, Py_None);
    return end;
}

/* Where a term ends that is in canonical form, may be in this position, and has a space after it. */
static const byte *canonical_end(Known *known, const byte *at, const byte *limit, int part)
{
    const byte *end = *at == '<' ? known_iri_end(known, at, limit) : part == 1 ? NULL : *at == '_' ? blank_end(at) :
                      part == 2 ? literal_end(at) : NULL;
    return end && *end == ' ' ? end : NULL;
}

/* The canonical statement at the start of a line, whose other fields are set; false: there is none.
 *
 * Its number is one of the ends of its terms and of the middle of its object.
 */
static bool parse(Line *line, const byte *limit, bool graphs, Known *known)
{
    const byte *at = line->start, *end;
    line->number = 0;
    for (int part = 0; part < (graphs ? 4 : 3) && !(part == 3 && *at == '.'); part++, at = end + 1) {
        if (!(end = canonical_end(known, at, limit, part)))
            return false;
        size_t size = (size_t)(end - at);
        line->number = mixed(line->number, end, size);
        if (part == 2)
            line->number = mixed(line->number, at + size / 2, size / 2);
    }
    line->size = (size_t)(at + 2 - line->start);
    return at[0] == '.' && at[1] == '\n';
}

/* The number of statements of a document, one or more, each of which is another one; 0: it is something else; -1: there
 * is no memory. */
static Py_ssize_t count_statements(Look *look, const byte *at, const byte *limit, bool graphs)
{
    size_t count = 0;
    for (; at < limit; at += look->lines[count++].size) {
        if (count == look->allocated) {
            size_t more = 2 * count + 64;
            Line *lines = PyMem_Realloc(look->lines, more * sizeof *lines);
            if (!lines)
                return -1;
            look->lines = lines;
            look->allocated = more;
        }
        look->lines[count].start = at;
        if (!parse(&look->lines[count], limit, graphs, &look->known))
            return 0;
    }
    return are_different(look->lines, count) ? (Py_ssize_t)count : 0;
}

PyObject *count_canonical(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *documents;
    int graphs;
    if (!PyArg_ParseTuple(arguments, "O!p:count_canonical", &PyList_Type, &documents, &graphs))
        return NULL;
    Look look = {NULL, 0, {{{NULL, 0, NULL}}}};
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
    forget(&look.known);
    if (found < 0)
        return found == -1 ? PyErr_NoMemory() : NULL;
    return found ? PyLong_FromSsize_t(count) : Py_NewRef(Py_None);
}

/* --- columns ------------------------------------------------------------------------------------------------------ */

/* Terms as Arrow has strings: where each ends, and their bytes. */
typedef struct {
    Buffer ends, bytes;
} Column;

/* Canonical statements; of the last column, the bits of the cells that are not empty; all other lines. */
typedef struct {
    Column columns[4];
    Buffer bits, others;
    PyObject *numbers;  /* of the other lines, from 0 */
    const byte *scope;
    size_t scope_size;
    size_t count;
    Known known;
} Table;

/* Ends a cell; false: an error. */
static bool end_cell(Column *column)
{
    if (column->bytes.size > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "more than 2 GB of terms");
        return false;
    }
    int32_t end = (int32_t)column->bytes.size;
    return add(&column->ends, &end, sizeof end);
}

/* Finds the terms of the canonical statement that a line is; returns how many there are, 0: it is something else. */
static int find_terms(Known *known, const byte *at, const byte *limit, int most, const byte *starts[4],
                      const byte *ends[4])
{
    for (int part = 0;; part++, at = ends[part - 1] + 1) {
        if (part >= 3 && *at == '.')
            return at + 1 == limit ? part : 0;
        if (part == most || !(ends[part] = canonical_end(known, at, limit, part)))
            return 0;
        starts[part] = at;
    }
}

/* Adds a row; labels of blank nodes begin with the scope. */
static bool add_row(Table *table, int found, int width, const byte *starts[4], const byte *ends[4])
{
    if (table->count % 8 == 0 && !add(&table->bits, "", 1))
        return false;
    for (int part = 0; part < width; part++) {
        Column *column = &table->columns[part];
        if (part < found) {
            const byte *start = starts[part];
            if (*start == '_') {
                if (!add(&column->bytes, start, 2) || !add(&column->bytes, table->scope, table->scope_size))
                    return false;
                start += 2;
            }
            if (!add(&column->bytes, start, (size_t)(ends[part] - start)))
                return false;
            if (part == 3)
                table->bits.start[table->count / 8] |= (byte)(1 << table->count % 8);
        }
        if (!end_cell(column))
            return false;
    }
    table->count++;
    return true;
}

static bool fill(Table *table, const byte *at, const byte *limit, int width)
{
    const byte *starts[4], *ends[4], *end;
    for (int part = 0; part < width; part++)
        if (!end_cell(&table->columns[part]))
            return false;
    for (Py_ssize_t number = 0; at < limit && (end = memchr(at, '\n', (size_t)(limit - at))); number++, at = end + 1) {
        int found = find_terms(&table->known, at, end, width, starts, ends);
        if (found ? !add_row(table, found, width, starts, ends)
                  : !add(&table->others, at, (size_t)(end + 1 - at)) ||
                        !append(table->numbers, PyLong_FromSsize_t(number)))
            return false;
    }
    return true;
}

static PyObject *bytes_of(const Buffer *buffer)
{
    return PyBytes_FromStringAndSize((const char *)buffer->start, (Py_ssize_t)buffer->size);
}

PyObject *columns(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *lines, *result = NULL, *buffers = PyList_New(0);
    char *start, *scope;
    Py_ssize_t size, scope_size;
    int graphs;
    Table table = {.numbers = PyList_New(0)};
    if (buffers && table.numbers && PyArg_ParseTuple(arguments, "Spy#:columns", &lines, &graphs, &scope, &scope_size) &&
        PyBytes_AsStringAndSize(lines, &start, &size) == 0) {
        int width = graphs ? 4 : 3;
        table.scope = (const byte *)scope;
        table.scope_size = (size_t)scope_size;
        bool done = fill(&table, (const byte *)start, (const byte *)start + size, width);
        for (int part = 0; done && part < width; part++)
            done = append(buffers, bytes_of(&table.columns[part].ends)) &&
                   append(buffers, bytes_of(&table.columns[part].bytes));
        if (done && append(buffers, bytes_of(&table.bits)))
            result = Py_BuildValue("nONO", (Py_ssize_t)table.count, buffers, bytes_of(&table.others), table.numbers);
    }
    for (int part = 0; part < 4; part++) {
        PyMem_Free(table.columns[part].ends.start);
        PyMem_Free(table.columns[part].bytes.start);
    }
    PyMem_Free(table.bits.start);
    PyMem_Free(table.others.start);
    forget(&table.known);
    Py_XDECREF(table.numbers);
    Py_XDECREF(buffers);
    return result;
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
