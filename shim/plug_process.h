/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_PLUG_PROCESS_H
#define DRY_PLUG_PROCESS_H

#include <stdint.h>

/* Return this process's bytes on an open GPU; 0: the driver does not tell. */
uint64_t plug_process_bytes(int index);

#endif
