/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_BROWSER_H
#define TOOL_BROWSER_H

/*
 * Open the user's browser at a secret address.
 *
 * Every user of the machine can read the arguments of a process. So xdg-open gets a file
 * of mode 0600 in a folder of mode 0700, and the file leads to the address.
 */

#include <stdbool.h>

struct browser {
    char folder[256], path[272]; /* the file's; folder is "" if there is none */
};

/* Tell whether there is a display to open a browser on. */
bool browser_is_here(void);
/* Start xdg-open on `address`; failures are printed. */
void browser_open(struct browser *browser, const char *address);
/* Remove the file and its folder, if they are there. */
void browser_close(struct browser *browser);

#endif
