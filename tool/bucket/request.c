/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea is in request.h. libcurl writes into a buffer. When the buffer is full, the
 * transfer pauses until all of it is read.
 */
#include "bucket/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <drystone/drystone.h>

#include "base/fail.h"
#include "base/now.h"
#include "bucket/bucket_page.h"
#include "bucket/curl_library.h"

#define BUFFER_BYTES ((size_t)1 << 20)
#define RECEIVE_BYTES (256L << 10)
#define CONNECT_SECONDS 10L
#define POLL_MS 1000
#define STALL_NS (20 * UINT64_C(1000000000))
#define STALL_BYTES (20u << 10) /* fewer within STALL_NS are a stall */
#define FIRST_WAIT_MS 200u
#define LAST_WAIT_MS 5000u
#define ASKED_WAIT_S_MAX 30
#define EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct request {
    const struct bucket *bucket;
    const struct curl_library *curl;
    CURL *easy;
    CURLM *multi;
    struct curl_slist *headers;
    char message[CURL_ERROR_SIZE];
    unsigned char *bytes;
    size_t at, end;
    bool is_added, is_paused, has_head, is_over;
    CURLcode result; /* valid once is_over */
    uint64_t waited_ns;
    size_t received; /* bytes received during waited_ns */
    struct request_answer answer;
    uint64_t range_from, range_bytes; /* range_bytes is 0 without a Content-Range */
    char region[64];                  /* the bucket's region according to the store */
    bool may_pass;                    /* the failure may be temporary */
    unsigned attempts;
};

/* --- what libcurl calls ------------------------------------------------------------------- */

static size_t
take_bytes(char *bytes, size_t size, size_t count, void *self)
{
    struct request *r = self;
    (void)size; /* libcurl always passes 1 */
    r->is_paused = count > BUFFER_BYTES - r->end;
    if (r->is_paused)
        return CURL_WRITEFUNC_PAUSE;
    memcpy(r->bytes + r->end, bytes, count);
    r->end += count;
    r->received += count;
    return count;
}

/* Return true if a value is printable ASCII, so that it can be sent back in a header. */
static bool
is_plain(const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if ((unsigned char)bytes[i] < 0x20 || (unsigned char)bytes[i] >= 0x7f)
            return false;
    }
    return true;
}

/*
 * Copy the value of a header if the line has this name. A value that is too long or not
 * printable is stored as "".
 */
static bool
take_header(const char *line, size_t length, const char *name, char *value,
            size_t capacity)
{
    size_t at = strlen(name);
    if (length <= at || strncasecmp(line, name, at) != 0 || line[at] != ':')
        return false;
    at++;
    while (at < length && (line[at] == ' ' || line[at] == '\t'))
        at++;
    while (length > at && strchr(" \t\r\n", line[length - 1]) && line[length - 1])
        length--;
    size_t count = length - at < capacity ? length - at : 0;
    count = is_plain(line + at, count) ? count : 0;
    memcpy(value, line + at, count);
    value[count] = '\0';
    return true;
}

/* Parse "bytes 5-9/10". The range must reach the end of the object, as requested. */
static void
take_range(struct request *r, const char *value)
{
    static const char unit[] = "bytes ";
    char *end = NULL;
    if (strncmp(value, unit, sizeof unit - 1) != 0)
        return;
    unsigned long long from = strtoull(value + sizeof unit - 1, &end, 10);
    unsigned long long to = *end == '-' ? strtoull(end + 1, &end, 10) : 0;
    unsigned long long whole = *end == '/' ? strtoull(end + 1, &end, 10) : 0;
    if (*end || from > to || to >= INT64_MAX || whole != to + 1)
        return;
    r->range_from = from;
    r->range_bytes = whole;
}

