/* SPDX-License-Identifier: Apache-2.0 */
/* See browser.h. */
#include "view/browser.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/command.h"
#include "base/report.h"

extern char **environ;

bool
browser_is_here(void)
{
    const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    return (x && *x) || (wayland && *wayland);
}

static bool
write_whole(int file, const char *text)
{
    size_t length = strlen(text);
    ssize_t written = write(file, text, length);
    if (written >= 0 && (size_t)written < length)
        errno = ENOSPC;
    return written == (ssize_t)length;
}

void
browser_close(struct browser *browser)
{
    if (!browser->folder[0])
        return;
    unlink(browser->path);
    rmdir(browser->folder);
    browser->folder[0] = '\0';
}

/* Returns false with errno set if it fails; nothing is left then. */
static bool
make_lead(struct browser *browser, const char *address)
{
    const char *own = getenv("XDG_RUNTIME_DIR");
    char folder[sizeof browser->folder], text[512];
    int length = snprintf(folder, sizeof folder, "%s/drystone-XXXXXX",
                          own && own[0] == '/' ? own : "/tmp");
    if (length >= (int)sizeof folder) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (!mkdtemp(folder))
        return false;
    snprintf(browser->folder, sizeof browser->folder, "%s", folder);
    snprintf(browser->path, sizeof browser->path, "%s/view.html", folder);
    snprintf(text, sizeof text,
             "<!doctype html><meta charset=\"utf-8\"><title>Drystone</title>\n"
             "<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n"
             "<a href=\"%s\">Open the view</a>\n",
             address, address);
    int file = open(browser->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool is_fine = file >= 0 && write_whole(file, text);
    int wrong = errno;
    if (file >= 0 && close(file) != 0 && is_fine) {
        wrong = errno;
        is_fine = false;
    }
    if (!is_fine)
        browser_close(browser);
    errno = wrong;
    return is_fine;
}

void
browser_open(struct browser *browser, const char *address)
{
    char program[] = "xdg-open";
    char *argv[] = {program, browser->path, NULL};
    pid_t child;
    if (!make_lead(browser, address)) {
        report_failure("view", NULL, EXIT_MACHINE,
                       "no browser is opened: a file for it: %s", strerror(errno));
        return;
    }
    int wrong = posix_spawnp(&child, program, NULL, NULL, argv, environ);
    if (wrong != 0) {
        report_failure("view", NULL, EXIT_MACHINE, "no browser is opened: xdg-open: %s",
                       strerror(wrong));
        browser_close(browser);
    }
}
