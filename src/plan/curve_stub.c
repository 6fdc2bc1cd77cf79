#include "base/fail.h"
#include <drystone/plan.h>
enum dry_status
dry_plan_curve(const struct dry_chain *chain, const struct dry_plan_options *options,
               struct dry_plan_point *points, size_t capacity, size_t *count,
               struct dry_error *err)
{
    (void)chain;
    (void)options;
    (void)points;
    (void)capacity;
    (void)count;
    return dryi_fail(err, DRY_ERR_UNSUPPORTED, "no curve yet");
}
