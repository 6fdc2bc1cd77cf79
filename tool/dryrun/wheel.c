/* SPDX-License-Identifier: Apache-2.0 */
/* See wheel.h. */
#include "dryrun/wheel.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "base/command.h"
#include "base/report.h"

/* Versions for a wheel that declares none. PyTorch accepts a library newer than the one
   it was built with. */
#define CUDNN_NEWEST 92600
#define NCCL_NEWEST 23007

/* --- which Python ------------------------------------------------------------------------- */

static bool
is_program(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, X_OK) == 0;
}

/* Find a program by PATH, as a shell does. */
static bool
find_program(const char *word, char path[WHEEL_PATH_BYTES])
{
    if (strchr(word, '/'))
        return snprintf(path, WHEEL_PATH_BYTES, "%s", word) < WHEEL_PATH_BYTES &&
               is_program(path);
    const char *at = getenv("PATH");
    while (at && *at) {
        size_t length = strcspn(at, ":");
        int written = snprintf(path, WHEEL_PATH_BYTES, "%.*s/%s", (int)length, at, word);
        if (length > 0 && written < WHEEL_PATH_BYTES && is_program(path))
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

static const char *
get_basename(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Read a script's interpreter: "#!/usr/bin/python3" or "#!/usr/bin/env python3". */
static bool
read_interpreter(const char *script, char path[WHEEL_PATH_BYTES])
{
    char line[512] = "";
    FILE *in = fopen(script, "r");
    bool is_read = in && fgets(line, sizeof line, in) && strncmp(line, "#!", 2) == 0;
    if (in)
        fclose(in);
    if (!is_read)
        return false;
    char *rest = NULL;
    const char *word = strtok_r(line + 2, " \t\r\n", &rest);
    if (word && strcmp(get_basename(word), "env") == 0)
        word = strtok_r(NULL, " \t\r\n", &rest);
    return word && strncmp(get_basename(word), "python", 6) == 0 &&
           find_program(word, path);
}

static int
find_python(struct wheel *wheel, const char *command, const char *word)
{
    char path[WHEEL_PATH_BYTES];
    if (!find_program(word, path))
        return report_failure(command, word, EXIT_INPUT, "there is no such program");
    if (strncmp(get_basename(path), "python", 6) == 0) {
        memcpy(wheel->python, path, sizeof path);
        return EXIT_FINE;
    }
    if (read_interpreter(path, wheel->python))
        return EXIT_FINE;
    return report_failure(command, word, EXIT_INPUT,
                          "neither Python nor a script of Python's: begin with python, "
                          "torchrun, accelerate or the like");
}

/* --- which torch -------------------------------------------------------------------------- */

/* Prints torch's folder, its required versions of cuDNN and NCCL, and the folders of packages, a
   line each. Not const, as execv() takes no constant words. */
static char find_torch_text[] =
    "import importlib.metadata as m, importlib.util as u, os, re, sys, sysconfig\n"
    "s = u.find_spec('torch')\n"
    "print(list(s.submodule_search_locations)[0] if s and s.submodule_search_locations "
    "else '')\n"
    "try:\n"
    "    needs = ' '.join(m.requires('torch') or [])\n"
    "except m.PackageNotFoundError:\n"
    "    needs = ''\n"
    "for name in 'cudnn', 'nccl':\n"
    "    found = re.search(f'nvidia-{name}-cu[0-9]+[^;]*==([0-9.]+)', needs)\n"
    "    print(found[1] if found else '')\n"
    "own = sysconfig.get_path('stdlib'), sysconfig.get_path('platstdlib')\n"
    "for path in dict.fromkeys(sys.path):\n"
    "    is_own = path in own or os.path.dirname(path) in own and "
    "path.endswith('-dynload')\n"
    "    if path and not is_own and '\\n' not in path and os.path.isdir(path):\n"
    "        print(path)\n";

static int
become_python(void *arguments)
{
    char **argv = arguments;
    execv(argv[0], argv);
    return 127;
}

/* Run find_torch_text and read its output. False: Python failed. */
static bool
ask_python(struct wheel *wheel, char *answer, size_t capacity)
{
    char option[] = "-c", *argv[] = {wheel->python, option, find_torch_text, NULL};
    struct child_work work = {.print = become_python, .self = argv};
    struct child_output o;
    if (!child_run(&work, &o))
        return false;
    size_t length = o.length - o.error_length;
    fwrite(o.text + length, 1, o.error_length, stderr);
    snprintf(answer, capacity, "%.*s", (int)length, o.text);
    free(o.text);
    return o.code == EXIT_FINE;
}

/* Return the next line of `*rest` and advance past its end. */
static const char *
next_line(char **rest)
{
    char *line = *rest;
    size_t length = strcspn(line, "\n");
    *rest = line + length + (line[length] == '\n');
    line[length] = '\0';
    return line;
}

/* Read "13.2" into {13, 2}: `count` numbers below 100, separated by dots. */
static bool
read_numbers(const char *text, int *numbers, int count)
{
    for (int i = 0; i < count; i++) {
        char *end;
        long number = strtol(text, &end, 10);
        if (end == text || number < 0 || number > 99 || (i + 1 < count && *end != '.'))
            return false;
        numbers[i] = (int)number;
        text = end + 1;
    }
    return true;
}

/* Encode a version as one number: "9.10.2.21" becomes 91002. */
static int
count_version(const char *text, int unknown)
{
    int n[3];
    return read_numbers(text, n, 3) ? n[0] * 10000 + n[1] * 100 + n[2] : unknown;
}

/* Read the quoted value of an assignment, if the line begins with `name`. */
static bool
read_quoted(const char *line, const char *name, char *text, size_t capacity)
{
    if (strncmp(line, name, strlen(name)) != 0)
        return false;
    const char *begin = strchr(line, '\'');
    size_t length = begin ? strcspn(begin + 1, "'") : 0;
    if (!begin || length >= capacity)
        return false;
    memcpy(text, begin + 1, length);
    text[length] = '\0';
    return true;
}

static int
read_version(struct wheel *wheel, const char *command)
{
    char path[WHEEL_PATH_BYTES + 16], line[256], cuda[32] = "";
    int numbers[2];
    snprintf(path, sizeof path, "%s/version.py", wheel->folder);
    FILE *in = fopen(path, "r");
    if (!in)
        return report_failure(command, path, EXIT_INPUT, "%s", strerror(errno));
    while (fgets(line, sizeof line, in)) {
        read_quoted(line, "__version__", wheel->version, sizeof wheel->version);
        read_quoted(line, "cuda", cuda, sizeof cuda);
    }
    fclose(in);
    if (!read_numbers(cuda, numbers, 2))
        return report_failure(
            command, wheel->folder, EXIT_INPUT,
            "this torch %s was built without CUDA; install one with it, its "
            "NVIDIA libraries are not needed: pip install --no-deps torch",
            wheel->version);
    wheel->cuda_version = numbers[0] * 1000 + numbers[1] * 10;
    return EXIT_FINE;
}

int
wheel_find(struct wheel *wheel, const char *command, const char *word)
{
    int code = find_python(wheel, command, word);
    if (code != EXIT_FINE)
        return code;
    char answer[WHEEL_PATH_BYTES + WHEEL_PACKAGES_BYTES], *rest = answer;
    if (!ask_python(wheel, answer, sizeof answer))
        return report_failure(command, wheel->python, EXIT_INPUT,
                              "this Python cannot be asked for its torch");
    snprintf(wheel->folder, sizeof wheel->folder, "%.4095s", next_line(&rest));
    wheel->cudnn_version = count_version(next_line(&rest), CUDNN_NEWEST);
    wheel->nccl_version = count_version(next_line(&rest), NCCL_NEWEST);
    snprintf(wheel->packages, sizeof wheel->packages, "%s", rest);
    if (!wheel->folder[0])
        return report_failure(command, wheel->python, EXIT_INPUT,
                              "this Python has no torch");
    return read_version(wheel, command);
}
