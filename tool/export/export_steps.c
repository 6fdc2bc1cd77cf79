/* SPDX-License-Identifier: Apache-2.0 */
/* The library finds the steps; failures go to the writer, see export_steps.h. */
#include "export/export_steps.h"

#include <stddef.h>

void
export_steps_init(struct export_steps *s, const struct dry_timeline *timeline,
                  struct writer *w)
{
    *s = (struct export_steps){0};
    struct dry_error err;
    enum dry_status status = dry_steps_create(timeline, NULL, &s->steps, &err);
    if (status != DRY_OK) {
        writer_fail(w, status, "%s", err.text);
        return;
    }
    if (dry_steps_get_source(s->steps) != DRY_STEPS_NONE)
        s->all = dry_steps_get(s->steps, &s->count);
}

void
export_steps_finish(struct export_steps *s)
{
    dry_steps_destroy(s->steps);
    *s = (struct export_steps){0};
}
