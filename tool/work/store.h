/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_STORE_H
#define TOOL_STORE_H

/*
 * A store: the results of some work in a SQLite file, for the next run and for the user's
 * own queries:
 *
 *     work(name TEXT, version INTEGER)                    one row: the command
 *     result(key TEXT PRIMARY KEY, stamp INTEGER, text TEXT)
 *
 * Results are written at least every second, each time in one transaction. If the process
 * dies in between, earlier results remain. The file is untrusted input: a file that is
 * damaged, not a store, or of another command or version, is refused with a message.
 *
 * Several processes may create, read and write one store at the same time.
 *
 * Functions return an exit_code, after printing a failure to standard error.
 *
 * Threads    One thread uses a store.
 */

#include <stdint.h>

#define STORE_BUSY_MS 60000 /* how long to wait for other writers */

struct store;

/* Open `file` for the command `name`, and create it if necessary. */
int store_open(const char *name, const char *file, struct store **store);
/* Find a result with this stamp. The caller frees *text; NULL if there is none. */
int store_find(struct store *store, const char *key, uint64_t stamp, char **text);
/* Store a result, replacing one with the same key. */
int store_put(struct store *store, const char *key, uint64_t stamp, const char *text);
/* Copy the results of another store of this command, replacing those of equal keys. */
int store_merge(struct store *store, const char *file);
/* Write waiting results and close the store, even after a failure. NULL is allowed. */
int store_close(struct store *store);

#endif
