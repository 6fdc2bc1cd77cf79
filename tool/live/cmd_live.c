/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone live`: the memory of programs that run, pool by pool. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"
#include "base/term.h"
#include "live/live_json.h"
#include "live/live_look.h"
#include "live/live_text.h"
#include "live/live_words.h"

struct values {
    const char *every, *duration, *folder;
    bool once, json, no_driver;
};

static const struct option_spec specs[] = {
    {"once", '1', NULL, OPTION_FLAG, offsetof(struct values, once),
     .help = "print once, and end; the default where there is no terminal"},
    {"for", 0, "SECONDS", OPTION_STRING, offsetof(struct values, duration),
     .help =
         "look for so long before printing once, which tells how it goes; 5 is enough"},
    {"every", 'e', "SECONDS", OPTION_STRING, offsetof(struct values, every),
     .help = "between two looks, from 0.05 on; default: 1"},
    {"folder", 0, "DIR", OPTION_STRING, offsetof(struct values, folder),
     .help = "where programs have their pages; default: /dev/shm"},
    {"no-driver", 0, NULL, OPTION_FLAG, offsetof(struct values, no_driver),
     .help = "do not ask NVIDIA's driver"},
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help = "print JSON, schema drystone.live/1, see drystone-live(1); with --every a "
             "document a line, until it is ended"},
};

static const char about_text[] =
    "Shows the devices, who uses them, and of each program that has a page what its "
    "allocators reserve, hold and strand, by stream and pool, with the lines that hold "
    "it "
    "and the time to the limit at this rate. PyTorch has a page under "
    "drystone.torch.enable(), an engine in C with <drystone/live.h>. "
    "Processes without one are shown as the driver knows them.";

/* --- options ------------------------------------------------------------------------------ */

#define NS_PER_S 1000000000.0

/* Read "0.5" as nanoseconds, within bounds in seconds. An exit code. */
static int
read_seconds(const char *option, const char *text, double least, double most,
             uint64_t *ns)
{
    char *end;
    errno = 0;
    double seconds = strtod(text, &end);
    if (end == text || *end || errno || !(seconds >= least && seconds <= most))
        return report_usage("live",
                            "--%s %s: a number of seconds from %g to %g is expected",
                            option, text, least, most);
    *ns = (uint64_t)(seconds * NS_PER_S + 0.5);
    return EXIT_FINE;
}

/* --- ways of showing ---------------------------------------------------------------------- */

static int
print_text(const struct live_look *look)
{
    struct term term;
    term_init(&term, stdout);
    if (!live_text_print(look->watch, look->wanted, &term))
        return report_failure("live", NULL, EXIT_MACHINE, "no memory");
    return EXIT_FINE;
}

static int
print_json(const struct live_look *look)
{
    if (live_json_print(look->watch, look->wanted, stdout) && fflush(stdout) == 0)
        return EXIT_FINE;
    return report_failure("live", NULL, EXIT_MACHINE, "cannot write the report");
}

/* Look, and again until `duration_ns` have passed. */
static int
look_for(struct live_look *look, uint64_t duration_ns)
{
    int code = live_look_again(look);
    uint64_t end = look->watch->now_ns + duration_ns;
    while (code == EXIT_FINE && look->watch->now_ns < end) {
        live_look_wait(look);
        code = live_look_again(look);
    }
    return code;
}

/* A document a look, until nobody is left of those who are wanted. */
static int
stream_json(struct live_look *look)
{
    int code = print_json(look);
    while (code == EXIT_FINE && (!look->wanted || live_look_has_any(look))) {
        live_look_wait(look);
        code = live_look_again(look);
        if (code == EXIT_FINE)
            code = print_json(look);
    }
    return code;
}

/* --- the command -------------------------------------------------------------------------- */

static int
show(struct live_look *look, const struct values *v, uint64_t duration_ns)
{
    int code = look_for(look, duration_ns);
    if (code != EXIT_FINE)
        return code;
    bool is_any = false;
    for (size_t i = 0; i < look->watch->process_count; i++)
        is_any = is_any || live_is_wanted(look->watch->processes[i], look->wanted);
    if (look->wanted && !is_any)
        return report_failure(
            "live", look->wanted, EXIT_INPUT,
            "no process of this number or name has a page in %s or uses "
            "a device",
            look->watch->options.folder);
    if (!look->is_json)
        return print_text(look);
    return v->every && !v->once && !v->duration ? stream_json(look) : print_json(look);
}

static int
watch_and_show(const struct values *v, const char *wanted)
{
    struct live_look look = {.wanted = wanted, .is_json = v->json};
    struct watch_options options = {.folder = v->folder, .has_driver = !v->no_driver};
    uint64_t duration_ns = 0;
    int code =
        read_seconds("every", v->every ? v->every : "1", 0.05, 3600, &look.every_ns);
    if (code == EXIT_FINE && v->duration)
        code = read_seconds("for", v->duration, 0.1, 86400, &duration_ns);
    if (code != EXIT_FINE)
        return code;
    look.watch = watch_create(&options);
    if (!look.watch)
        return report_failure("live", NULL, EXIT_MACHINE, "no memory");
    code = show(&look, v, duration_ns);
    watch_destroy(look.watch);
    return code;
}

static int
run(int argc, char **argv)
{
    struct values v = {.folder = "/dev/shm"};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_live, argc, argv, &v, &operands, &code)) {
        const char *wanted = operands.count ? operands.values[0] : NULL;
        code = operands.count <= 1
                   ? watch_and_show(&v, wanted)
                   : report_usage("live", "one PID or NAME is expected, not %zu",
                                  operands.count);
    }
    options_finish(&command_live, &v, &operands);
    return code;
}

const struct command command_live = {
    .name = "live",
    .summary = "the memory of running programs, pool by pool",
    .usage = "[options] [PID|NAME]",
    .about = about_text,
    .examples = "drystone live\n"
                "drystone live train.py --once --for 5\n"
                "drystone live 4711 --json --every 0.5\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
