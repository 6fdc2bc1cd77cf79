/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_STORE_H
#define TOOL_STORE_H

/*
 * A store: the results of a piece of work in a SQLite file, for the next run and for whoever
 * has questions of their own:
 *
 *     work(name TEXT, version INTEGER)                    one row: whose results these are
 *     result(key TEXT PRIMARY KEY, stamp INTEGER, text TEXT)
 *
 * Results reach the disk at least every second, those of a second together or not at all: a
 * process that ends in between leaves the ones before. A file is input, too: a file that is no
 * store, of another command or version, or damaged, is refused with a line that says so.
 *
 * Several commands may make one store, read it and write to it at once.
 *
 * Functions return an exit_code; what failed is said on standard error.
 *
 * Threads    One thread uses a store.
 */

#include <stdint.h>

#define STORE_BUSY_MS 60000 /* how long to wait for others that write */

struct store;

/* Open `file` for the command `name`, or make it. */
int store_open(const char *name, const char *file, struct store **store);
/* *text is the caller's to free; NULL: it has no result with this stamp. */
int store_find(struct store *store, const char *key, uint64_t stamp, char **text);
/* Keep a result, in place of one with this key. */
int store_put(struct store *store, const char *key, uint64_t stamp, const char *text);
/* Take in the results of another store of this command; those of equal keys replace ours. */
int store_merge(struct store *store, const char *file);
/* Write what was put. The store is closed in any case; NULL is allowed. */
int store_close(struct store *store);

#endif
