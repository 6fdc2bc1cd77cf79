/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_SPOILT_RECORD_H
#define TEST_SPOILT_RECORD_H

/*
 * A trace from the bytes of a fuzzer. There are two kinds of input:
 *
 *     a file, as dry_trace_read() takes it;
 *     "FUZZ" and a program in bytes, which is recorded, then spoilt field by field, so that
 *     contradictions lie deep inside a record that is otherwise sound.
 */

#include <stddef.h>
#include <stdint.h>

#include <drystone/drystone.h>

#define SPOILT_RECORD_MAGIC "FUZZ"

/* Read a trace; NULL: none can be read from these bytes. */
struct dry_trace *spoilt_record_read(const uint8_t *data, size_t size);

#endif
