/* Scans canonical terms of N-Triples and local names: expressions of rdf/terms/grammar.py as loops.
 *
 * RDF 1.2 N-Triples, sections 4 (canonical form) and 7 (grammar); RDF 1.2 Turtle, section 6.5 (PN_LOCAL); RFC 3987,
 * section 2.2; RFC 5646, section 2.1.
 */

#include "wire.h"

#define ALPHA (IRI_CHAR | SCHEME_CHAR | HOST_CHAR | LABEL_CHAR | LETTER | TEXT_CHAR)
#define A_TO_F (ALPHA | HEX_DIGIT)
#define NUMBER (IRI_CHAR | SCHEME_CHAR | HOST_CHAR | LABEL_CHAR | DIGIT | HEX_DIGIT | TEXT_CHAR)
#define IN_IRI (IRI_CHAR | TEXT_CHAR)

const byte kinds[256] = {
    [' '] = TEXT_CHAR, ['!'] = IN_IRI, ['#'] = TEXT_CHAR, ['$'] = IN_IRI, ['%'] = TEXT_CHAR, ['&'] = IN_IRI,
    ['\''] = IN_IRI, ['('] = IN_IRI, [')'] = IN_IRI, ['*'] = IN_IRI, ['+'] = IN_IRI | SCHEME_CHAR, [','] = IN_IRI,
    ['-'] = IN_IRI | SCHEME_CHAR | HOST_CHAR | LABEL_CHAR, ['.'] = IN_IRI | SCHEME_CHAR | HOST_CHAR | LABEL_CHAR,
    ['/'] = IN_IRI, ['0' ... '9'] = NUMBER, [':'] = IN_IRI, [';'] = IN_IRI, ['<'] = TEXT_CHAR, ['='] = IN_IRI,
    ['>'] = TEXT_CHAR, ['?'] = IN_IRI, ['@'] = IN_IRI, ['A' ... 'F'] = A_TO_F, ['G' ... 'Z'] = ALPHA,
    ['['] = TEXT_CHAR, [']'] = TEXT_CHAR, ['^'] = TEXT_CHAR, ['_'] = IN_IRI | HOST_CHAR | LABEL_CHAR,
    ['`'] = TEXT_CHAR, ['a' ... 'f'] = A_TO_F, ['g' ... 'z'] = ALPHA, ['{'] = TEXT_CHAR, ['|'] = TEXT_CHAR,
    ['}'] = TEXT_CHAR, ['~'] = IN_IRI | HOST_CHAR,
};

uint32_t character(const byte *start, const byte **end)
{
    byte first = *start, second = first ? start[1] : 0;
    if (first < 0xC2 || (second & 0xC0) != 0x80)
        return 0;
    if (first < 0xE0) {
        *end = start + 2;
        return (uint32_t)(first & 0x1F) << 6 | (second & 0x3F);
    }
    byte third = start[2];
    if ((third & 0xC0) != 0x80)
        return 0;
    if (first < 0xF0) {
        uint32_t code = (uint32_t)(first & 0x0F) << 12 | (uint32_t)(second & 0x3F) << 6 | (third & 0x3F);
        *end = start + 3;
        return code < 0x800 || (0xD800 <= code && code <= 0xDFFF) ? 0 : code;
    }
    byte fourth = start[3];
    if (first > 0xF4 || (fourth & 0xC0) != 0x80)
        return 0;
    uint32_t code = (uint32_t)(first & 0x07) << 18 | (uint32_t)(second & 0x3F) << 12 | (uint32_t)(third & 0x3F) << 6 |
                    (fourth & 0x3F);
    *end = start + 4;
    return code < 0x10000 || code > 0x10FFFF ? 0 : code;
}

const byte *digits_end(const byte *at)
{
    while (is(*at, DIGIT))
        at++;
    return at;
}

const byte *character_end(const byte *start)
{
    const byte *end;
    uint32_t code = character(start, &end);
    return code && code != 0xFFFE && code != 0xFFFF ? end : NULL;
}

/* --- escapes ------------------------------------------------------------------------------------------------------ */

const byte short_escapes[128] = {
    ['\t'] = 't', ['\b'] = 'b', ['\n'] = 'n', ['\r'] = 'r', ['\f'] = 'f', ['"'] = '"', ['\\'] = '\\'};

uint32_t escaped(const byte *at, const byte **end)
{
    static const byte characters[256] = {['t'] = '\t', ['b'] = '\b', ['n'] = '\n', ['r'] = '\r', ['f'] = '\f',
                                         ['"'] = '"', ['\''] = '\'', ['\\'] = '\\'};
    int digits = at[1] == 'u' ? 4 : at[1] == 'U' ? 8 : 0;
    *end = at + 2;
    if (!digits)
        return characters[at[1]];
    uint32_t code = 0;
    for (at += 2; digits; digits--, at++) {
        if (!is(*at, HEX_DIGIT))
            return 0;
        code = code << 4 | (uint32_t)(*at <= '9' ? *at - '0' : (*at | 0x20) - 'a' + 10);
    }
    *end = at;
    return code > 0x10FFFF || (0xD800 <= code && code <= 0xDFFF) ? 0 : code;
}

/* --- IRIs --------------------------------------------------------------------------------------------------------- */

/* OTHER_CHARS: those of the first two planes that are allowed anywhere. */
static bool is_iri_character(uint32_t code)
{
    return (0xA0 <= code && code <= 0xD7FF) || (0xF900 <= code && code <= 0xFDCF) ||
           (0xFDF0 <= code && code <= 0xFFEF) || (0x10000 <= code && code <= 0x1FFFD);
}

