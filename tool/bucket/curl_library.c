/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea is in curl_library.h. libcurl has global state that is created once per
 * process. So this file has some, too: the table of functions, which never changes
 * afterwards.
 */
#include "bucket/curl_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/fail.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct curl_library opened; /* global_init is NULL if loading failed */
static bool is_there;

/* Load libcurl by Debian's names, for OpenSSL or GnuTLS. */
static void *
open_any(void)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return library;
}

#define FUNCTION(name)                                                                   \
    {                                                                                    \
        "curl_" #name, offsetof(struct curl_library, name)                               \
    }

static bool
find_all(void *library)
{
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
        FUNCTION(version_info),     FUNCTION(global_init),
        FUNCTION(easy_init),        FUNCTION(easy_setopt),
        FUNCTION(easy_getinfo),     FUNCTION(easy_pause),
        FUNCTION(easy_reset),       FUNCTION(easy_strerror),
        FUNCTION(easy_cleanup),     FUNCTION(multi_init),
        FUNCTION(multi_add_handle), FUNCTION(multi_remove_handle),
        FUNCTION(multi_perform),    FUNCTION(multi_poll),
        FUNCTION(multi_info_read),  FUNCTION(multi_strerror),
        FUNCTION(multi_cleanup),    FUNCTION(slist_append),
        FUNCTION(slist_free_all),
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *symbol = dlsym(library, functions[i].name);
        if (!symbol)
            return false;
        memcpy((char *)&opened + functions[i].offset, &symbol, sizeof symbol);
    }
    return true;
}

static void
open_once(void)
{
    void *library = open_any();
    is_there = library != NULL;
    if (!library || !find_all(library) || opened.global_init(CURL_GLOBAL_DEFAULT) != 0)
        opened.global_init = NULL;
    else
        opened.version = opened.version_info(CURLVERSION_NOW)->version_num;
}

enum dry_status
curl_library_open(const struct curl_library **library, struct dry_error *err)
{
    pthread_once(&once, open_once);
    *library = &opened;
    if (opened.global_init)
        return DRY_OK;
    return fail_at(err, DRY_ERR_UNSUPPORTED, DRY_NO_OFFSET,
                   is_there
                       ? "this system's libcurl is too old, or cannot be used"
                       : "s3:// needs libcurl.so.4, which this system lacks (Debian: "
                         "apt install libcurl4)");
}
