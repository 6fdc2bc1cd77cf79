/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_KEY_H
#define TOOL_KEY_H

/* Keys by their meaning; any other is its character. */
enum tui_key {
    TUI_KEY_LEFT = 0x100,
    TUI_KEY_RIGHT,
    TUI_KEY_UP,
    TUI_KEY_DOWN,
    TUI_KEY_PAGE_UP,
    TUI_KEY_PAGE_DOWN,
    TUI_KEY_HOME,
    TUI_KEY_END,
    TUI_KEY_ENTER,
    TUI_KEY_ESCAPE,
    TUI_KEY_BACKSPACE,
    TUI_KEY_CLICK,  /* of the mouse, at a place */
    TUI_KEY_RESIZE, /* the terminal has another size */
    TUI_KEY_NONE,   /* none came in time */
    TUI_KEY_GONE,   /* there is no terminal any more */
};

#endif