static size_t
take_head(char *line, size_t size, size_t count, void *self)
{
    struct request *r = self;
    char range[128];
    (void)size;
    r->received += count;
    if (r->has_head) /* after the body: a trailer */
        return count;
    if (count >= 5 &&
        memcmp(line, "HTTP/", 5) == 0) { /* a new answer, as after "100 Continue" */
        r->answer = (struct request_answer){0};
        r->range_bytes = 0;
        r->region[0] = '\0';
    }
    take_header(line, count, "ETag", r->answer.etag, sizeof r->answer.etag);
    take_header(line, count, "x-amz-bucket-region", r->region, sizeof r->region);
    if (take_header(line, count, "Content-Range", range, sizeof range))
        take_range(r, range);
    long status = 0;
    r->curl->easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
    r->has_head = (line[0] == '\r' || line[0] == '\n') && status >= 200;
    return count;
}

/* --- making a request --------------------------------------------------------------------- */

static bool
add_header(struct request *r, const char *name, const char *value)
{
    char *line = NULL;
    if (asprintf(&line, "%s: %s", name, value) < 0)
        return false;
    struct curl_slist *more = r->curl->slist_append(r->headers, line);
    free(line);
    if (more)
        r->headers = more;
    return more != NULL;
}

#define SET(option, value)                                                               \
    (is_set &= r->curl->easy_setopt(r->easy, (option), (value)) == CURLE_OK)

static bool
set_signature(struct request *r)
{
    const struct bucket *b = r->bucket;
    char who[96];
    bool is_set = true;
    if (!*b->key_id)
        return true;
    snprintf(who, sizeof who, "aws:amz:%s:s3", b->region);
    SET(CURLOPT_AWS_SIGV4, who);
    SET(CURLOPT_USERNAME, b->key_id);
    SET(CURLOPT_PASSWORD, b->secret);
    return is_set && add_header(r, "x-amz-content-sha256", EMPTY_HASH) &&
           (!*b->token || add_header(r, "x-amz-security-token", b->token));
}

static bool
set_target(struct request *r, const struct request_options *options)
{
    char range[32];
    bool is_set = true;
    SET(CURLOPT_URL, options->url);
    if (options->from > 0) {
        snprintf(range, sizeof range, "%llu-", (unsigned long long)options->from);
        SET(CURLOPT_RANGE, range);
    }
    if (*options->etag)
        is_set &= add_header(r, "If-Match", options->etag);
    SET(CURLOPT_HTTPHEADER, r->headers);
    return is_set;
}

/* Return true if a component of the path is "." or "..": libcurl would resolve these. */
static bool
has_dots(const char *url)
{
    size_t length = strcspn(url, "?");
    for (size_t i = 0; i < length; i++) {
        size_t dots = url[i] == '/' ? strspn(url + i + 1, ".") : 0;
        if ((dots == 1 || dots == 2) &&
            (i + 1 + dots == length || url[i + 1 + dots] == '/'))
            return true;
    }
    return false;
}

/*
 * Set all options. Newer releases of libcurl sign a wrong path with PATH_AS_IS, so it is
 * set only for paths that need it. HTTP/2 is avoided because its window would hold 10
 * MiB.
 */
static bool
set_all(struct request *r, const struct request_options *options)
{
    bool is_set = true;
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_ERRORBUFFER, r->message);
    SET(CURLOPT_WRITEFUNCTION, take_bytes);
    SET(CURLOPT_WRITEDATA, r);
    SET(CURLOPT_HEADERFUNCTION, take_head);
    SET(CURLOPT_HEADERDATA, r);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    /* Unchecked: 7.88 refuses after a host was not found, and keeps the old size. */
    r->curl->easy_setopt(r->easy, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    SET(CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    SET(CURLOPT_PATH_AS_IS, has_dots(options->url) ? 1L : 0L);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_USERAGENT, "drystone/" DRY_VERSION);
    return is_set && set_signature(r) && set_target(r, options);
}

