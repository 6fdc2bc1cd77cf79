/* SPDX-License-Identifier: Apache-2.0 */
/* See server.h. */
#include "view/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/command.h"
#include "base/report.h"
#include "view/answers.h"
#include "view/html.h"
#include "view/peers.h"

#define TOKEN_BYTES 16
#define ADDRESS_BYTES 80
#define RUNS_MAX 4    /* concurrent child processes; further requests get "try again" */
#define KEY_BYTES 512 /* room for the key of a slow question */
#define REPLY_MS (5 * 60000) /* for sending a complete reply */
#define TICK_MS 50           /* poll interval while child processes run */
#define SLEEP_MS 500

/* A request; the answer is set once its child process is over. */
struct request {
    bool is_over, is_fine;
    struct answer answer;
};

/* A suspended request whose answer a child process computes. */
struct waiting {
    struct MHD_Connection *connection;
    struct request *request; /* outlives the suspension of the connection */
    struct child child;
    struct server *server;
    char key[KEY_BYTES];
};

struct server {
    struct view *view;
    struct MHD_Daemon *daemon;
    char token[2 * TOKEN_BYTES + 1];
    char host[32], name[32]; /* accepted as Host: "127.0.0.1:40321", "localhost:40321" */
    char address[ADDRESS_BYTES];
    struct waiting waiting[RUNS_MAX];
    unsigned waiting_count;
    struct peers peers;
};

/* --- replies ------------------------------------------------------------------------------ */

static enum MHD_Result
send_reply(struct MHD_Connection *connection, unsigned status, const char *type,
           struct MHD_Response *response)
{
    static const char *const headers[][2] = {
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
    };
    if (!response)
        return MHD_NO;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    MHD_add_response_header(response, "Content-Type", type);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result
refuse(struct MHD_Connection *connection, unsigned status, const char *why)
{
    return send_reply(connection, status, "text/plain; charset=utf-8",
                      MHD_create_response_from_buffer(strlen(why), (void *)(uintptr_t)why,
                                                      MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result
send_html(struct MHD_Connection *connection)
{
    return send_reply(connection, MHD_HTTP_OK, "text/html; charset=utf-8",
                      MHD_create_response_from_buffer(view_html.length,
                                                      (void *)(uintptr_t)view_html.bytes,
                                                      MHD_RESPMEM_PERSISTENT));
}

/* Send an answer; the response takes ownership of its bytes. */
static enum MHD_Result
send_answer(struct MHD_Connection *connection, struct answer *answer)
{
    const char *type = answer->is_json ? "application/json" : "application/octet-stream";
    struct MHD_Response *response = MHD_create_response_from_buffer(
        answer->length, answer->bytes, MHD_RESPMEM_MUST_FREE);
    if (!response)
        free(answer->bytes);
    *answer = (struct answer){0};
    return send_reply(connection, MHD_HTTP_OK, type, response);
}

/* --- who may ask -------------------------------------------------------------------------- */

static bool
is_own_host(const struct server *s, const char *host)
{
    return host && (strcmp(host, s->host) == 0 || strcmp(host, s->name) == 0);
}

static bool
has_head(struct MHD_Connection *connection, const char *name, const char *value)
{
    const char *found = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return found && strcmp(found, value) == 0;
}

/* Tell whether a request is from this server's page, a user who typed the address, or the
   file that leads a browser to the page: that one may ask for the page alone, in a tab. */
static bool
is_welcome(const struct server *s, struct MHD_Connection *connection, bool is_for_page)
{
    static const char scheme[] = "http://";
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    const char *origin =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin");
    const char *site =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");
    if (!is_own_host(s, host))
        return false;
    if (origin && (strncmp(origin, scheme, strlen(scheme)) != 0 ||
                   !is_own_host(s, origin + strlen(scheme))))
        return false;
    if (is_for_page && !origin && site && strcmp(site, "cross-site") == 0)
        return has_head(connection, "Sec-Fetch-Mode", "navigate") &&
               has_head(connection, "Sec-Fetch-Dest", "document");
    return !site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

/* Return the URL after "/TOKEN/"; NULL: wrong token. Compares all bytes, so that the time
   of a refusal reveals nothing about the token. */
static const char *
skip_token(const struct server *s, const char *url)
{
    size_t length = strlen(s->token);
    if (strlen(url) < length + 2 || url[0] != '/' || url[length + 1] != '/')
        return NULL;
    unsigned char differs = 0;
    for (size_t i = 0; i < length; i++)
        differs |= (unsigned char)(url[i + 1] ^ s->token[i]);
    return differs ? NULL : url + length + 2;
}

/* --- requests ----------------------------------------------------------------------------- */

/* Write the answer to standard output, in the child. */
static int
print_answer(void *self)
{
    const struct waiting *w = self;
    struct answer answer;
    if (view_answer(w->server->view, w->key, &answer) != VIEW_FOUND)
        return EXIT_INPUT;
    bool is_fine = fwrite(answer.bytes, 1, answer.length, stdout) == answer.length;
    free(answer.bytes);
    return is_fine ? EXIT_FINE : EXIT_MACHINE;
}

static enum MHD_Result
begin_slow(struct server *s, struct MHD_Connection *connection, struct request *request,
           const char *key)
{
    struct waiting *w = &s->waiting[s->waiting_count];
    if (s->waiting_count == RUNS_MAX)
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "busy: ask again\n");
    *w = (struct waiting){.connection = connection, .request = request, .server = s};
    struct child_work work = {.print = print_answer, .self = w};
    if (strlen(key) >= sizeof w->key)
        return refuse(connection, MHD_HTTP_NOT_FOUND, "there is no such answer\n");
    snprintf(w->key, sizeof w->key, "%s", key);
    if (!child_begin(&w->child, &work))
        return refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "it cannot run\n");
    s->waiting_count++;
    peers_allow(connection, PEER_WAITS);
    MHD_suspend_connection(connection);
    return MHD_YES;
}

static enum MHD_Result
answer_key(struct server *s, struct MHD_Connection *connection, struct request *request,
           const char *key)
{
    if (request->is_over)
        return request->is_fine
                   ? send_answer(connection, &request->answer)
                   : refuse(connection, MHD_HTTP_NOT_FOUND, "it cannot be told\n");
    if (view_is_slow(s->view, key))
        return begin_slow(s, connection, request, key);
    switch (view_answer(s->view, key, &request->answer)) {
    case VIEW_FOUND:
        return send_answer(connection, &request->answer);
    case VIEW_NO_SUCH:
        return refuse(connection, MHD_HTTP_NOT_FOUND, "there is no such answer\n");
    case VIEW_FAILED:
        break;
    }
    return refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "no memory\n");
}

/* NOLINTBEGIN(readability-function-size,readability-non-const-parameter): the library's form */
static enum MHD_Result
answer_request(void *self, struct MHD_Connection *connection, const char *url,
               const char *method, const char *version, const char *upload,
               size_t *upload_bytes, void **request_at)
{
    struct server *s = self;
    struct request *request = *request_at;
    (void)version;
    (void)upload;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                      "nothing can be written\n");
    if (!request) { /* libmicrohttpd calls again after the head */
        *request_at = calloc(1, sizeof *request);
        return *request_at ? MHD_YES : MHD_NO;
    }
    if (*upload_bytes > 0)
        return MHD_NO;
    peers_allow(connection, REPLY_MS);
    const char *rest = skip_token(s, url);
    if (!is_welcome(s, connection, rest && *rest == '\0'))
        return refuse(connection, MHD_HTTP_FORBIDDEN, "another host or page asks\n");
    if (!rest)
        return refuse(connection, MHD_HTTP_NOT_FOUND, "not found\n");
    if (*rest == '\0')
        return send_html(connection);
    if (strncmp(rest, "a/", 2) == 0)
        return answer_key(s, connection, request, rest + 2);
    return refuse(connection, MHD_HTTP_NOT_FOUND, "not found\n");
}
/* NOLINTEND(readability-function-size,readability-non-const-parameter) */

static void
end_request(void *self, struct MHD_Connection *connection, void **request_at,
            enum MHD_RequestTerminationCode code)
{
    struct request *request = *request_at;
    (void)self;
    (void)code;
    peers_allow(connection, PEER_HEAD_MS); /* deadline for the next request */
    if (request)
        free(request->answer.bytes);
    free(request);
    *request_at = NULL;
}

/* --- the loop ----------------------------------------------------------------------------- */

static void
wake(struct waiting *w)
{
    w->request->is_over = true;
    w->request->is_fine = answer_take(&w->child, &w->request->answer);
    peers_allow(w->connection, REPLY_MS);
    MHD_resume_connection(w->connection);
}

static void
wake_waiting(struct server *s)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < s->waiting_count; i++) {
        if (child_is_over(&s->waiting[i].child, false))
            wake(&s->waiting[i]);
        else
            s->waiting[kept++] = s->waiting[i];
    }
    s->waiting_count = kept;
}

