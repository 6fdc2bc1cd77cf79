/* SPDX-License-Identifier: Apache-2.0 */
/* See rows.h. */
#include "base/rows.h"

#define ROWS_FOR_PEOPLE 20u

size_t
rows_limit(int64_t rows, bool is_json)
{
    if (rows == ROWS_NOT_GIVEN)
        return is_json ? SIZE_MAX : ROWS_FOR_PEOPLE;
    return rows == 0 ? SIZE_MAX : (size_t)rows;
}
