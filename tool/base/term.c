/* SPDX-License-Identifier: Apache-2.0 */
/* See term.h. UTF-8 decoding follows RFC 3629: no overlong forms, no surrogates. */
#include "base/term.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_MIN 40
#define WIDTH_MAX 10000

/* Take the width of a pipe from COLUMNS, if the value is wide enough for a table. */
static void
read_columns(struct term *term)
{
    const char *text = getenv("COLUMNS");
    char *end = NULL;
    long columns = text ? strtol(text, &end, 10) : 0;
    if (columns < WIDTH_MIN || columns > WIDTH_MAX || *end)
        return;
    term->has_width = true;
    term->width = (int)columns;
}

/* Take the width of a terminal, where a system can tell it: WASI has no ioctl() for it. */
static void
read_width(struct term *term, int fd)
{
#ifdef TIOCGWINSZ
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= WIDTH_MIN)
        term->width = size.ws_col;
#else
    (void)term;
    (void)fd;
#endif
}

void
term_init(struct term *term, FILE *out)
{
    *term = (struct term){.out = out, .width = 80};
    int fd = fileno(out);
    if (fd < 0 || !isatty(fd)) {
        read_columns(term);
        return;
    }
    term->is_terminal = term->has_width = true;
    const char *no_color = getenv("NO_COLOR");
    const char *name = getenv("TERM");
    term->has_color = !(no_color && *no_color) && name && strcmp(name, "dumb") != 0;
    read_width(term, fd);
}

const char *
term_style(const struct term *term, enum term_style style)
{
    static const char *const sequences[] = {
        [TERM_PLAIN] = "\x1b[0m", [TERM_BOLD] = "\x1b[1m",   [TERM_DIM] = "\x1b[2m",
        [TERM_RED] = "\x1b[31m",  [TERM_GREEN] = "\x1b[32m", [TERM_YELLOW] = "\x1b[33m",
    };
    return term->has_color ? sequences[style] : "";
}

/*
 * Return whether a terminal shows nothing for a character, or obeys the character: Unicode
 * 17's controls, line ends, format characters (Cc, Zl, Zp, Cf) and all that is
 * Default_Ignorable_Code_Point. Two names that look the same may differ by these.
 */
static bool
is_invisible(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x80, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},     {0x600, 0x605},
        {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},
        {0x8e2, 0x8e2},     {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},
        {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164},
        {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},
        {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},
        {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };
    size_t i = 0;
    while (i < sizeof ranges / sizeof *ranges && code > ranges[i].last)
        i++;
    return i < sizeof ranges / sizeof *ranges && code >= ranges[i].first;
}

/* Return the length of the UTF-8 character at `s`, or 0 if it is malformed or invisible. */
static size_t
measure_character(const unsigned char *s, size_t left)
{
    if (s[0] < 0x80)
        return s[0] >= 0x20 && s[0] != 0x7f;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || length > left)
        return 0;
    uint32_t code = s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    bool is_code = code >= smallest[length] && code <= 0x10ffff &&
                   !(code >= 0xd800 && code <= 0xdfff);
    return is_code && !is_invisible(code) ? length : 0;
}

/* Return the length of malformed bytes to replace by one '?': 1, or 3 for an encoded
   surrogate, by which Python's "surrogateescape" represents one byte. */
static size_t
measure_surrogate(const unsigned char *bytes, size_t length)
{
    bool is_surrogate = length >= 3 && bytes[0] == 0xed && bytes[1] >= 0xa0 &&
                        bytes[1] < 0xc0 && (bytes[2] & 0xc0) == 0x80;
    return is_surrogate ? 3 : 1;
}

size_t
term_make_printable(char *to, size_t capacity, const char *bytes, size_t length)
{
    size_t used = 0;
    for (size_t i = 0; i < length;) {
        size_t n = measure_character((const unsigned char *)bytes + i, length - i);
        if (used + (n ? n : 1) >= capacity)
            break;
        if (n)
            memcpy(to + used, bytes + i, n);
        else
            to[used] = '?';
        used += n ? n : 1;
        i += n ? n : measure_surrogate((const unsigned char *)bytes + i, length - i);
    }
    to[used] = '\0';
    return used;
}

void
term_print_text(FILE *out, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length;) {
        size_t n = measure_character((const unsigned char *)bytes + i, length - i);
        if (n)
            fwrite(bytes + i, 1, n, out);
        else
            fputc('?', out);
        i += n ? n : 1;
    }
}

size_t
term_columns(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

const char *
term_skip_columns(const char *text, size_t columns)
{
    while (*text && columns > 0) {
        text++;
        while (((unsigned char)*text & 0xc0) == 0x80)
            text++;
        columns--;
    }
    return text;
}

/* Return the length of the word at `text`. A number and its unit, "2.00 MiB", count as
   one word. */
static size_t
measure_word(const char *text)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB",
                                        "%", "ns",  "us",  "ms",  "s",   "min", "h"};
    size_t length = strcspn(text, " \n");
    bool is_number = length > 0 && text[length - 1] >= '0' && text[length - 1] <= '9';
    if (!is_number || text[length] != ' ')
        return length;
    const char *unit = text + length + 1;
    size_t bytes = strcspn(unit, " \n");
    size_t letters = bytes > 0 && strchr(",;:.)", unit[bytes - 1]) ? bytes - 1 : bytes;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strlen(units[i]) == letters && memcmp(units[i], unit, letters) == 0)
            return length + 1 + bytes;
    }
    return length;
}

