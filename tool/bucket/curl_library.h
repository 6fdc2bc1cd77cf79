/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_CURL_LIBRARY_H
#define TOOL_CURL_LIBRARY_H

/*
 * libcurl, loaded when the first object is opened. So the command starts without it, and
 * a package with the command need not include libcurl and its dependencies.
 *
 * Threads    Any. libcurl is never unloaded.
 */

#include <curl/curl.h>

#include <drystone/status.h>

#define CURL_SIGNS_SINCE 0x075800 /* 7.88.0: the oldest release that was tested */
/* 8.14.0 to 8.18: an escaped "+" in a query is signed as a blank. */
#define CURL_PLUS_BROKEN_SINCE 0x080e00
#define CURL_PLUS_MENDED_SINCE 0x081300

struct curl_library {
    unsigned version; /* 0xXXYYZZ, as libcurl encodes it */
    __typeof__(&curl_version_info) version_info;
    __typeof__(&curl_global_init) global_init;
    __typeof__(&curl_easy_init) easy_init;
    __typeof__(&curl_easy_setopt) easy_setopt;
    __typeof__(&curl_easy_getinfo) easy_getinfo;
    __typeof__(&curl_easy_pause) easy_pause;
    __typeof__(&curl_easy_reset) easy_reset;
    __typeof__(&curl_easy_strerror) easy_strerror;
    __typeof__(&curl_easy_cleanup) easy_cleanup;
    __typeof__(&curl_multi_init) multi_init;
    __typeof__(&curl_multi_add_handle) multi_add_handle;
    __typeof__(&curl_multi_remove_handle) multi_remove_handle;
    __typeof__(&curl_multi_perform) multi_perform;
    __typeof__(&curl_multi_poll) multi_poll;
    __typeof__(&curl_multi_info_read) multi_info_read;
    __typeof__(&curl_multi_strerror) multi_strerror;
    __typeof__(&curl_multi_cleanup) multi_cleanup;
    __typeof__(&curl_slist_append) slist_append;
    __typeof__(&curl_slist_free_all) slist_free_all;
};

/* Load libcurl. UNSUPPORTED if it is missing or too old; the text says what to do. */
DRY_CHECK_RESULT enum dry_status curl_library_open(const struct curl_library **library,
                                                   struct dry_error *err);

#endif
