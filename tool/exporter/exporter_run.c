/* SPDX-License-Identifier: Apache-2.0 */
/* See exporter_run.h. */
#include "exporter/exporter_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/ending.h"
#include "base/report.h"
#include "exporter/exporter_server.h"

static int
print_once(struct exporter *exporter)
{
    size_t length;
    (void)exporter_sample(exporter, 0);
    char *text = exporter_write(exporter->watch, &exporter->bounds, &exporter->counts,
                                EXPORTER_PROMETHEUS, &length);
    if (!text)
        return report_memory("live", NULL);
    bool is_done = fwrite(text, 1, length, stdout) == length;
    free(text);
    return is_done ? EXIT_FINE : EXIT_MACHINE; /* main() prints the reason */
}

#ifdef HAVE_SERVER

#define UNIX "unix:"

static int
serve_on(struct exporter *exporter, struct exporter_socket *socket)
{
    struct exporter_server *server = exporter_server_start(exporter, socket);
    if (!server)
        return report_failure("live", NULL, EXIT_MACHINE, "cannot serve: no memory");
    const volatile int *is_over = ending_on_signals();
    printf(socket->is_unix ? UNIX "%s\n" : "http://%s/metrics\n", socket->text);
    fflush(stdout);
    exporter_server_run(server, is_over);
    exporter_server_stop(server);
    return EXIT_FINE;
}

static int
serve(struct exporter *exporter, const char *listen)
{
    struct exporter_socket socket;
    int code = strncmp(listen, UNIX, sizeof UNIX - 1) == 0
                   ? exporter_listen_unix(listen + sizeof UNIX - 1, &socket)
                   : exporter_listen(listen, &socket);
    if (code != EXIT_FINE)
        return code;
    code = serve_on(exporter, &socket);
    exporter_unlisten(&socket);
    return code;
}

#else

static int
serve(struct exporter *exporter, const char *listen)
{
    (void)exporter;
    (void)listen;
    return report_failure("live", NULL, EXIT_MACHINE,
                          "this build has no server, which libmicrohttpd is needed for; "
                          "--metrics prints the text");
}

#endif

int
exporter_run(const char *listen, const struct exporter_options *options)
{
    struct exporter exporter;
    int code = exporter_init(&exporter, options)
                   ? listen ? serve(&exporter, listen) : print_once(&exporter)
                   : report_memory("live", NULL);
    exporter_finish(&exporter);
    return code;
}
