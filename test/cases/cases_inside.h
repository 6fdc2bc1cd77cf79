/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_CASES_INSIDE_H
#define TEST_CASES_INSIDE_H

/* The tables behind case_at(). */

#include "cases/cases.h"

const struct labelled_case *cases_second(size_t *count);
const struct labelled_case *cases_third(size_t *count);

#endif
