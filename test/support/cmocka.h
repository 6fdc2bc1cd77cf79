/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_CMOCKA_H
#define TEST_CMOCKA_H

/* cmocka needs these four before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Skip the test and say why, by printf()'s arguments. No other skip is allowed. */
#undef skip
#define skip_because(...)                                                                \
    (print_message("SKIPPED: "), print_message(__VA_ARGS__), print_message("\n"),        \
     _skip(__FILE__, __LINE__))

#endif
