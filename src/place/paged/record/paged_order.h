/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_ORDER_H
#define DRYI_PLACE_PAGED_ORDER_H

/* The order of streams: up to which epoch one stream comes behind another. */

#include "place/paged/record/paged_state.h"

/* Return the epoch of `on` up to which `stream` comes behind; 0: none. */
uint64_t dryi_paged_known_epoch(const struct dryi_paged *p, uint32_t stream, uint32_t on);
/* Note that `stream` comes behind `epoch` of `on`. False: no memory. */
bool dryi_paged_learn(struct dryi_paged *p, uint32_t stream, uint32_t on, uint64_t epoch);
/* Forget which epochs of others a stream comes behind. */
void dryi_paged_orders_forget(struct dryi_paged *p, uint32_t stream);
/* Tell the forecast what the program did by itself: it will do so again. */
void dryi_paged_tell_forecast(struct dryi_paged *p, uint32_t from, uint32_t to,
                              uint64_t epoch);

#endif
