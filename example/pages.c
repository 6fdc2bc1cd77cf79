/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pages: take 64 MiB of the largest pages to be had, and print where they lie.
 *
 *     cc pages.c $(pkg-config --cflags --libs drystone)
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <drystone/pages.h>

int
main(void)
{
    struct dry_pages_options options;
    struct dry_pages *pages = NULL;
    struct dry_pages_report report;
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    struct dry_pages_proof proof = DRY_INIT(struct dry_pages_proof);
    struct dry_error err;
    dry_pages_options_init(&options);
    options.bytes = UINT64_C(64) << 20;
    options.kind = DRY_PAGES_POOL; /* PREFER, the default: or the next smaller pages */
    if (dry_pages_create(&options, &pages, &report, &err) != DRY_OK) {
        fprintf(stderr, "pages: %s\n", err.text);
        return 1;
    }
    for (size_t i = 0; i + 1 < report.count; i++)
        printf("not %s pages of %" PRIu64 " bytes: %s\n",
               dry_pages_kind_name(report.attempts[i].kind),
               report.attempts[i].page_bytes,
               dry_pages_reason_text(report.attempts[i].reason));
    dry_pages_get_info(pages, &info);
    memset(info.address, 1, info.bytes);
    if (dry_pages_prove(pages, &proof, &err) != DRY_OK)
        proof = DRY_INIT(struct dry_pages_proof);
    else
        printf("%" PRIu64 " bytes of %s pages, %" PRIu64 " of them huge\n", info.bytes,
               dry_pages_kind_name(info.kind), proof.huge_bytes);
    for (size_t i = 0; i < proof.share_count; i++)
        printf("node %" PRId32 ": %" PRIu64 " bytes\n", proof.shares[i].node,
               proof.shares[i].bytes);
    dry_pages_destroy(pages);
    return 0;
}
