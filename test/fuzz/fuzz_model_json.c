/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as a model's configuration. What is refused says why; what is read is estimated, if
 * it is small enough for that to take no time, or refused with a reason again.
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "estimate/model_json.h"

#define LAYERS_MAX 64u
#define LIST_MAX 4096u

static void
require(int condition)
{
    if (!condition)
        abort();
}

static void
check_error(enum dry_status status, const struct dry_error *err)
{
    require(err->status == status && err->text[0]);
    require(memchr(err->text, '\0', sizeof err->text) != NULL);
}

static void
check_estimate(const struct dry_model *model)
{
    struct dry_estimate *estimate = NULL;
    struct dry_run_setup setup;
    struct dry_error err = {0};
    dry_run_setup_init(&setup);
    setup.sequence = 1;
    enum dry_status status = dry_estimate_create(model, &setup, NULL, &estimate, &err);
    require((status == DRY_OK) == (estimate != NULL));
    if (status != DRY_OK) {
        check_error(status, &err);
        return;
    }
    const struct dry_estimate_summary *s = dry_estimate_get_summary(estimate);
    for (int i = 0; i < DRY_ESTIMATE_PHASE_COUNT; i++)
        require(s->phases[i].requested_bytes <= s->phases[i].allocated_bytes);
    dry_estimate_destroy(estimate);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model_json json;
    struct dry_error err = {0};
    enum dry_status status = model_json_parse((const char *)data, size, &json, &err);
    if (status != DRY_OK)
        check_error(status, &err);
    else if (json.model.layers <= LAYERS_MAX && json.model.conv_count <= LIST_MAX)
        check_estimate(&json.model);
    model_json_finish(&json);
    return 0;
}
