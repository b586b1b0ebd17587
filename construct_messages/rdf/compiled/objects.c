/* Makes objects of Python, and bytes that grow; a term that comes again soon is the same object. */

#include "wire.h"

enum { LONGEST_KNOWN = 256 };

PyObject *text_of(const byte *start, const byte *end)
{
    return PyUnicode_DecodeUTF8((const char *)start, end - start, "strict");
}

bool append(PyObject *list, PyObject *item)
{
    bool done = item && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return done;
}

PyObject *none_if(PyObject *exception)
{
    if (!PyErr_Occurred() || !PyErr_ExceptionMatches(exception))
        return NULL;
    PyErr_Clear();
    return Py_NewRef(Py_None);
}

bool grow(Buffer *buffer, size_t size)
{
    if (size > SIZE_MAX / 4 - buffer->size) {
        PyErr_NoMemory();
        return false;
    }
    size_t allocated = 2 * (buffer->size + size) + 64;
    byte *start = PyMem_Realloc(buffer->start, allocated);
    if (!start) {
        PyErr_NoMemory();
        return false;
    }
    buffer->start = start;
    buffer->allocated = allocated;
    return true;
}

static bool add_character(Buffer *buffer, uint32_t code)
{
    byte bytes[4], *at = bytes;
    if (code < 0x80) {
        *at++ = (byte)code;
    } else {
        int rest = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        *at++ = (byte)((0xF80 >> rest & 0xFF) | code >> 6 * rest);
        while (rest--)
            *at++ = (byte)(0x80 | (code >> 6 * rest & 0x3F));
    }
    return add(buffer, bytes, (size_t)(at - bytes));
}

bool add_in_literal(Buffer *buffer, uint32_t code)
{
    byte letter = code < 0x80 ? short_escapes[code] : 0;
    return letter ? add(buffer, (byte[]){'\\', letter}, 2) : add_character(buffer, code);
}

bool add_unescaped(Buffer *buffer, const byte *at, const byte *end, Place place)
{
    while (at < end) {
        const byte *plain = at;
        while (at < end && *at != '\\' && *at != '\t')
            at++;
        if (!add(buffer, plain, (size_t)(at - plain)))
            return false;
        if (at == end)
            return true;
        bool by_number = *at == '\\' && (at[1] == 'u' || at[1] == 'U');
        uint32_t code = *at == '\t' ? *at++ : escaped(at, &at);
        if (!code || at > end || (place == IN_IRI && (!by_number || (code < 0x80 && !is((byte)code, IRI_CHAR)))) ||
            !(place == IN_LITERAL ? add_in_literal(buffer, code) : add_character(buffer, code)))
            return false;
    }
    return true;
}

/* The place of a term among those that were met; KNOWN: it is not worth one. */
static size_t place_of(const byte *start, const byte *end)
{
    size_t size = (size_t)(end - start);
    uint64_t last;
    if (size > LONGEST_KNOWN || size < sizeof last)
        return KNOWN;
    memcpy(&last, end - sizeof last, sizeof last);
    return (size_t)(((last ^ size) * UINT64_C(0x9E3779B97F4A7C15)) >> 55) % KNOWN;
}

PyObject *find_term(const Known *known, const byte *start, const byte *end)
{
    size_t size = (size_t)(end - start), place = place_of(start, end);
    if (place < KNOWN && known->slots[place].size == size && memcmp(known->slots[place].start, start, size) == 0)
        return Py_NewRef(known->slots[place].term);
    return NULL;
}

void keep_term(Known *known, const byte *start, const byte *end, PyObject *term)
{
    size_t place = place_of(start, end);
    if (place == KNOWN)
        return;
    Py_XDECREF(known->slots[place].term);
    known->slots[place].start = start;
    known->slots[place].size = (size_t)(end - start);
    known->slots[place].term = Py_NewRef(term);
}

PyObject *known_term(Known *known, const byte *start, const byte *end)
{
    PyObject *term = find_term(known, start, end);
    if (!term && (term = text_of(start, end)))
        keep_term(known, start, end, term);
    return term;
}

void forget(Known *known)
{
    for (size_t place = 0; place < KNOWN; place++) {
        Py_CLEAR(known->slots[place].term);
        known->slots[place].size = 0;
    }
}

/* A number for the terms of a statement, never 0; 0: an error. */
static uint64_t statement_hash(PyObject *terms, Py_ssize_t first)
{
    uint64_t hash = 0;
    for (Py_ssize_t place = first; place < first + 4; place++) {
        PyObject *term = PySequence_GetItem(terms, place);
        Py_hash_t of_term = term ? PyObject_Hash(term) : -1;
        Py_XDECREF(term);
        if (of_term == -1)
            return 0;
        hash = (hash ^ (uint64_t)of_term) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return hash | 1;
}

PyObject *are_distinct(PyObject *Py_UNUSED(module), PyObject *terms)
{
    Py_ssize_t size = PySequence_Size(terms);
    if (size < 0)
        return NULL;
    size_t slots = 8;
    while (slots < (size_t)size / 2)
        slots *= 2;
    uint64_t *known = PyMem_Calloc(slots, sizeof *known);
    if (!known)
        return PyErr_NoMemory();
    bool distinct = true;
    for (Py_ssize_t first = 0; distinct && first + 4 <= size; first += 4) {
        uint64_t hash = statement_hash(terms, first);
        size_t place = (size_t)(hash >> 1) & (slots - 1);
        while (hash && known[place] && known[place] != hash)
            place = (place + 1) & (slots - 1);
        distinct = hash && !known[place];
        known[place] = hash;
    }
    PyMem_Free(known);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(distinct);
}