void
server_run(struct server *s, const volatile int *is_over)
{
    while (!*is_over) {
        wake_waiting(s);
        peers_shut_late(&s->peers);
        MHD_run_wait(s->daemon, s->waiting_count ? TICK_MS : SLEEP_MS);
    }
}

/* --- the beginning and the end ------------------------------------------------------------ */

static bool
make_token(struct server *s)
{
    unsigned char bytes[TOKEN_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(s->token + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

static struct MHD_Daemon *
listen_on(struct server *s, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return MHD_start_daemon(
        MHD_ALLOW_SUSPEND_RESUME | MHD_USE_AUTO, port, NULL, NULL, answer_request, s,
        MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address, PEERS_OPTIONS(&s->peers),
        MHD_OPTION_NOTIFY_COMPLETED, end_request, NULL, MHD_OPTION_END);
}

static void
write_names(struct server *s)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    unsigned port = info ? info->port : 0;
    snprintf(s->host, sizeof s->host, "127.0.0.1:%u", port);
    snprintf(s->name, sizeof s->name, "localhost:%u", port);
    snprintf(s->address, sizeof s->address, "http://%s/%s/", s->host, s->token);
}

int
server_start(struct view *view, uint16_t port, struct server **server)
{
    struct server *s = calloc(1, sizeof *s);
    *server = s;
    if (!s || !make_token(s))
        return report_memory("view", NULL);
    s->view = view;
    errno = 0;
    s->daemon = listen_on(s, port);
    if (!s->daemon)
        return report_failure("view", NULL, EXIT_MACHINE,
                              "cannot listen on 127.0.0.1:%u: %s", port,
                              errno ? strerror(errno) : "no memory");
    write_names(s);
    return EXIT_FINE;
}

const char *
server_address(const struct server *s)
{
    return s->address;
}

void
server_stop(struct server *s)
{
    if (!s)
        return;
    for (unsigned i = 0; i < s->waiting_count; i++) {
        child_stop(&s->waiting[i].child);
        wake(&s->waiting[i]);
    }
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    free(s);
}
