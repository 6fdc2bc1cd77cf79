/* SPDX-License-Identifier: Apache-2.0 */
/* See live_screen.h. This file has the clock and the keyboard. */
#include "live/live_terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>

#include "base/command.h"
#include "base/now.h"
#include "base/report.h"
#include "live/live_screen.h"
#include "tui/terminal.h"

/* Return the milliseconds until the next sample, rounded up: rounding down would wake too
   early and wait again. */
static int
wait_ms(const struct live_sampler *sampler)
{
    uint64_t now = (uint64_t)now_ns(CLOCK_BOOTTIME);
    uint64_t next = sampler->watch->now_ns + sampler->every_ns;
    return next > now ? (int)((next - now + 999999) / 1000000) : 0;
}

static bool
draw(struct live_screen *screen, struct terminal *terminal)
{
    struct grid grid;
    int width, height;
    terminal_get_size(terminal, &width, &height);
    live_screen_resize(screen, width, height);
    bool is_fine = grid_init(&grid, screen->width, screen->height) &&
                   live_screen_draw(screen, &grid);
    if (is_fine)
        terminal_show(terminal, &grid);
    grid_finish(&grid);
    return is_fine;
}

static bool
sample(struct live_screen *screen)
{
    struct live_sampler *sampler = screen->sampler;
    return watch_sample(sampler->watch) &&
           brink_check(screen->brink, sampler->watch, sampler->wanted, live_screen_tell,
                       screen);
}

/* Sample and handle keys until the user quits. A key press does not delay the next sample.
   False: memory ran out. */
static bool
loop(struct live_screen *screen, struct terminal *terminal)
{
    bool is_fine = brink_check(screen->brink, screen->sampler->watch,
                               screen->sampler->wanted, live_screen_tell, screen);
    while (is_fine && !screen->is_over) {
        int x, y, left_ms = wait_ms(screen->sampler);
        if (left_ms == 0)
            is_fine = sample(screen);
        is_fine = is_fine && draw(screen, terminal);
        int key = terminal_get_key(terminal, wait_ms(screen->sampler), &x, &y);
        if (key == TUI_KEY_GONE)
            screen->is_over = true;
        live_screen_press(screen, key);
        is_fine = is_fine && !screen->has_failed;
    }
    return is_fine;
}

int
live_terminal_run(struct live_sampler *sampler, struct brink *brink)
{
    (void)setlocale(LC_CTYPE, "");
    struct live_screen screen = {.sampler = sampler, .brink = brink};
    screen.has_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    struct terminal *terminal = terminal_open();
    if (!terminal)
        return report_failure("live", NULL, EXIT_MACHINE,
                              "the terminal is not known; --once prints text");
    bool is_fine = loop(&screen, terminal);
    terminal_close(terminal);
    return is_fine ? EXIT_FINE : report_memory("live", NULL);
}
