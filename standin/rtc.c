/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVRTC: programs compile to a few bytes, which the driver's stand-in accepts as a module.
 *
 * A program keeps the names whose lowered form may be queried; each is its own lowered form.
 * PyTorch keeps compiled kernels in a folder of the user's. These bytes must never get there,
 * where a run on a real card would load them: the launcher turns that cache off.
 *
 * Cost: a list of names for each program, searched on each look-up. Threads: one for each program.
 */
#include <stdlib.h>
#include <string.h>

#include "library.h"
#include "setup.h"

enum rtc_result { RTC_OK = 0, RTC_NAME_NOT_VALID = 10 };

static const char code[64] = "a kernel of a card that is not there";

struct expression {
    struct expression *next;
    char name[];
};

struct program {
    struct expression *expressions;
};

EXPORT enum rtc_result
nvrtcVersion(int *major, int *minor)
{
    *major = standin_setup()->cuda_version / 1000;
    *minor = standin_setup()->cuda_version % 1000 / 10;
    return RTC_OK;
}

EXPORT const char *
nvrtcGetErrorString(int result)
{
    return result == RTC_OK ? "NVRTC_SUCCESS" : "NVRTC_ERROR unknown";
}

EXPORT enum rtc_result
nvrtcCreateProgram(void **program, const char *source, const char *name, int header_count,
                   const char *const *headers, const char *const *header_names)
{
    (void)source, (void)name, (void)header_count, (void)headers, (void)header_names;
    library_create(program, sizeof(struct program));
    return RTC_OK;
}

EXPORT enum rtc_result
nvrtcDestroyProgram(struct program **program)
{
    struct expression *expression = *program ? (*program)->expressions : NULL;
    while (expression) {
        struct expression *next = expression->next;
        free(expression);
        expression = next;
    }
    free(*program);
    *program = NULL;
    return RTC_OK;
}

EXPORT enum rtc_result
nvrtcCompileProgram(struct program *program, int option_count, const char *const *options)
{
    (void)program, (void)option_count, (void)options;
    return RTC_OK;
}

/* --- names ---------------------------------------------------------------------------------- */

EXPORT enum rtc_result
nvrtcAddNameExpression(struct program *program, const char *name)
{
    size_t bytes = strlen(name) + 1;
    void *made;
    library_create(&made, sizeof(struct expression) + bytes);
    struct expression *expression = made;
    memcpy(expression->name, name, bytes);
    expression->next = program->expressions;
    program->expressions = expression;
    return RTC_OK;
}

EXPORT enum rtc_result
nvrtcGetLoweredName(const struct program *program, const char *name, const char **lowered)
{
    const struct expression *expression = program->expressions;
    while (expression && strcmp(expression->name, name) != 0)
        expression = expression->next;
    if (!expression)
        return RTC_NAME_NOT_VALID;
    *lowered = expression->name;
    return RTC_OK;
}

/* --- results -------------------------------------------------------------------------------- */

#define CODE_SIZE(name)                                                                  \
    EXPORT enum rtc_result name(const struct program *program, size_t *bytes)            \
    {                                                                                    \
        (void)program;                                                                   \
        *bytes = sizeof code;                                                            \
        return RTC_OK;                                                                   \
    }
CODE_SIZE(nvrtcGetCUBINSize)
CODE_SIZE(nvrtcGetPTXSize)

#define CODE(name)                                                                       \
    EXPORT enum rtc_result name(const struct program *program, char *to)                 \
    {                                                                                    \
        (void)program;                                                                   \
        memcpy(to, code, sizeof code);                                                   \
        return RTC_OK;                                                                   \
    }
CODE(nvrtcGetCUBIN)
CODE(nvrtcGetPTX)

/* The log is an empty text; its size includes the terminating zero. */
EXPORT enum rtc_result
nvrtcGetProgramLogSize(const struct program *program, size_t *bytes)
{
    (void)program;
    *bytes = 1;
    return RTC_OK;
}

EXPORT enum rtc_result
nvrtcGetProgramLog(const struct program *program, char *log)
{
    (void)program;
    *log = '\0';
    return RTC_OK;
}