enum dry_status
request_create(const struct bucket *bucket, struct request **request,
               struct dry_error *err)
{
    struct request *r = calloc(1, sizeof *r);
    if (!r)
        return fail_memory(err, "no memory to ask a store");
    r->bucket = bucket;
    enum dry_status status = curl_library_open(&r->curl, err);
    if (status == DRY_OK && *bucket->key_id && r->curl->version < CURL_SIGNS_SINCE)
        status = fail_at(err, DRY_ERR_UNSUPPORTED, DRY_NO_OFFSET,
                         "this system's libcurl cannot sign as a store wants; 7.88 is "
                         "the first that can");
    if (status == DRY_OK) {
        r->bytes = malloc(BUFFER_BYTES);
        r->easy = r->curl->easy_init();
        r->multi = r->curl->multi_init();
        status = r->bytes && r->easy && r->multi
                     ? DRY_OK
                     : fail_memory(err, "no memory to ask a store");
    }
    if (status != DRY_OK) {
        request_destroy(r);
        return status;
    }
    *request = r;
    return DRY_OK;
}

/* Abort the current transfer. */
static void
stop(struct request *r)
{
    if (r->is_added)
        r->curl->multi_remove_handle(r->multi, r->easy);
    r->is_added = false;
    if (r->easy)
        r->curl->easy_reset(r->easy);
    if (r->headers)
        r->curl->slist_free_all(r->headers);
    r->headers = NULL;
}

void
request_destroy(struct request *r)
{
    if (!r)
        return;
    stop(r);
    if (r->easy)
        r->curl->easy_cleanup(r->easy);
    if (r->multi)
        r->curl->multi_cleanup(r->multi);
    free(r->bytes);
    free(r);
}

/* --- transfers ---------------------------------------------------------------------------- */

/* Return true for failures that no retry can resolve. */
static bool
is_lasting(CURLcode code)
{
    static const CURLcode codes[] = {
        CURLE_OUT_OF_MEMORY,         CURLE_URL_MALFORMAT,
        CURLE_UNSUPPORTED_PROTOCOL,  CURLE_FAILED_INIT,
        CURLE_NOT_BUILT_IN,          CURLE_WRITE_ERROR,
        CURLE_UNKNOWN_OPTION,        CURLE_PEER_FAILED_VERIFICATION,
        CURLE_SSL_CACERT_BADFILE,    CURLE_WEIRD_SERVER_REPLY,
        CURLE_BAD_FUNCTION_ARGUMENT,
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i] == code)
            return true;
    }
    return false;
}

static enum dry_status
fail_transfer(struct request *r, struct dry_error *err)
{
    if (r->result == CURLE_OUT_OF_MEMORY)
        return fail_memory(err, "no memory to ask a store");
    r->may_pass = !is_lasting(r->result);
    return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "%s",
                   *r->message ? r->message : r->curl->easy_strerror(r->result));
}

static enum dry_status
fail_multi(const struct request *r, CURLMcode code, struct dry_error *err)
{
    return code == CURLM_OUT_OF_MEMORY
               ? fail_memory(err, "no memory to ask a store")
               : fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "libcurl: %s",
                         r->curl->multi_strerror(code));
}

/* Wait for bytes. Fail if fewer than STALL_BYTES arrived within STALL_NS of waiting. */
static enum dry_status
wait_some(struct request *r, struct dry_error *err)
{
    uint64_t began_ns = now_ns(CLOCK_MONOTONIC);
    CURLMcode code = r->curl->multi_poll(r->multi, NULL, 0, POLL_MS, NULL);
    if (code != CURLM_OK)
        return fail_multi(r, code, err);
    r->waited_ns += now_ns(CLOCK_MONOTONIC) - began_ns;
    if (r->waited_ns < STALL_NS)
        return DRY_OK;
    bool is_stalled = r->received < STALL_BYTES;
    r->waited_ns = 0;
    r->received = 0;
    if (!is_stalled)
        return DRY_OK;
    r->may_pass = true;
    return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET,
                   "the store gave less than 1 kB/s over 20 s");
}

