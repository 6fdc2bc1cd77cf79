/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone live`: the memory of running programs, for people and for Prometheus. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/command.h"
#include "base/report.h"
#include "base/term.h"
#include "exporter/exporter_run.h"
#include "live/brink.h"
#include "live/brink_text.h"
#include "live/live_json.h"
#include "live/live_sampler.h"
#include "live/live_summary.h"
#include "live/live_text.h"

#ifdef HAVE_TERMINAL
#include "live/live_terminal.h"
#include "tui/terminal.h"
#endif

struct values {
    const char *every, *duration, *folder, *at, *snapshot, *listen;
    int64_t at_retries, at_most, lanes, processes;
    uint64_t at_growth;
    bool once, json, no_driver, has_metrics;
};

#define OF_WATCHING "for watching, not for --once or --for"
#define WATCHING "once for every at-used at-retries at-growth snapshot json"
#define FOR_OTHERS                                                                       \
    "for others' eyes: it goes with --folder, --no-driver, --lanes and --processes-max"
#define OF_METRICS .needs = {"listen metrics", "for --listen and --metrics alone"}

static const struct option_spec specs[] = {
    {"once", '1', NULL, OPTION_FLAG, offsetof(struct values, once),
     .help = "print once, and end; the default where there is no terminal"},
    {"for", 0, "SECONDS", OPTION_STRING, offsetof(struct values, duration),
     .help =
         "look for so long before printing once, which tells how it goes; 5 is enough"},
    {"every", 'e', "SECONDS", OPTION_STRING, offsetof(struct values, every),
     .help = "between two looks, from 0.05 on; default: 1"},
    {"at-used", 0, "PERCENT", OPTION_STRING, offsetof(struct values, at),
     .help = "tell when so much of a limit is taken, as 95%",
     .refuses = {{"once for", OF_WATCHING}}},
    {"at-retries", 0, "N", OPTION_INT, offsetof(struct values, at_retries),
     .help = "tell when a program gets memory only at the second try, so often a minute",
     .min = 1, .max = 1000000, .refuses = {{"once for", OF_WATCHING}}},
    {"at-growth", 0, "SIZE", OPTION_SIZE, offsetof(struct values, at_growth),
     .help = "tell when a program grows by so much a minute", .min = 1, .max = NO_MAX,
     .refuses = {{"once for", OF_WATCHING}}},
    {"snapshot", 0, "DIR", OPTION_STRING, offsetof(struct values, snapshot),
     .help = "have programs write a snapshot there when one of these is told"},
    {"at-most", 0, "N", OPTION_INT, offsetof(struct values, at_most),
     .help = "snapshots in all; default: 4", .min = 1, .max = 1000000,
     .needs = {"snapshot", "for --snapshot alone"}},
    {"folder", 0, "DIR", OPTION_STRING, offsetof(struct values, folder),
     .help = "where programs have their live pages; default: /dev/shm"},
    {"no-driver", 0, NULL, OPTION_FLAG, offsetof(struct values, no_driver),
     .help = "do not ask NVIDIA's driver"},
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help = "print JSON, schema drystone.live/1, see drystone-live(1); with --every a "
             "document a line, until it is ended"},
    {"listen", 'l', "ADDRESS", OPTION_STRING, offsetof(struct values, listen),
     .help = "serve it to Prometheus on this address and port, 127.0.0.1:9432, or, as "
             "unix:PATH, on a socket in a folder, of mode 0660",
     .refuses = {{WATCHING, FOR_OTHERS},
                 {"metrics", "for a server: --metrics prints once"}}},
    {"metrics", 0, NULL, OPTION_FLAG, offsetof(struct values, has_metrics),
     .help = "print once what --listen serves, for a collector of text files",
     .refuses = {{WATCHING, FOR_OTHERS}}},
    {"lanes", 0, "N", OPTION_INT, offsetof(struct values, lanes),
     .help = "serve pools and streams, too: the N largest of an allocator; the rest are "
             "one",
     .max = DRY_LIVE_LANES_MAX, OF_METRICS},
    {"processes-max", 0, "N", OPTION_INT, offsetof(struct values, processes),
     .help = "serve the N largest processes; default: 256", .min = 1,
     .max = WATCH_PROCESSES_MAX, OF_METRICS},
};

static const char about_text[] =
    "Shows the devices, who uses them, and of each program that has a live page what its "
    "allocators have reserved, allocated and stranded, by stream and pool, with the "
    "lines that hold the memory and the time to the limit at this rate. PyTorch has a "
    "live page under `drystone run --watch` and after drystone.torch.publish(), an "
    "engine in C by <drystone/live.h>. Processes without one are shown as the driver "
    "knows them. "
    "With --listen it serves this to Prometheus at http://ADDRESS/metrics, until ^C or "
    "SIGTERM.";

/* --- options ------------------------------------------------------------------------------ */

#define NS_PER_S 1000000000.0

/* Read seconds such as "0.5" into nanoseconds. `least` and `most` are in seconds. Returns
   an exit code. */
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

/* Read a percentage from 1 to 100: "95%" or "95". Returns an exit code. */
static int
read_percent(const char *text, double *percent)
{
    char *end;
    *percent = strtod(text, &end);
    if (end != text && *end == '%')
        end++;
    if (end == text || *end || !(*percent >= 1 && *percent <= 100))
        return report_usage("live", "--at-used %s: a share from 1%% to 100%% is expected",
                            text);
    return EXIT_FINE;
}

/* Read the rules. *folder is the absolute path of --snapshot, or of the current folder
   for snapshots requested by a key; the caller frees it. */
static int
read_rules(const struct values *v, bool is_full, struct brink_options *options,
           char **folder)
{
    struct stat facts;
    const char *given = v->snapshot ? v->snapshot : ".";
    *options = (struct brink_options){.at_most = (uint64_t)v->at_most};
    options->at[BRINK_RETRIES] = (double)v->at_retries;
    options->at[BRINK_GROWTH] = (double)v->at_growth;
    int code = v->at ? read_percent(v->at, &options->at[BRINK_SHARE]) : EXIT_FINE;
    if (code != EXIT_FINE || (!v->snapshot && !is_full))
        return code;
    *folder = realpath(given, NULL);
    if (!*folder || stat(*folder, &facts) != 0)
        return report_failure("live", given, EXIT_INPUT, "%s", strerror(errno));
    if (!S_ISDIR(facts.st_mode))
        return report_failure("live", given, EXIT_INPUT, "a folder is expected");
    options->folder = v->snapshot ? *folder : NULL;
    options->hand = *folder;
    return EXIT_FINE;
}

/* --- ways of showing ---------------------------------------------------------------------- */

static int
print_text(const struct live_sampler *sampler)
{
    struct term term;
    term_init(&term, stdout);
    if (!live_text_print(sampler->watch, sampler->wanted, &term))
        return report_memory("live", NULL);
    return EXIT_FINE;
}

static int
print_json(const struct live_sampler *sampler)
{
    if (live_json_print(sampler->watch, sampler->wanted, stdout) && fflush(stdout) == 0)
        return EXIT_FINE;
    return report_failure("live", NULL, EXIT_MACHINE, "cannot write the report");
}

/* Take samples until `duration_ns` have passed. */
static int
sample_for(struct live_sampler *sampler, uint64_t duration_ns)
{
    int code = live_sampler_sample(sampler);
    uint64_t end = sampler->watch->now_ns + duration_ns;
    while (code == EXIT_FINE && sampler->watch->now_ns < end) {
        live_sampler_wait(sampler);
        code = live_sampler_sample(sampler);
    }
    return code;
}

/* Print one document per sample, until all wanted processes have ended. */
static int
stream_json(struct live_sampler *sampler)
{
    int code = print_json(sampler);
    while (code == EXIT_FINE && (!sampler->wanted || live_sampler_has_any(sampler))) {
        live_sampler_wait(sampler);
        code = live_sampler_sample(sampler);
        if (code == EXIT_FINE)
            code = print_json(sampler);
    }
    return code;
}

struct told {
    bool is_json, is_any, has_failed;
};

static void
tell(void *self, const struct brink_event *event)
{
    struct told *told = self;
    told->is_any = true;
    if (!told->is_json)
        brink_text_print(event, stdout);
    else if (!brink_json_print(event, stdout))
        told->has_failed = true;
}

/* Print one line per event, until all wanted processes have ended. */
static int
watch_brink(struct live_sampler *sampler, struct brink *brink)
{
    struct told told = {.is_json = sampler->is_json};
    int code = EXIT_FINE;
    while (code == EXIT_FINE) {
        if (!brink_check(brink, sampler->watch, sampler->wanted, tell, &told))
            return report_memory("live", NULL);
        if (told.has_failed || fflush(stdout) != 0)
            return report_failure("live", NULL, EXIT_MACHINE, "cannot write the report");
        if (sampler->wanted && !live_sampler_has_any(sampler))
            return told.is_any ? EXIT_FOUND : EXIT_FINE;
        live_sampler_wait(sampler);
        code = live_sampler_sample(sampler);
    }
    return code;
}

/* --- the command -------------------------------------------------------------------------- */

struct session {
    const struct values *values;
    struct live_sampler sampler;
    uint64_t duration_ns; /* value of --for, or 0 */
    char *folder;         /* value of --snapshot */
    struct brink *brink;
    bool has_rules, is_full; /* is_full: the full screen is used */
};

/* Tell whether to use the full screen: the terminal can move its cursor, and no other
   output is requested. */
static bool
wants_full_screen(const struct values *v)
{
#ifdef HAVE_TERMINAL
    return !v->once && !v->json && !v->duration && terminal_is_able();
#else
    (void)v;
    return false;
#endif
}

static bool
is_any_wanted(const struct live_sampler *sampler)
{
    for (size_t i = 0; i < sampler->watch->process_count; i++)
        if (live_is_wanted(sampler->watch->processes[i], sampler->wanted))
            return true;
    return false;
}

static int
show(struct session *s)
{
    struct live_sampler *sampler = &s->sampler;
    const struct values *v = s->values;
    int code = sample_for(sampler, s->duration_ns);
    if (code != EXIT_FINE)
        return code;
    if (sampler->wanted && !is_any_wanted(sampler))
        return report_failure(
            "live", sampler->wanted, EXIT_INPUT,
            "no process of this number or name has a live page in %s or uses "
            "a device",
            sampler->watch->options.folder);
#ifdef HAVE_TERMINAL
    if (s->is_full)
        return live_terminal_run(sampler, s->brink);
#endif
    if (s->has_rules)
        return watch_brink(sampler, s->brink);
    if (!sampler->is_json)
        return print_text(sampler);
    return v->every && !v->once && !v->duration ? stream_json(sampler)
                                                : print_json(sampler);
}

/* Open what the session needs. Returns an exit code. Call close_session() in any case. */
static int
open_session(struct session *s)
{
    const struct values *v = s->values;
    struct watch_options options = {.folder = v->folder, .has_driver = !v->no_driver};
    struct brink_options rules;
    s->is_full = wants_full_screen(v);
    int code = read_seconds("every", v->every ? v->every : "1", 0.05, 3600,
                            &s->sampler.every_ns);
    if (code == EXIT_FINE && v->duration)
        code = read_seconds("for", v->duration, 0.1, 86400, &s->duration_ns);
    if (code == EXIT_FINE)
        code = read_rules(v, s->is_full, &rules, &s->folder);
    if (code != EXIT_FINE)
        return code;
    s->has_rules = v->at || v->at_retries || v->at_growth;
    struct option_misuse misuse = {
        "snapshot", v->snapshot && !s->has_rules && !s->is_full,
        "for --at-used, --at-retries, --at-growth and a full screen"};
    code = options_refuse_misuse(&command_live, &misuse, 1);
    if (code != EXIT_FINE)
        return code;
    s->sampler.watch = watch_create(&options);
    s->brink = brink_create(&rules);
    return s->sampler.watch && s->brink ? EXIT_FINE : report_memory("live", NULL);
}

static void
close_session(struct session *s)
{
    brink_destroy(s->brink);
    watch_destroy(s->sampler.watch);
    free(s->folder);
}

static int
run_session(const struct values *v, const char *wanted)
{
    struct session s = {.values = v, .sampler = {.wanted = wanted, .is_json = v->json}};
    int code = open_session(&s);
    if (code == EXIT_FINE)
        code = show(&s);
    close_session(&s);
    return code;
}

static int
tell_others(const struct values *v, const char *wanted)
{
    const struct exporter_options options = {
        .watch = {.folder = v->folder, .has_driver = !v->no_driver},
        .bounds = {.processes = (size_t)v->processes, .lanes = (size_t)v->lanes},
    };
    if (wanted)
        return report_usage("live", "'%s': --listen and --metrics tell of all programs",
                            wanted);
    return exporter_run(v->listen, &options);
}

static int
run(int argc, char **argv)
{
    struct values v = {.folder = "/dev/shm", .at_most = 4, .processes = 256};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_live, argc, argv, &v, &operands, &code)) {
        const char *wanted = operands.count ? operands.values[0] : NULL;
        if (operands.count > 1)
            code = report_usage("live", "one PID or NAME is expected, not %zu",
                                operands.count);
        else if (v.listen || v.has_metrics)
            code = tell_others(&v, wanted);
        else
            code = run_session(&v, wanted);
    }
    options_finish(&command_live, &v, &operands);
    return code;
}

const struct command command_live = {
    .name = "live",
    .summary = "the memory of running programs, pool by pool; for Prometheus, too",
    .usage = "[options] [PID|NAME]",
    .about = about_text,
    .examples = "drystone live\n"
                "drystone live train.py --once --for 5\n"
                "drystone live 4711 --json --every 0.5\n"
                "drystone live --at-used 95% --snapshot /tmp/snapshots\n"
                "drystone live --listen 127.0.0.1:9432\n"
                "drystone live --metrics > /var/lib/node_exporter/drystone.prom\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
