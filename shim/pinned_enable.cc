// SPDX-License-Identifier: Apache-2.0
#include "shim.h"

#include "failure.h"
#include "pinned.h"

namespace
{

constexpr const char *not_enabled =
    "pinned memory is not drystone's: enable_pinned() first";

} // namespace

extern "C" const char *
dry_shim_enable_pinned(const char *options, uint64_t ahead_bytes, int device, int node,
                       const char *library)
{
    if (shim::active_pinned())
        return shim::fail("drystone's pinned memory is enabled already");
    shim::PinnedSettings settings;
    struct dry_error error = {};
    dry_pinned_options_init(&settings.options);
    settings.options.backend = DRY_PINNED_CUDA;
    settings.options.node = node;
    settings.ahead_bytes = ahead_bytes;
    settings.device = device;
    settings.library = library ? library : "";
    if (dry_pinned_options_parse(&settings.options, options, &error) != DRY_OK)
        return shim::fail(error.text);
    try {
        auto *former = at::getHostAllocator(at::DeviceType::CUDA);
        auto made = std::make_unique<shim::Pinned>(std::move(settings), former);
        if (device >= 0)
            made->cache();
        shim::set_active_pinned(made.get());
        at::setHostAllocator(at::DeviceType::CUDA, made.release(), 1);
    } catch (const c10::Error &why) {
        return shim::fail(why.what_without_backtrace());
    } catch (const std::exception &why) {
        return shim::fail(why.what());
    }
    return nullptr;
}

extern "C" const char *
dry_shim_pinned_clear(void)
{
    if (!shim::active_pinned())
        return shim::fail(not_enabled);
    try {
        shim::active_pinned()->empty_cache();
    } catch (const c10::Error &why) {
        return shim::fail(why.what_without_backtrace());
    }
    return nullptr;
}

extern "C" const char *
dry_shim_pinned_stats(void (*visit)(void *self, const char *key, int64_t value),
                      void *self)
{
    struct dry_pinned_stats stats = DRY_INIT(struct dry_pinned_stats);
    if (!shim::active_pinned())
        return shim::fail(not_enabled);
    if (struct dry_pinned *cache = shim::active_pinned()->made())
        dry_pinned_get_stats(cache, &stats);
    dry_pinned_stats_visit(&stats, visit, self);
    return nullptr;
}

extern "C" const char *
dry_shim_pinned_check(void)
{
    struct dry_error error = {};
    if (!shim::active_pinned())
        return shim::fail(not_enabled);
    struct dry_pinned *cache = shim::active_pinned()->made();
    if (cache && dry_pinned_check(cache, &error) != DRY_OK)
        return shim::fail(error.text);
    return nullptr;
}
