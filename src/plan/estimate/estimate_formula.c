/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Formulas: one string gives both the number and the text, so the printed formula is the
 * one computed.
 */
#include <stdio.h>
#include <string.h>

#include "plan/estimate/estimate_inside.h"

uint64_t
dryi_sum(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) || sum > DRYI_SUM_MAX ? DRYI_SUM_MAX : sum;
}

uint64_t
dryi_product(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) || product > DRYI_SUM_MAX ? DRYI_SUM_MAX
                                                                            : product;
}

uint64_t
dryi_ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* Return the least x with x * x >= value. */
uint64_t
dryi_isqrt_up(uint64_t value)
{
    uint64_t low = 0, high = UINT64_C(1) << 32;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        bool suffices = middle ? middle >= dryi_ceil_div(value, middle) : value == 0;
        if (suffices)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* A factor of a formula: a letter or a number. */
struct factor {
    uint64_t value;
    const char *word;
    int length;
};

struct reader {
    const struct dryi_symbols *symbols;
    const char *at;
};

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
next_factor(struct reader *r, struct factor *f)
{
    while (*r->at == ' ')
        r->at++;
    if (!*r->at)
        return false;
    f->word = r->at;
    if (!is_digit(*r->at)) {
        f->value = *r->at == '/' ? 0 : r->symbols->values[(unsigned char)*r->at & 127];
        f->length = 1;
        r->at++;
        return true;
    }
    f->value = 0;
    while (is_digit(*r->at))
        f->value = f->value * 10 + (uint64_t)(*r->at++ - '0');
    f->length = (int)(r->at - f->word);
    return true;
}

/* The formula with letters and with numbers, built in parallel. Excess characters are cut off. */
struct texts {
    char letters[DRY_FORMULA_BYTES], numbers[DRY_FORMULA_BYTES];
    size_t letters_length, numbers_length;
};

static size_t
clip(size_t at, int written)
{
    size_t end = at + (size_t)(written > 0 ? written : 0);
    return end < DRY_FORMULA_BYTES - 1 ? end : DRY_FORMULA_BYTES - 1;
}

static void
append(struct texts *t, const char *sign, const struct factor *f)
{
    int n =
        snprintf(t->letters + t->letters_length, DRY_FORMULA_BYTES - t->letters_length,
                 "%s%.*s", sign, f->length, f->word);
    t->letters_length = clip(t->letters_length, n);
    n = snprintf(t->numbers + t->numbers_length, DRY_FORMULA_BYTES - t->numbers_length,
                 "%s%llu", sign, (unsigned long long)f->value);
    t->numbers_length = clip(t->numbers_length, n);
}

bool
dryi_formula_eval(const struct dryi_symbols *symbols, const char *expression,
                  uint64_t *value, char text[DRY_FORMULA_BYTES])
{
    struct reader r = {symbols, expression};
    struct texts t = {.letters = "", .numbers = ""};
    struct factor f;
    uint64_t above = 1, below = 1;
    bool is_below = false;
    while (next_factor(&r, &f)) {
        if (*f.word == '/') {
            is_below = true;
            continue;
        }
        if (is_below)
            below = dryi_product(below, f.value);
        else
            above = dryi_product(above, f.value);
        if (!is_below || f.value > 1)
            append(&t, is_below ? "/" : t.letters_length ? "*" : "", &f);
    }
    *value = dryi_ceil_div(above, below ? below : 1);
    snprintf(text, DRY_FORMULA_BYTES, "%.*s = %.*s", (int)(DRY_FORMULA_BYTES / 2 - 4),
             t.letters, (int)(DRY_FORMULA_BYTES / 2), t.numbers);
    return above < DRYI_SUM_MAX && below < DRYI_SUM_MAX;
}
