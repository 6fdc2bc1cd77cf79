/* SPDX-License-Identifier: Apache-2.0 */
/* See report.h. */
#include "base/report.h"

#include <stdio.h>
#include <string.h>

#include "base/term.h"

static void
print_safe(const char *text)
{
    term_print_text(stderr, text, strlen(text));
}

static void
print_prefix(const char *command, const char *file)
{
    fflush(stdout); /* keep stdout and stderr in order on a terminal */
    fputs("drystone: ", stderr);
    if (command) {
        print_safe(command);
        fputs(": ", stderr);
    }
    if (file) {
        print_safe(file);
        fputs(": ", stderr);
    }
}

__attribute__((format(printf, 1, 0))) static void
print_formatted(const char *format, va_list args)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, args);
    print_safe(text);
    fputc('\n', stderr);
}

static int
to_exit_code(enum dry_status status)
{
    switch (status) {
    case DRY_OK:
    case DRY_END:
        return EXIT_FINE;
    case DRY_ERR_ARGUMENT:
        return EXIT_USAGE;
    case DRY_ERR_NO_SPACE:
        return EXIT_FOUND;
    case DRY_ERR_MEMORY:
    case DRY_ERR_CANCELLED:
        return EXIT_MACHINE;
    case DRY_ERR_FORMAT:
    case DRY_ERR_LIMIT:
    case DRY_ERR_SYSTEM:
    case DRY_ERR_UNSUPPORTED:
        return EXIT_INPUT;
    }
    return EXIT_MACHINE;
}

int
report_error(const char *command, const char *file, const struct dry_error *err)
{
    print_prefix(command, file);
    if (err->offset != DRY_NO_OFFSET)
        fprintf(stderr, "byte %llu: ", (unsigned long long)err->offset);
    print_safe(err->text);
    fputc('\n', stderr);
    return to_exit_code(err->status);
}

int
report_failure(const char *command, const char *file, enum exit_code code,
               const char *format, ...)
{
    print_prefix(command, file);
    va_list args;
    va_start(args, format);
    print_formatted(format, args);
    va_end(args);
    return (int)code;
}

int
report_memory(const char *command, const char *file)
{
    return report_failure(command, file, EXIT_MACHINE, "no memory");
}

int
report_usage(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int code = report_usage_args(command, format, args);
    va_end(args);
    return code;
}

int
report_usage_args(const char *command, const char *format, va_list args)
{
    print_prefix(command, NULL);
    print_formatted(format, args);
    fprintf(stderr, "try: drystone %s --help\n", command ? command : "");
    return EXIT_USAGE;
}
