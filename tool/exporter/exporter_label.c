/* SPDX-License-Identifier: Apache-2.0 */
/* See exporter_label.h. */
#include "exporter/exporter_label.h"

#include <string.h>

#include "base/term.h"

void
exporter_label_part(FILE *out, const char *key, const char *text, size_t length)
{
    char value[EXPORTER_LABEL_BYTES + 1];
    if (term_make_printable(value, sizeof value, text, length) == 0)
        return;
    fprintf(out, ",%s=\"", key);
    for (const char *c = value; *c; c++) {
        if (*c == '"' || *c == '\\')
            fputc('\\', out);
        fputc(*c, out);
    }
    fputc('"', out);
}

void
exporter_label(FILE *out, const char *key, const char *text)
{
    exporter_label_part(out, key, text, strlen(text));
}

/* Find the value of `key` in a comma-separated list of "key=value"; NULL: absent. */
static const char *
find_value(const char *labels, const char *key, size_t *length)
{
    size_t key_length = strlen(key);
    for (const char *at = labels; *at;) {
        size_t all = strcspn(at, ",");
        if (all > key_length && at[key_length] == '=' &&
            memcmp(at, key, key_length) == 0) {
            *length = all - key_length - 1;
            return at + key_length + 1;
        }
        at += all;
        at += *at == ',';
    }
    return NULL;
}

void
exporter_page_labels(FILE *out, const char *labels)
{
    static const char *const names[][2] = {
        {"pod", "exported_pod"},
        {"namespace", "exported_namespace"},
        {"container", "exported_container"},
        {"node", "exported_node"},
        {"job_completion_index", "exported_job_completion_index"},
        {"slurm_job_id", "exported_slurm_job_id"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = 0;
        const char *value = find_value(labels, names[i][0], &length);
        if (value)
            exporter_label_part(out, names[i][1], value, length);
    }
}
