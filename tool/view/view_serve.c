/* SPDX-License-Identifier: Apache-2.0 */
/* See view_serve.h. */
#include "view/view_serve.h"

#include <stdio.h>

#include "base/ending.h"
#include "base/report.h"
#include "view/browser.h"
#include "view/server.h"

#ifdef HAVE_SERVER

int
view_serve(struct view *view, uint16_t port)
{
    struct server *server = NULL;
    struct browser browser = {.folder = ""};
    int code = server_start(view, port, &server);
    if (code == EXIT_FINE) {
        const volatile int *is_over = ending_on_signals();
        printf("%s\n", server_address(server));
        fflush(stdout);
        if (browser_is_here())
            browser_open(&browser, server_address(server));
        server_run(server, is_over);
        browser_close(&browser);
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