const byte *iri_end(const byte *at)
{
    if (!is(*at, LETTER))
        return NULL;
    while (is(*at, SCHEME_CHAR))
        at++;
    if (*at++ != ':')
        return NULL;
    if (at[0] == '/' && at[1] == '/') {  /* no user, no address in brackets */
        at += 2;
        while (is(*at, HOST_CHAR))
            at++;
        if (*at == ':')
            do
                at++;
            while (is(*at, DIGIT));
        if (*at != '/' && *at != '?' && *at != '#' && *at != '>' && *at != '\0')
            return NULL;
    }
    return iri_part_end(at);
}

const byte *iri_part_end(const byte *at)
{
    bool in_fragment = false;
    for (;;) {
        while (is(*at, IRI_CHAR))
            at++;
        if (*at == '%') {
            if (!is(at[1], HEX_DIGIT) || !is(at[2], HEX_DIGIT))
                return NULL;
            at += 3;
        } else if (*at == '#' && !in_fragment) {
            in_fragment = true;
            at++;
        } else if (*at >= 0x80) {
            const byte *end;
            if (!is_iri_character(character(at, &end)))
                return NULL;
            at = end;
        } else {
            return at;
        }
    }
}

const byte *iri_term_end(const byte *start)
{
    const byte *end = *start == '<' ? iri_end(start + 1) : NULL;
    return end && *end == '>' ? end + 1 : NULL;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* Characters of names beyond ASCII: PN_BASE, or PN_CHARS, of rdf/terms/grammar.py. */
static const byte *name_character_end(const byte *at, bool is_first)
{
    static const uint32_t ranges[][2] = {
        {0xC0, 0xD6}, {0xD8, 0xF6}, {0xF8, 0x2FF}, {0x370, 0x37D}, {0x37F, 0x1FFF}, {0x200C, 0x200D}, {0x2070, 0x218F},
        {0x2C00, 0x2FEF}, {0x3001, 0xD7FF}, {0xF900, 0xFDCF}, {0xFDF0, 0xFFFD}, {0x10000, 0xEFFFF},
        {0xB7, 0xB7}, {0x300, 0x36F}, {0x203F, 0x2040},  /* not the first */
    };
    const byte *end;
    uint32_t code = character(at, &end);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges - (is_first ? 3 : 0); i++)
        if (ranges[i][0] <= code && code <= ranges[i][1])
            return end;
    return NULL;
}

const byte *local_run_end(const byte *start, bool is_first)
{
    const byte *at = start;
    if (is_first && (*at == '-' || *at == '.'))
        return at;
    for (;;) {
        while (is(*at, LABEL_CHAR) || *at == ':')
            at++;
        const byte *end = NULL;
        if (*at == '%' && is(at[1], HEX_DIGIT) && is(at[2], HEX_DIGIT))
            end = at + 3;
        else if (*at >= 0x80)
            end = name_character_end(at, is_first && at == start);
        if (!end)
            return at;
        at = end;
    }
}

const byte *local_end(const byte *start)
{
    const byte *end = local_run_end(start, true);
    while (end > start && end[-1] == '.')
        end--;
    return end;
}

/* --- blank nodes and literals ------------------------------------------------------------------------------------- */

const byte *blank_end(const byte *at)
{
    if (at[0] != '_' || at[1] != ':' || !is(at[2], LABEL_CHAR) || at[2] == '-' || at[2] == '.')
        return NULL;
    at += 2;
    while (is(*at, LABEL_CHAR))
        at++;
    if (*at >= 0x80)  /* which may be of the label */
        return NULL;
    while (at[-1] == '.')
        at--;
    return at;
}

/* The datatypes that no literal states: NOT_A_DATATYPE. */
static bool is_no_datatype(const byte *start, size_t size)
{
    static const char *const refused[] = {
        "<http://www.w3.org/2001/XMLSchema#string>",
        "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
        "<http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString>",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (size == strlen(refused[i]) && memcmp(start, refused[i], size) == 0)
            return true;
    return false;
}

static size_t count_lower(const byte *at)
{
    size_t count = 0;
    while ('a' <= at[count] && at[count] <= 'z')
        count++;
    return count;
}

/* USUAL_LANGUAGE: a language, a script, a region in lower case. */
static const byte *language_end(const byte *at)
{
    size_t letters = count_lower(at);
    if (letters < 2 || letters > 3)
        return NULL;
    at += letters;
    if (*at == '-' && count_lower(at + 1) == 4)
        at += 5;
    if (*at == '-') {
        letters = count_lower(at + 1);
        if (letters != 2) {
            letters = 3;
            if (!is(at[1], DIGIT) || !is(at[2], DIGIT) || !is(at[3], DIGIT))
                return NULL;
        }
        at += letters + 1;
    }
    return is(*at, LETTER | DIGIT) || *at == '-' ? NULL : at;
}

const byte *suffix_end(const byte *start)
{
    if (*start == '@')
        return language_end(start + 1);
    if (*start != '^')
        return start;
    const byte *end = start[1] == '^' ? iri_term_end(start + 2) : NULL;
    return end && !is_no_datatype(start + 2, (size_t)(end - start - 2)) ? end : NULL;
}

const byte *string_end(const byte *at)
{
    if (*at++ != '"')
        return NULL;
    for (;;) {
        while (is(*at, TEXT_CHAR))
            at++;
        if (*at == '"')
            return at + 1;
        if (*at == '\\') {
            if (!at[1] || !strchr("tbnrf\"\\", at[1]))
                return NULL;
            at += 2;
        } else if (*at >= 0x80) {
            if (!(at = character_end(at)))
                return NULL;
        } else {
            return NULL;
        }
    }
}

const byte *literal_end(const byte *start)
{
    const byte *end = string_end(start);
    return end ? suffix_end(end) : NULL;
}
