// SPDX-License-Identifier: Apache-2.0
#include "shim.h"

#include <cstring>
#include <string>

#include "allocator.h"
#include "failure.h"
#include "try_options.h"

extern "C" int
dry_shim_release(void)
{
    return DRY_TORCH;
}

extern "C" const char *
dry_shim_enable(const char *placement, const char *conf, const char *compat)
{
    auto *before = shim::torch_cuda::allocator.load();
    if (before && before->initialized())
        return shim::fail(
            "CUDA's memory was used already: enable the allocator before the first "
            "tensor on a GPU and before torch.cuda.init()");
    bool is_torch = std::strcmp(placement, "torch") == 0;
    auto chosen = is_torch ? DRY_PLACEMENT_TORCH : DRY_PLACEMENT_PAGED;
    struct dry_error error = {};
    if (shim_try_options(shim_options(chosen, conf, compat), &error) != DRY_OK)
        return shim::fail(std::string("conf: ") + error.text);
    auto *made = new shim::Allocator({chosen, conf, compat});
    shim::set_active(made);
    shim::torch_cuda::allocator.store(made);
    c10::SetAllocator(c10::DeviceType::CUDA, made, 1);
    return nullptr;
}

extern "C" const char *
dry_shim_set_conf(const char *conf)
{
    try {
        shim::active()->set_conf(conf);
    } catch (const c10::Error &why) {
        return shim::fail(why.what_without_backtrace());
    }
    return nullptr;
}

extern "C" void
dry_shim_counters(int device, uint64_t figures[3])
{
    struct dry_pool_counters counters = DRY_INIT(struct dry_pool_counters);
    if (auto *ready = shim::active()->made(static_cast<shim::DeviceIndex>(device)))
        ready->get_counters(&counters);
    figures[0] = counters.driver_calls;
    figures[1] = counters.pages_remapped;
    figures[2] = counters.driver_time_ns;
}

extern "C" const char *
dry_shim_placement(void)
{
    auto *ours = shim::active();
    if (!ours || shim::torch_cuda::allocator.load() != ours)
        return nullptr;
    return ours->settings().placement == DRY_PLACEMENT_TORCH ? "torch" : "paged";
}
