/* What the sources of construct_messages.rdf.compiled._wire share.
 *
 * The module reads and writes what logs nearly always hold, and leaves everything else to Python: a function returns
 * None, or stops, where it meets anything that it does not know. It knows less than the Python code beside it, and
 * nothing that that refuses, so that errors, their messages and their positions are Python's alone. Buffers end with a
 * NUL that is no part of them, as those of Python's bytes do: it ends every scan. The limited API only, so that one
 * build is for all versions of Python. docs/decisions/090-a-compiled-module.md
 */

#ifndef WIRE_H
#define WIRE_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef unsigned char byte;

/* --- terms.c: the canonical terms of rdf/terms/grammar.py ------------------------------------------------------------ */

enum {
    IRI_CHAR = 1,     /* of ASCII, anywhere in a path; also the question mark */
    SCHEME_CHAR = 2,
    HOST_CHAR = 4,
    LABEL_CHAR = 8,   /* of a blank node */
    LETTER = 16,
    DIGIT = 32,
    HEX_DIGIT = 64,
    TEXT_CHAR = 128,  /* of ASCII, unescaped in a literal */
};

extern const byte kinds[256];

/* Whether a byte is of any of these kinds. */
static inline bool is(byte character, int of)
{
    return (kinds[character] & of) != 0;
}

/* The character of UTF-8 that begins there, beyond ASCII, and its end; 0: there is none. */
uint32_t character(const byte *start, const byte **end);

/* The character that an escape stands for, which begins with a backslash, and its end; 0: none that is known. */
uint32_t escaped(const byte *start, const byte **end);

extern const byte short_escapes[128];  /* the letters after the backslash, by characters that literals have no other way */

/* Each returns the end of what begins there; NULL: nothing that is known does. */
const byte *character_end(const byte *start);        /* of UTF-8 beyond ASCII, without U+FFFE and U+FFFF */
const byte *digits_end(const byte *start);
const byte *iri_end(const byte *start);              /* of an absolute IRI, before what no IRI has */
const byte *iri_part_end(const byte *start);         /* of its path, query and fragment, which may be empty */
const byte *iri_term_end(const byte *start);         /* in angle brackets */
const byte *local_end(const byte *start);            /* of a name after its colon; it may be empty */
const byte *local_run_end(const byte *start, bool is_first);  /* before what it cannot have unescaped; dots may end it */
const byte *blank_end(const byte *start);            /* with its underscore and colon */
const byte *string_end(const byte *start);           /* in quotes */
const byte *literal_end(const byte *start);          /* a whole literal */
const byte *suffix_end(const byte *start);           /* what follows the closing quote of one, if anything */

/* --- objects.c: objects of Python ---------------------------------------------------------------------------------- */

PyObject *text_of(const byte *start, const byte *end);
bool append(PyObject *list, PyObject *item);  /* takes the reference; false: an error, also if the item is NULL */
PyObject *none_if(PyObject *exception);       /* NULL where another exception is set */

/* Bytes that grow; PyMem_Free takes their memory. */
typedef struct {
    byte *start;
    size_t size, allocated;
} Buffer;

bool grow(Buffer *buffer, size_t size);       /* makes room for more bytes; false: an error */
bool add_in_literal(Buffer *buffer, uint32_t code);  /* a character, with a short escape if it has one */

static inline bool add(Buffer *buffer, const void *bytes, size_t size)
{
    if (size > buffer->allocated - buffer->size && !grow(buffer, size))
        return false;
    if (size)
        memcpy(buffer->start + buffer->size, bytes, size);
    buffer->size += size;
    return true;
}

/* Adds text with the characters that its escapes stand for, or in a literal with canonical escapes; false: some are not
 * known, or allowed there, or an error. */
typedef enum { AS_TEXT, IN_LITERAL, IN_IRI } Place;
bool add_unescaped(Buffer *buffer, const byte *at, const byte *end, Place place);

enum { KNOWN = 1 << 9 };

/* Terms that were met, by their bytes, which have to stay where they are. */
typedef struct {
    struct {
        const byte *start;
        size_t size;
        PyObject *term;
    } slots[KNOWN];
} Known;

PyObject *find_term(const Known *known, const byte *start, const byte *end);  /* NULL: it was not met */
void keep_term(Known *known, const byte *start, const byte *end, PyObject *term);
PyObject *known_term(Known *known, const byte *start, const byte *end);
void forget(Known *known);

/* --- the functions of the module, which compiled/__init__.py describes --------------------------------------------- */

PyObject *are_distinct(PyObject *module, PyObject *terms);
PyObject *statements(PyObject *module, PyObject *arguments);
PyObject *columns(PyObject *module, PyObject *arguments);
PyObject *count_canonical(PyObject *module, PyObject *arguments);
PyObject *lines_of(PyObject *module, PyObject *statements);
PyObject *jelly_rows(PyObject *module, PyObject *arguments);
PyObject *jelly_statements(PyObject *module, PyObject *arguments);
PyObject *turtle_messages(PyObject *module, PyObject *arguments);
PyObject *turtle_statements(PyObject *module, PyObject *arguments);

#endif