void
term_print_wrapped(FILE *out, const char *text, int column, int width)
{
    int used = column;
    while (*text) {
        size_t length = measure_word(text);
        if (used > column && used + 1 + (int)length > width) {
            fprintf(out, "\n%*s", column, "");
            used = column;
        }
        used += fprintf(out, "%s%.*s", used > column ? " " : "", (int)length, text);
        text += length;
        if (*text == '\n') {
            fprintf(out, "\n%*s", text[1] == '\n' ? 0 : column, "");
            used = column;
        }
        text += *text != '\0';
    }
    fputc('\n', out);
}

#define NAME_COLUMNS_MIN 12

/* Print a word cut to `columns_max` columns, keeping its end, which tells names apart. */
static void
print_end(FILE *out, const char *word, size_t columns, size_t columns_max)
{
    if (columns > columns_max) {
        fputs("…", out);
        word = term_skip_columns(word, columns - (columns_max - 1));
    }
    fwrite(word, 1, strcspn(word, " "), out);
}

void
term_print_name(FILE *out, const char *text, int column, int width)
{
    size_t columns_max =
        (size_t)(width - column > NAME_COLUMNS_MIN ? width - column : NAME_COLUMNS_MIN);
    size_t used = 0;
    while (*text) {
        const char *next = text + strcspn(text, " ");
        size_t columns = term_columns(text) - term_columns(next);
        if (used > 0 && used + 1 + columns > columns_max) {
            fprintf(out, "\n%*s", column, "");
            used = 0;
        }
        fputs(used > 0 ? " " : "", out);
        used += (used > 0) + (columns < columns_max ? columns : columns_max);
        print_end(out, text, columns, columns_max);
        text = next + strspn(next, " ");
    }
    fputc('\n', out);
}

#define FILE_BYTES_MAX 4096

void
term_print_subject(const struct term *term, const char *file, enum term_style style,
                   const char *format, ...)
{
    char name[FILE_BYTES_MAX], rest[240];
    size_t length = strlen(file), columns_max = (size_t)term->width - 1;
    bool is_cut = length >= sizeof name;
    va_list args;
    va_start(args, format);
    vsnprintf(rest, sizeof rest, format, args);
    va_end(args);
    term_make_printable(name, sizeof name, file + (is_cut ? length - sizeof name + 1 : 0),
                        is_cut ? sizeof name - 1 : length);
    size_t columns = term_columns(name);
    bool is_long = columns + 2 + term_columns(rest) > (size_t)term->width;
    const char *end =
        columns > columns_max ? term_skip_columns(name, columns - columns_max + 1) : name;
    bool is_styled = style != TERM_PLAIN;
    fprintf(term->out, "%s%s%s%s:%s%s\n", is_styled ? term_style(term, style) : "",
            end == name ? "" : "…", end, is_styled ? term_style(term, TERM_PLAIN) : "",
            is_long ? "\n  " : " ", rest);
}

const char *
term_format_bytes(uint64_t bytes, char text[TERM_NUMBER_BYTES])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(text, TERM_NUMBER_BYTES, "%u B", (unsigned)bytes);
        return text;
    }
    size_t unit = 0;
    double value = (double)bytes / 1024;
    /* two decimals would show 1023.995 as 1024.00 */
    for (; value >= 1023.995 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1024;
    snprintf(text, TERM_NUMBER_BYTES, "%.2f %s", value, units[unit]);
    return text;
}

const char *
term_format_count(uint64_t count, char text[TERM_NUMBER_BYTES])
{
    char digits[TERM_NUMBER_BYTES];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    size_t used = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[used++] = ' ';
        text[used++] = digits[i];
    }
    text[used] = '\0';
    return text;
}

const char *
term_format_time(uint64_t time_us, char text[TERM_NUMBER_BYTES])
{
    uint64_t seconds = time_us / 1000000;
    if (time_us < 1000)
        snprintf(text, TERM_NUMBER_BYTES, "%u us", (unsigned)time_us);
    else if (seconds < 1)
        snprintf(text, TERM_NUMBER_BYTES, "%u ms", (unsigned)(time_us / 1000));
    else if (seconds < 120)
        snprintf(text, TERM_NUMBER_BYTES, "%.1f s", (double)time_us / 1e6);
    else if (seconds < 7200)
        snprintf(text, TERM_NUMBER_BYTES, "%llu min %llu s",
                 (unsigned long long)(seconds / 60), (unsigned long long)(seconds % 60));
    else
        snprintf(text, TERM_NUMBER_BYTES, "%llu h %llu min",
                 (unsigned long long)(seconds / 3600),
                 (unsigned long long)(seconds / 60 % 60));
    return text;
}
