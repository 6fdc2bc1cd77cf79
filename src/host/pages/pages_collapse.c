/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/bits.h"
#include "base/fail.h"
#include "host/pages/pages_inside.h"

/*
 * EINVAL is also the answer to a page that cannot be moved, so it means an older kernel only
 * as long as nothing else was heard.
 */
int
dryi_pages_collapse(const struct dryi_kernel *kernel, uint64_t address, uint64_t bytes,
                    uint64_t step, uint64_t deadline_ns)
{
    int unknown = 0;
    bool is_known = false;
    for (uint64_t at = 0; at < bytes; at += step) {
        if (deadline_ns && kernel->time_ns(kernel->self) >= deadline_ns)
            return 0;
        int result =
            kernel->advise(kernel->self, address + at, step, DRYI_ADVISE_COLLAPSE);
        if (result == -ENOSYS || result == -EPERM)
            return result;
        is_known |= result != -EINVAL;
        if (result == -EINVAL)
            unknown = result;
        if (!is_known && at >= 7 * step)
            break;
    }
    return is_known ? 0 : unknown;
}

enum dry_status
dry_pages_collapse(const struct dry_pages *pages, uint32_t timeout_ms,
                   uint64_t *huge_bytes, struct dry_error *err)
{
    const struct dry_pages_info *info = &pages->info;
    const struct dryi_kernel *k = &pages->kernel;
    const struct dryi_facts facts = {.kernel = k, .root = ""};
    uint64_t address = (uintptr_t)info->address, huge = info->bytes, deadline_ns = 0;
    enum dry_status status = dryi_pages_check_owner(pages, err);
    if (status != DRY_OK)
        return status;
    if (info->kind == DRY_PAGES_BASE)
        return dryi_fail(err, DRY_ERR_UNSUPPORTED, "base pages are to stay base pages");
    if (timeout_ms)
        deadline_ns =
            dryi_add_saturating(k->time_ns(k->self), (uint64_t)timeout_ms * 1000000);
    if (info->kind == DRY_PAGES_TRANSPARENT) {
        int result =
            dryi_pages_collapse(k, address, info->bytes, info->page_bytes, deadline_ns);
        if (result == 0 && !dryi_pages_count_huge(&facts, address, info->bytes, &huge))
            return dryi_fail(err, DRY_ERR_UNSUPPORTED,
                             "the kernel does not tell what is huge");
        if (result < 0) {
            status = dryi_fail(err, DRY_ERR_UNSUPPORTED,
                               "this kernel does not collapse pages (Linux 6.1 does)");
            if (err)
                err->os_errno = -result;
            return status;
        }
    }
    *huge_bytes = huge;
    return DRY_OK;
}
