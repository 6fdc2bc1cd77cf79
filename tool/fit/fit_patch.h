/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FIT_PATCH_H
#define TOOL_FIT_PATCH_H

/* A change of `drystone fit` as a patch of the program: a unified diff that has drystone.fit make
   the change before the script imports torch. */

#include <jansson.h>

#include "base/options.h"

/* Print the patch of the first script among the program's words for a row of a result. Before the
   diff stands what a person would write, which patch(1) passes over. Returns an exit_code: EXIT_INPUT
   if no word is a script, or if it imports no torch at the beginning of a line. */
int fit_patch_print(const struct option_list *arguments, const json_t *row);

#endif
