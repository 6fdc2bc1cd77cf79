/* SPDX-License-Identifier: Apache-2.0 */
/* See view_serve.h. */
#include "view/view_serve.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ending.h"
#include "base/report.h"
#include "view/server.h"

#ifdef HAVE_SERVER

extern char **environ;

static bool
has_display(void)
{
    const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    return (x && *x) || (wayland && *wayland);
}

static void
open_browser(const char *address)
{
    char program[] = "xdg-open", url[96];
    char *argv[] = {program, url, NULL};
    pid_t child;
    snprintf(url, sizeof url, "%s", address);
    int wrong = posix_spawnp(&child, program, NULL, NULL, argv, environ);
    if (wrong != 0)
        report_failure("view", NULL, EXIT_MACHINE, "no browser is opened: xdg-open: %s",
                       strerror(wrong));
}

int
view_serve(struct view *view, uint16_t port)
{
    struct server *server = NULL;
    int code = server_start(view, port, &server);
    if (code == EXIT_FINE) {
        const volatile int *is_over = ending_on_signals();
        printf("%s\n", server_address(server));
        fflush(stdout);
        if (has_display())
            open_browser(server_address(server));
        server_run(server, is_over);
    }
    server_stop(server);
    return code;
}

#else

int
view_serve(struct view *view, uint16_t port)
{
    (void)view;
    (void)port;
    return report_failure("view", NULL, EXIT_MACHINE,
                          "this build has no server, which libmicrohttpd is needed for; "
                          "--output writes the page to a file");
}

#endif
