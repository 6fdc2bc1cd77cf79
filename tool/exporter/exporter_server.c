/* SPDX-License-Identifier: Apache-2.0 */

/* See exporter_server.h. All clients share the reply of one sample, so many slow readers
   cost little memory. */
#include "exporter/exporter_server.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/exporter_accept.h"
#include "view/peers.h"

#define REPLY_MS (10 * 1000)
#define SLEEP_MS 500
#define FORMATS 2

struct exporter_server {
    struct exporter *exporter;
    struct exporter_socket socket;
    struct MHD_Daemon *daemon;
    struct MHD_Response *replies[FORMATS]; /* the last sample's; NULL: not made so far */
    struct peers peers;
};

static const char plain_type[] = "text/plain; charset=utf-8";
static const char page_text[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Drystone "
    "exporter</title></head>\n<body><h1>Drystone exporter</h1><p>The memory of running "
    "programs, for Prometheus: <a href=\"/metrics\">/metrics</a></p></body></html>\n";

/* --- replies ------------------------------------------------------------------------------ */

static void
add_headers(struct MHD_Response *response, const char *type)
{
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
}

/* Send a constant text. */
static enum MHD_Result
send_text(struct MHD_Connection *connection, unsigned status, const char *type,
          const char *text)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    add_headers(response, type);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* Drop the replies; libmicrohttpd keeps one alive while a connection sends it. */
static void
drop_replies(struct exporter_server *s)
{
    for (size_t i = 0; i < FORMATS; i++) {
        if (s->replies[i])
            MHD_destroy_response(s->replies[i]);
        s->replies[i] = NULL;
    }
}

static void
refresh(struct exporter_server *s, double age_s)
{
    if (exporter_sample(s->exporter, age_s))
        drop_replies(s);
}

static struct MHD_Response *
make_reply(const struct exporter *e, enum exporter_format format)
{
    static const char *const types[] = {
        [EXPORTER_PROMETHEUS] = "text/plain; version=0.0.4; charset=utf-8",
        [EXPORTER_OPENMETRICS] =
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
    };
    size_t length;
    char *text = exporter_write(e->watch, &e->bounds, &e->counts, format, &length);
    struct MHD_Response *reply =
        text ? MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE)
             : NULL;
    if (!reply) {
        free(text);
        return NULL;
    }
    add_headers(reply, types[format]);
    MHD_add_response_header(reply, "Vary", "Accept");
    return reply;
}

static enum MHD_Result
send_metrics(struct exporter_server *s, struct MHD_Connection *connection)
{
    enum exporter_format format = exporter_accept(
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept"));
    refresh(s, EXPORTER_FRESH_S);
    if (!s->replies[format])
        s->replies[format] = make_reply(s->exporter, format);
    if (!s->replies[format])
        return send_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, plain_type,
                         "no memory\n");
    return MHD_queue_response(connection, MHD_HTTP_OK, s->replies[format]);
}

/* --- requests ----------------------------------------------------------------------------- */

static enum MHD_Result
answer(struct exporter_server *s, struct MHD_Connection *connection, const char *url)
{
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    peers_allow(connection, REPLY_MS);
    if (s->socket.is_loopback && !exporter_is_near_host(host))
        return send_text(connection, MHD_HTTP_FORBIDDEN, plain_type,
                         "another host asks\n");
    if (strcmp(url, "/metrics") == 0)
        return send_metrics(s, connection);
    if (strcmp(url, "/") == 0)
        return send_text(connection, MHD_HTTP_OK, "text/html; charset=utf-8", page_text);
    return send_text(connection, MHD_HTTP_NOT_FOUND, plain_type, "not found\n");
}

/* NOLINTBEGIN(readability-function-size,readability-non-const-parameter): MHD's form */
static enum MHD_Result
answer_request(void *self, struct MHD_Connection *connection, const char *url,
               const char *method, const char *version, const char *upload,
               size_t *upload_bytes, void **request_at)
{
    struct exporter_server *s = self;
    (void)version;
    (void)upload;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, plain_type,
                         "nothing can be written\n");
    if (!*request_at) { /* libmicrohttpd calls again after the head */
        *request_at = s;
        return MHD_YES;
    }
    return *upload_bytes > 0 ? MHD_NO : answer(s, connection, url);
}
/* NOLINTEND(readability-function-size,readability-non-const-parameter) */

static void
end_request(void *self, struct MHD_Connection *connection, void **request_at,
            enum MHD_RequestTerminationCode code)
{
    (void)self;
    (void)code;
    peers_allow(connection, PEER_HEAD_MS); /* deadline for the next request */
    *request_at = NULL;
}

/* --- the beginning, the loop and the end -------------------------------------------------- */

struct exporter_server *
exporter_server_start(struct exporter *exporter, struct exporter_socket *socket)
{
    struct exporter_server *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->exporter = exporter;
    s->socket = *socket;
    s->daemon = MHD_start_daemon(MHD_USE_AUTO, 0, NULL, NULL, answer_request, s,
                                 MHD_OPTION_LISTEN_SOCKET, s->socket.file,
                                 PEERS_OPTIONS(&s->peers), MHD_OPTION_NOTIFY_COMPLETED,
                                 end_request, NULL, MHD_OPTION_END);
    if (!s->daemon) {
        free(s);
        return NULL;
    }
    socket->file = -1; /* libmicrohttpd closes it */
    return s;
}

void
exporter_server_run(struct exporter_server *server, const volatile int *is_over)
{
    while (!*is_over) {
        refresh(server, EXPORTER_IDLE_S);
        peers_shut_late(&server->peers);
        MHD_run_wait(server->daemon, SLEEP_MS);
    }
}

void
exporter_server_stop(struct exporter_server *server)
{
    if (!server)
        return;
    drop_replies(server);
    MHD_stop_daemon(server->daemon);
    free(server);
}
