/* SPDX-License-Identifier: Apache-2.0 */
/* See need.h. */
#include "machine/need.h"

#include <string.h>

#include <drystone/dtype.h>

#include "base/options.h"

#define NEED_BYTES_MAX (UINT64_C(1) << 62)

/* Return the bits of a data type; 0: unknown type. */
static unsigned
get_bits(const char *name)
{
    struct dry_dtype dtype;
    struct dry_error err;
    if (dry_dtype_parse(name, &dtype, &err) != DRY_OK)
        return 0;
    return (unsigned)dtype.bits * dtype.lanes;
}

static const char *
skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

static const char *
take_dimension(const char **at, uint64_t *product)
{
    const char *digits = *at;
    uint64_t n = 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        if (__builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(**at - '0'), &n))
            return "a dimension is too large";
    if (*at == digits)
        return "expected a shape and a type, like 1024,1024 float32, or a size, like "
               "4GiB";
    return __builtin_mul_overflow(*product, n, product) ? "the tensor is too large"
                                                        : NULL;
}

/* Read dimensions separated by commas or 'x'. Advances *at past them. Returns what is
   wrong, or NULL. */
static const char *
take_shape(const char **at, uint64_t *elements)
{
    bool has_bracket = **at == '(' || **at == '[';
    *at = skip_blanks(*at + has_bracket);
    for (;;) {
        const char *wrong = take_dimension(at, elements);
        if (wrong)
            return wrong;
        const char *next = skip_blanks(*at);
        if (*next != ',' && *next != 'x')
            break;
        *at = skip_blanks(next + 1);
        if (has_bracket && (**at == ')' || **at == ']'))
            break; /* Python's one-element tuple, "(1024,)" */
    }
    *at = skip_blanks(*at);
    if (has_bracket && **at != ')' && **at != ']')
        return "a bracket is not closed";
    *at = skip_blanks(*at + has_bracket);
    return NULL;
}

const char *
need_parse(const char *text, uint64_t *bytes)
{
    const char *at = skip_blanks(text);
    uint64_t elements = 1, bits;
    if (options_parse_size(at, bytes))
        return *bytes > NEED_BYTES_MAX ? "the size is too large" : NULL;
    const char *wrong = take_shape(&at, &elements);
    if (wrong)
        return wrong;
    unsigned element_bits = get_bits(at);
    if (element_bits == 0)
        return *at ? "the type is not known; expected float32, bfloat16, int8 ..."
                   : "a type is missing, like float32";
    if (__builtin_mul_overflow(elements, element_bits, &bits) ||
        bits / 8 > NEED_BYTES_MAX)
        return "the tensor is too large";
    *bytes = bits / 8 + (bits % 8 != 0);
    return NULL;
}
