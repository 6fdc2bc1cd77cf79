/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_PLUG_THROW_H
#define DRY_PLUG_THROW_H

/* Throw c10::OutOfMemoryError, torch.OutOfMemoryError in Python, with this text. */
_Noreturn void plug_throw_oom(const char *text);

/* Throw c10::Error, RuntimeError in Python, with this text. */
_Noreturn void plug_throw(const char *text);

#endif