/* Receive bytes. Requires that the buffer is empty or the head is missing. */
static enum dry_status
pump(struct request *r, struct dry_error *err)
{
    int running = 0, left = 0;
    CURLMcode code = r->curl->multi_perform(r->multi, &running);
    if (code != CURLM_OK)
        return fail_multi(r, code, err);
    const CURLMsg *message = r->curl->multi_info_read(r->multi, &left);
    if (message && message->msg == CURLMSG_DONE) {
        r->is_over = true;
        r->result = message->data.result;
    }
    if (r->is_over || r->end > r->at || r->is_paused)
        return DRY_OK;
    return wait_some(r, err);
}

static enum dry_status
unpause(struct request *r, struct dry_error *err)
{
    r->is_paused = false;
    CURLcode code = r->curl->easy_pause(r->easy, CURLPAUSE_CONT);
    if (code == CURLE_OK)
        return DRY_OK;
    r->result = code;
    return fail_transfer(r, err);
}

enum dry_status
request_read(struct request *r, void *buffer, size_t capacity, size_t *got,
             struct dry_error *err)
{
    enum dry_status status = DRY_OK;
    *got = 0;
    if (r->at == r->end) {
        r->at = r->end = 0;
        if (r->is_paused)
            status = unpause(r, err);
    }
    while (status == DRY_OK && r->end == 0 && !r->is_over)
        status = pump(r, err);
    if (status != DRY_OK)
        return status;
    if (r->at == r->end && r->result != CURLE_OK)
        return fail_transfer(r, err);
    *got = r->end - r->at < capacity ? r->end - r->at : capacity;
    memcpy(buffer, r->bytes + r->at, *got);
    r->at += *got;
    return DRY_OK;
}

/* --- answers ------------------------------------------------------------------------------ */

/* Read the error code from the XML of a failed answer; `code` is "" if there is none. */
static void
read_code(struct request *r, char *code, size_t capacity)
{
    unsigned char bytes[4096];
    size_t got = 1, all = 0;
    struct dry_error ignored;
    const struct bucket_page *page;
    code[0] = '\0';
    struct bucket_reader *reader = bucket_reader_create(NULL);
    enum dry_status status = reader ? DRY_OK : DRY_ERR_MEMORY;
    while (status == DRY_OK && got > 0 && all < BUFFER_BYTES) {
        status = request_read(r, bytes, sizeof bytes, &got, &ignored);
        if (status == DRY_OK)
            status = bucket_reader_feed(reader, bytes, got, &ignored);
        all += got;
    }
    if (status == DRY_OK && bucket_reader_end(reader, &page, &ignored) == DRY_OK)
        snprintf(code, capacity, "%s", page->code);
    bucket_reader_destroy(reader);
}

/* Return advice for the user; "" if there is none. */
static const char *
advise(const struct request *r, long status, const char *code)
{
    if (status == 412)
        return "; it was changed while it was read";
    if ((status == 401 || status == 403) && !*r->bucket->key_id)
        return "; AWS_ACCESS_KEY_ID is not set, nor is there a profile with a key, so "
               "nobody signed";
    if (strcmp(code, "NoSuchBucket") == 0)
        return "; there is no such bucket";
    return "";
}

static enum dry_status
fail_answer(struct request *r, long status, struct dry_error *err)
{
    char code[128];
    char region[sizeof r->region];
    memcpy(region, r->region, sizeof region);
    read_code(r, code, sizeof code);
    r->may_pass = status == 429 || status == 408 ||
                  (status >= 500 && status != 501 && status != 505);
    if (*region && strcmp(region, r->bucket->region) != 0)
        return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET,
                       "the store answered %ld: the bucket is in another region; set "
                       "AWS_REGION=%s",
                       status, region);
    if (status >= 300 && status < 400 && status != 304)
        return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET,
                       "the store answered %ld %s: it is elsewhere; AWS_REGION or "
                       "AWS_ENDPOINT_URL are another store's",
                       status, code);
    return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "the store answered %ld%s%s%s",
                   status, *code ? " " : "", code, advise(r, status, code));
}

