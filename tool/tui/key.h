/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_KEY_H
#define TOOL_KEY_H

/* Keys with a function; other keys are their characters. */
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
    TUI_KEY_CLICK,  /* mouse click at a cell */
    TUI_KEY_RESIZE, /* the terminal was resized */
    TUI_KEY_NONE,   /* timeout without a key */
    TUI_KEY_GONE,   /* the terminal was closed */
};

#endif
