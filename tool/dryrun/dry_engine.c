/* SPDX-License-Identifier: Apache-2.0 */
/* The part of dry_report.h that tells what a serving engine says of its memory. */
#include <stdio.h>
#include <string.h>

#include "dryrun/dry_report.h"

bool
dry_report_write_engine(const struct trial *t, char *text, size_t capacity)
{
    const struct facts_process *p = trial_find_engine(t),
                               *refusal = trial_find_refusal(t);
    char bytes[TERM_NUMBER_BYTES], tokens[TERM_NUMBER_BYTES], length[TERM_NUMBER_BYTES],
        requests[TERM_NUMBER_BYTES];
    if (refusal) {
        const char *kind = json_string_value(
            json_object_get(json_object_get(refusal->json, "error"), "kind"));
        snprintf(text, capacity, "%.60s%s%.400s", kind ? kind : "", kind ? ": " : "",
                 refusal->refusal);
        return true;
    }
    if (!p || p->engine.kv_tokens == 0 || trial_outcome(t) != TRIAL_FITS)
        return false;
    int used = snprintf(text, capacity, "KV cache %s = %s tokens, %s request%s of %s",
                        term_format_bytes(p->engine.kv_bytes, bytes),
                        term_format_count(p->engine.kv_tokens, tokens),
                        term_format_count(p->engine.requests, requests),
                        p->engine.requests == 1 ? "" : "s",
                        term_format_count(p->engine.length, length));
    unsigned engines = t->launch.engine_count;
    if (engines > 1 && (size_t)used < capacity)
        snprintf(text + used, capacity - (size_t)used, ", in each of %u engines",
                 engines);
    return true;
}

/* Append a figure of an engine, unless it is 0: not told. */
static void
add_figure(char *text, size_t capacity, const char *name, uint64_t bytes,
           const char *kind)
{
    char number[TERM_NUMBER_BYTES];
    size_t used = strlen(text);
    if (bytes > 0)
        snprintf(text + used, capacity - used, "%s%s %s%s", used ? " | " : "", name,
                 term_format_bytes(bytes, number), kind);
}

void
dry_report_print_engine(const struct trial *t, const struct term *term)
{
    const struct facts_process *p = trial_find_engine(t);
    char text[400] = "", total[TERM_NUMBER_BYTES];
    if (!p)
        return;
    const struct facts_engine *e = &p->engine;
    add_figure(text, sizeof text, "weights", e->weights_bytes, "");
    add_figure(text, sizeof text, "activation", e->activation_bytes, "");
    add_figure(text, sizeof text, "outside PyTorch", e->outside_bytes, " (assumed)");
    add_figure(text, sizeof text, "graphs", e->graph_bytes, " in pools");
    add_figure(text, sizeof text, "request", e->request_bytes, "");
    add_figure(text, sizeof text, "asleep", e->asleep_bytes, "");
    size_t used = strlen(text);
    if (e->total_bytes > 0)
        snprintf(text + used, sizeof text - used, "%sutilization %.4g of %s",
                 used ? " | " : "", e->utilization,
                 term_format_bytes(e->total_bytes, total));
    fprintf(term->out, "  ");
    term_print_wrapped(term->out, text, 2, term->width);
}
