/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone serve`: the page of the views with everything in it, for this machine. */
#include <spawn.h>
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "base/ending.h"
#include "base/report.h"
#include "view/server.h"

struct values {
    int64_t port;
    bool does_open;
};

static const struct option_spec specs[] = {
    {"open", 0, NULL, OPTION_FLAG, offsetof(struct values, does_open),
     .help = "open the page in the desktop's browser"},
    {"port", 'p', "N", OPTION_INT, offsetof(struct values, port),
     .help = "the port on 127.0.0.1; default: any that is free", .min = 1, .max = 65535},
};

static const char about_text[] =
    "Shows FILE in a browser: the same page as `drystone report`, with every event and "
    "every "
    "moment. It listens on 127.0.0.1 and answers only who knows the address it prints, "
    "which "
    "is another one each time. It ends with ^C. From another machine: "
    "ssh -L 8000:127.0.0.1:8000 HOST drystone serve --port 8000 FILE.";

#ifdef HAVE_SERVER

extern char **environ;

static void
open_browser(const char *address)
{
    char program[] = "xdg-open", url[96];
    char *argv[] = {program, url, NULL};
    pid_t child;
    snprintf(url, sizeof url, "%s", address);
    int wrong = posix_spawnp(&child, program, NULL, NULL, argv, environ);
    if (wrong != 0)
        report_failure("serve", NULL, EXIT_MACHINE, "--open: xdg-open: %s",
                       strerror(wrong));
}

static int
serve(struct view *view, const struct values *values)
{
    struct server *server = NULL;
    int code = server_start(view, (uint16_t)values->port, &server);
    if (code == EXIT_FINE) {
        const volatile int *is_over = ending_on_signals();
        printf("%s\n", server_address(server));
        fflush(stdout);
        if (values->does_open)
            open_browser(server_address(server));
        server_run(server, is_over);
    }
    server_stop(server);
    return code;
}

#else

static int
serve(struct view *view, const struct values *values)
{
    (void)view;
    (void)values;
    return report_failure("serve", NULL, EXIT_MACHINE,
                          "this build has no server, which libmicrohttpd is needed for; "
                          "`drystone report` writes the page to a file");
}

#endif

static int
run(int argc, char **argv)
{
    struct values values = {0};
    struct option_list operands = {0};
    struct view view = {0};
    int code;
    if (options_parse(&command_serve, argc, argv, &values, &operands, &code)) {
        code = view_expect_files(&command_serve, &operands, "cannot be read twice");
        if (code == EXIT_FINE)
            code = view_open(&view, "serve", operands.values, operands.count);
        if (code == EXIT_FINE)
            code = serve(&view, &values);
    }
    view_close(&view);
    options_finish(&command_serve, &values, &operands);
    return code;
}

const struct command command_serve = {
    .name = "serve",
    .summary = "the page of the views in a browser, with every event",
    .usage = "[options] FILE...",
    .about = about_text,
    .examples = "drystone serve oom.pickle --open\n"
                "drystone serve rank*.pickle --port 8000\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
