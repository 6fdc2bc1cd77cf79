/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats are in gate_note.h. Sources: GitHub's documentation of workflow commands,
 * with the escapes of its own toolkit; GitLab's documentation of Code Quality.
 */
#include "gate/gate_note.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fnv.h"
#include "base/json_out.h"
#include "base/term.h"

enum gate_forge
gate_forge_find(const char *word)
{
    if (!word)
        return GATE_FORGE_NONE;
    if (strcmp(word, "github") == 0)
        return GATE_FORGE_GITHUB;
    return strcmp(word, "gitlab") == 0 ? GATE_FORGE_GITLAB : GATE_FORGE_BAD;
}

/* Write a text of a workflow command. In a property, ':' and ',' are escaped, too. */
static void
print_escaped(const char *text, bool is_property)
{
    char safe[1024];
    term_make_printable(safe, sizeof safe, text, strlen(text));
    for (const char *c = safe; *c; c++) {
        if (*c == '%' || (is_property && (*c == ':' || *c == ',')))
            fprintf(stderr, "%%%02X", (unsigned)*c);
        else
            fputc(*c, stderr);
    }
}

/* Return the file and line at which a finding is shown. */
static const char *
get_source(const struct gate *gate, unsigned *line)
{
    *line = gate->source && gate->line ? gate->line : 1;
    return gate->source ? gate->source : gate->file;
}

void
gate_note_github(const struct gate *gate, const char *text)
{
    unsigned line;
    const char *source = get_source(gate, &line);
    fputs("::error file=", stderr);
    print_escaped(source, true);
    fprintf(stderr, ",line=%u,title=drystone %s::", line, gate->command);
    print_escaped(text, false);
    fputc('\n', stderr);
}

/* Mix a text into a fingerprint, with a separator byte that no UTF-8 text has. */
static uint64_t
mix(uint64_t hash, const char *text)
{
    return fnv_add(fnv_add_text(hash, text ? text : ""), "\xff", 1);
}

bool
gate_note_gitlab(const struct gate *gate, json_t *report, const char *figure,
                 const char *of, const char *text)
{
    unsigned line;
    const char *source = get_source(gate, &line);
    uint64_t hash = mix(FNV_BEGIN, gate->command);
    hash = mix(mix(mix(hash, gate->file), figure), of);
    char print[20];
    snprintf(print, sizeof print, "%016" PRIx64, hash);
    return json_array_append_new(
               report,
               json_pack("{s:o, s:s, s:s, s:s, s:{s:o, s:{s:i}}}", "description",
                         json_out_string(text), "check_name", figure, "fingerprint",
                         print, "severity", "major", "location", "path",
                         json_out_string(source), "lines", "begin", (int)line)) == 0;
}