/* Compare the answer with the request: it must be the range and version asked for. */
static enum dry_status
check_answer(struct request *r, const struct request_options *options,
             struct dry_error *err)
{
    long status = 0;
    curl_off_t length = -1;
    r->curl->easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
    r->curl->easy_getinfo(r->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (status != 200 && status != 206)
        return fail_answer(r, status, err);
    bool is_part = status == 206;
    if (is_part != (options->from > 0) ||
        (is_part && (r->range_bytes == 0 || r->range_from != options->from)))
        return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET,
                       "the store gave other bytes than it was asked for");
    if (*options->etag && strcmp(options->etag, r->answer.etag) != 0)
        return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET,
                       "it was changed while it was read");
    r->answer.has_length = is_part || length >= 0;
    r->answer.bytes = is_part ? r->range_bytes : length < 0 ? 0 : (uint64_t)length;
    return DRY_OK;
}

enum dry_status
request_send(struct request *r, const struct request_options *options,
             struct dry_error *err)
{
    stop(r);
    r->at = r->end = r->received = 0;
    r->waited_ns = 0;
    r->is_paused = r->has_head = r->is_over = r->may_pass = false;
    r->result = CURLE_OK;
    r->message[0] = '\0';
    r->attempts++;
    if (!set_all(r, options))
        return fail_memory(err, "no memory to ask a store");
    CURLMcode code = r->curl->multi_add_handle(r->multi, r->easy);
    if (code != CURLM_OK)
        return fail_multi(r, code, err);
    r->is_added = true;
    enum dry_status status = DRY_OK;
    while (status == DRY_OK && !r->has_head && !r->is_over)
        status = pump(r, err);
    if (status == DRY_OK && !r->has_head)
        status = fail_transfer(r, err);
    return status == DRY_OK ? check_answer(r, options, err) : status;
}

const struct request_answer *
request_get_answer(const struct request *r)
{
    return &r->answer;
}

/* --- retries ------------------------------------------------------------------------------ */

/* Double the wait each time. It varies by process, so clients do not retry together. */
static uint64_t
choose_wait_ms(const struct request *r)
{
    uint64_t wait = FIRST_WAIT_MS;
    for (unsigned i = 1; i < r->attempts && wait < LAST_WAIT_MS; i++)
        wait *= 2;
    wait = wait < LAST_WAIT_MS ? wait : LAST_WAIT_MS;
    wait = wait / 2 + now_ns(CLOCK_MONOTONIC) / 1000 % (wait / 2 + 1);
    curl_off_t asked_s = 0;
    r->curl->easy_getinfo(r->easy, CURLINFO_RETRY_AFTER, &asked_s);
    asked_s = asked_s < ASKED_WAIT_S_MAX ? asked_s : ASKED_WAIT_S_MAX;
    return asked_s > 0 ? wait + (uint64_t)asked_s * 1000 : wait;
}

bool
request_may_retry(struct request *r)
{
    if (!r->may_pass || r->attempts >= r->bucket->attempt_max)
        return false;
    uint64_t wait = choose_wait_ms(r);
    struct timespec pause = {.tv_sec = (time_t)(wait / 1000),
                             .tv_nsec = (long)(wait % 1000) * 1000000};
    while (nanosleep(&pause, &pause) != 0 && errno == EINTR)
        ;
    return true;
}

void
request_forgive(struct request *r)
{
    r->attempts = 0;
}

bool
request_signs_plus(const struct request *r)
{
    return !*r->bucket->key_id || r->curl->version < CURL_PLUS_BROKEN_SINCE ||
           r->curl->version >= CURL_PLUS_MENDED_SINCE;
}

unsigned
request_count_attempts(const struct request *r)
{
    return r->attempts;
}
