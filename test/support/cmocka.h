/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_CMOCKA_H
#define TEST_CMOCKA_H

/* cmocka needs these four before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
