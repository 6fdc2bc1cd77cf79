/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_ROUNDS_H
#define TEST_ROUNDS_H

/*
 * A sanitizer makes a test three to ten times as long. Tests that repeat one thing many times do it
 * less often there: what the repetition proves, the build without sanitizers proves; what a
 * sanitizer sees, it sees in the fewer rounds.
 */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

/* `rounds`, and with a sanitizer every `less`th of them, at least one. */
#define ROUNDS_OF(rounds, less)                                                          \
    (IS_SANITIZED && (rounds) > (less) ? (rounds) / (less) : (rounds))

#endif
