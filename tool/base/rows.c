/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rows.h"

#include "base/command.h"
#include "base/report.h"

#define ROWS_FOR_PEOPLE 20u

int
rows_check(const char *command, int64_t rows)
{
    if (rows == ROWS_NOT_GIVEN || (rows >= 0 && rows <= INT32_MAX))
        return EXIT_FINE;
    return report_usage(command, "--rows %lld: expected 0 or more", (long long)rows);
}

size_t
rows_limit(int64_t rows, bool is_json)
{
    if (rows == ROWS_NOT_GIVEN)
        return is_json ? SIZE_MAX : ROWS_FOR_PEOPLE;
    return rows == 0 ? SIZE_MAX : (size_t)rows;
}
