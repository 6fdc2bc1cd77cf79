/* SPDX-License-Identifier: Apache-2.0 */
/* See view_serve.h. */
#include "view/view_serve.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/*
 * A file that leads to the server's address. Every user can read the arguments of a
 * browser, and the address has the token; the file and its folder are the user's alone.
 */
struct lead {
    char folder[256], path[272]; /* folder is "" if there is none */
};

static bool
write_whole(int file, const char *text)
{
    size_t length = strlen(text);
    ssize_t written = write(file, text, length);
    if (written >= 0 && (size_t)written < length)
        errno = ENOSPC;
    return written == (ssize_t)length;
}

static void
remove_lead(struct lead *lead)
{
    if (!lead->folder[0])
        return;
    unlink(lead->path);
    rmdir(lead->folder);
    lead->folder[0] = '\0';
}

/* Returns false with errno set if it fails; nothing is left then. */
static bool
make_lead(struct lead *lead, const char *address)
{
    const char *own = getenv("XDG_RUNTIME_DIR");
    char folder[sizeof lead->folder], text[512];
    int length = snprintf(folder, sizeof folder, "%s/drystone-XXXXXX",
                          own && own[0] == '/' ? own : "/tmp");
    if (length >= (int)sizeof folder) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (!mkdtemp(folder))
        return false;
    snprintf(lead->folder, sizeof lead->folder, "%s", folder);
    snprintf(lead->path, sizeof lead->path, "%s/view.html", folder);
    snprintf(text, sizeof text,
             "<!doctype html><meta charset=\"utf-8\"><title>Drystone</title>\n"
             "<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n"
             "<a href=\"%s\">Open the view</a>\n",
             address, address);
    int file = open(lead->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool is_fine = file >= 0 && write_whole(file, text);
    int wrong = errno;
    if (file >= 0 && close(file) != 0 && is_fine) {
        wrong = errno;
        is_fine = false;
    }
    if (!is_fine)
        remove_lead(lead);
    errno = wrong;
    return is_fine;
}

static void
open_browser(struct lead *lead, const char *address)
{
    char program[] = "xdg-open";
    char *argv[] = {program, lead->path, NULL};
    pid_t child;
    if (!make_lead(lead, address)) {
        report_failure("view", NULL, EXIT_MACHINE,
                       "no browser is opened: a file for it: %s", strerror(errno));
        return;
    }
    int wrong = posix_spawnp(&child, program, NULL, NULL, argv, environ);
    if (wrong != 0) {
        report_failure("view", NULL, EXIT_MACHINE, "no browser is opened: xdg-open: %s",
                       strerror(wrong));
        remove_lead(lead);
    }
}

int
view_serve(struct view *view, uint16_t port)
{
    struct server *server = NULL;
    struct lead lead = {.folder = ""};
    int code = server_start(view, port, &server);
    if (code == EXIT_FINE) {
        const volatile int *is_over = ending_on_signals();
        printf("%s\n", server_address(server));
        fflush(stdout);
        if (has_display())
            open_browser(&lead, server_address(server));
        server_run(server, is_over);
        remove_lead(&lead);
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
