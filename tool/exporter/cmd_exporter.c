/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone exporter`: the memory of running programs, for Prometheus. */
#include <stdio.h>
#include <stdlib.h>

#include "base/command.h"
#include "base/ending.h"
#include "base/report.h"
#include "exporter/exporter.h"
#include "exporter/exporter_server.h"

#define LISTEN "127.0.0.1:9432"
#define FOLDER "/dev/shm"
#define PROCESSES 256

struct values {
    const char *listen, *unix_path, *folder;
    bool is_once, has_no_driver;
    int64_t lanes, processes;
};

static const struct option_spec specs[] = {
    {"folder", 0, "DIR", OPTION_STRING, offsetof(struct values, folder),
     .help = "where the pages of programs are; default: " FOLDER},
    {"lanes", 0, "N", OPTION_INT, offsetof(struct values, lanes),
     .help = "pools and streams, too: the N largest of an allocator; the rest are one",
     .max = DRY_LIVE_LANES_MAX},
    {"listen", 'l', "ADDRESS", OPTION_STRING, offsetof(struct values, listen),
     .help = "address and port; default: " LISTEN,
     .refuses = {{"once unix", "of the server on an address"}}},
    {"no-driver", 0, NULL, OPTION_FLAG, offsetof(struct values, has_no_driver),
     .help = "do not ask the NVIDIA driver for devices and processes"},
    {"once", 0, NULL, OPTION_FLAG, offsetof(struct values, is_once),
     .help = "print the text and end, for a collector of text files"},
    {"processes-max", 0, "N", OPTION_INT, offsetof(struct values, processes),
     .help = "export the N largest processes; default: 256", .min = 1,
     .max = WATCH_PROCESSES_MAX},
    {"unix", 0, "PATH", OPTION_STRING, offsetof(struct values, unix_path),
     .help = "listen on a socket in a folder, of mode 0660",
     .refuses = {{"once", "of the server on a socket"}}},
};

static const char about_text[] =
    "Serves the memory of running programs to Prometheus: what devices and processes "
    "have "
    "by the driver, and what the allocators of programs with a page say, reserved, "
    "allocated, stranded, and the time to the limit. It answers http://" LISTEN
    "/metrics "
    "until ^C or SIGTERM, and nobody but this machine unless another address is given.";

static int
print_once(struct exporter *exporter)
{
    size_t length;
    (void)exporter_look(exporter, 0);
    char *text = exporter_write(exporter->watch, &exporter->bounds, &exporter->counts,
                                EXPORTER_PROMETHEUS, &length);
    if (!text)
        return report_failure("exporter", NULL, EXIT_MACHINE, "no memory");
    bool is_done = fwrite(text, 1, length, stdout) == length;
    free(text);
    return is_done ? EXIT_FINE : EXIT_MACHINE; /* main says why */
}

#ifdef HAVE_SERVER

static int
serve_on(struct exporter *exporter, struct exporter_socket *socket)
{
    struct exporter_server *server = exporter_server_start(exporter, socket);
    if (!server)
        return report_failure("exporter", NULL, EXIT_MACHINE, "cannot serve: no memory");
    const volatile int *is_over = ending_on_signals();
    printf(socket->is_unix ? "unix:%s\n" : "http://%s/metrics\n", socket->text);
    fflush(stdout);
    exporter_server_run(server, is_over);
    exporter_server_stop(server);
    return EXIT_FINE;
}

static int
serve(struct exporter *exporter, const struct values *values)
{
    struct exporter_socket socket;
    int code = values->unix_path
                   ? exporter_listen_unix(values->unix_path, &socket)
                   : exporter_listen(values->listen ? values->listen : LISTEN, &socket);
    if (code != EXIT_FINE)
        return code;
    code = serve_on(exporter, &socket);
    exporter_unlisten(&socket);
    return code;
}

#else

static int
serve(struct exporter *exporter, const struct values *values)
{
    (void)exporter;
    (void)values;
    return report_failure("exporter", NULL, EXIT_MACHINE,
                          "this build has no server, which libmicrohttpd is needed for; "
                          "--once prints the text");
}

#endif

static int export(const struct values *values)
{
    struct exporter exporter;
    const struct exporter_options options = {
        .watch = {.folder = values->folder, .has_driver = !values->has_no_driver},
        .bounds = {.processes = (size_t)values->processes,
                   .lanes = (size_t)values->lanes},
    };
    int code = exporter_init(&exporter, &options)
                   ? values->is_once ? print_once(&exporter) : serve(&exporter, values)
                   : report_failure("exporter", NULL, EXIT_MACHINE, "no memory");
    exporter_finish(&exporter);
    return code;
}

static int
run(int argc, char **argv)
{
    struct values values = {.folder = FOLDER, .processes = PROCESSES};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_exporter, argc, argv, &values, &operands, &code))
        code = operands.count > 0 ? report_usage("exporter", "'%s': it takes no files",
                                                 operands.values[0])
                                  : export(&values);
    options_finish(&command_exporter, &values, &operands);
    return code;
}

const struct command command_exporter = {
    .name = "exporter",
    .summary = "the memory of running programs, for Prometheus",
    .usage = "[options]",
    .about = about_text,
    .examples = "drystone exporter\n"
                "drystone exporter --once > /var/lib/node_exporter/drystone.prom\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
