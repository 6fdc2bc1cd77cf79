/* SPDX-License-Identifier: Apache-2.0 */
/* See exporter_socket.h. */
#include "exporter/exporter_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/report.h"

#define BACKLOG 64

/* --- addresses ---------------------------------------------------------------------------- */

static bool
read_port(const char *text, uint16_t *port)
{
    char *end;
    if (*text < '0' || *text > '9' || strlen(text) > 5)
        return false;
    unsigned long number = strtoul(text, &end, 10);
    if (*end || number > UINT16_MAX)
        return false;
    *port = (uint16_t)number;
    return true;
}

static bool
read_four(const char *host, uint16_t port, struct exporter_address *address)
{
    struct sockaddr_in *to = &address->to.four;
    if (inet_pton(AF_INET, host, &to->sin_addr) != 1)
        return false;
    to->sin_family = AF_INET;
    to->sin_port = htons(port);
    address->length = sizeof *to;
    address->is_loopback = ntohl(to->sin_addr.s_addr) >> 24 == 127;
    return true;
}

static bool
read_six(const char *host, uint16_t port, struct exporter_address *address)
{
    struct sockaddr_in6 *to = &address->to.six;
    if (inet_pton(AF_INET6, host, &to->sin6_addr) != 1)
        return false;
    to->sin6_family = AF_INET6;
    to->sin6_port = htons(port);
    address->length = sizeof *to;
    address->is_loopback = IN6_IS_ADDR_LOOPBACK(&to->sin6_addr);
    return true;
}

/* Split "HOST:PORT" or "[HOST]:PORT" at the last colon. False: neither form. */
static bool
split(const char *text, char *host, size_t capacity, bool *has_brackets,
      const char **port)
{
    const char *colon = strrchr(text, ':');
    *has_brackets = text[0] == '[';
    if (!colon || (*has_brackets && (colon == text || colon[-1] != ']')))
        return false;
    const char *begin = text + *has_brackets;
    size_t length = (size_t)(colon - begin);
    if (*has_brackets && length == 0)
        return false;
    length -= *has_brackets;
    if (length >= capacity)
        return false;
    memcpy(host, begin, length);
    host[length] = '\0';
    *port = colon + 1;
    return true;
}

bool
exporter_read_address(const char *text, struct exporter_address *address)
{
    char host[INET6_ADDRSTRLEN + 1];
    const char *port_text;
    uint16_t port;
    bool has_brackets;
    *address = (struct exporter_address){0};
    if (!split(text, host, sizeof host, &has_brackets, &port_text) ||
        !read_port(port_text, &port))
        return false;
    if (has_brackets)
        return read_six(host, port, address);
    return read_four(strcasecmp(host, "localhost") == 0 ? "127.0.0.1" : host, port,
                     address);
}

bool
exporter_is_near_host(const char *host)
{
    char text[EXPORTER_ADDRESS_BYTES];
    struct exporter_address address;
    if (!host)
        return true;
    const char *bracket = strrchr(host, ']');
    bool has_port = strchr(bracket ? bracket : host, ':');
    int length = snprintf(text, sizeof text, "%s%s", host, has_port ? "" : ":80");
    return length >= 0 && (size_t)length < sizeof text &&
           exporter_read_address(text, &address);
}

/* --- listening ---------------------------------------------------------------------------- */

static int
refuse(const char *text, int file)
{
    int error = errno;
    if (file >= 0)
        close(file);
    return report_failure("live", NULL, EXIT_MACHINE, "cannot listen on %s: %s", text,
                          strerror(error));
}

/* Write the socket's address, with the actual port if port 0 was requested. */
static bool
write_text(struct exporter_socket *made)
{
    union exporter_sockaddr at = {0};
    socklen_t length = sizeof at;
    char host[INET6_ADDRSTRLEN] = "";
    if (getsockname(made->file, &at.any, &length) != 0)
        return false;
    if (at.any.sa_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &at.six.sin6_addr, host, sizeof host);
        snprintf(made->text, sizeof made->text, "[%s]:%u", host, ntohs(at.six.sin6_port));
    } else {
        (void)inet_ntop(AF_INET, &at.four.sin_addr, host, sizeof host);
        snprintf(made->text, sizeof made->text, "%s:%u", host, ntohs(at.four.sin_port));
    }
    return true;
}

int
exporter_listen(const char *text, struct exporter_socket *made)
{
    struct exporter_address address;
    const int yes = 1;
    *made = (struct exporter_socket){.file = -1};
    if (!exporter_read_address(text, &address))
        return report_usage("live",
                            "--listen %s: expected ADDRESS:PORT, as 127.0.0.1:9432 or "
                            "[::1]:9432, or unix:PATH",
                            text);
    int file =
        socket(address.to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0 || setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(file, &address.to.any, address.length) != 0 || listen(file, BACKLOG) != 0)
        return refuse(text, file);
    made->file = file;
    made->is_loopback = address.is_loopback;
    if (!write_text(made))
        return refuse(text, file);
    return EXIT_FINE;
}

/* --- a socket in a folder ----------------------------------------------------------------- */

/* Tell whether a socket file is stale: connecting is refused if no process listens. */
static bool
is_left_behind(const struct sockaddr_un *at)
{
    struct stat facts;
    if (lstat(at->sun_path, &facts) != 0 || !S_ISSOCK(facts.st_mode))
        return false;
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_refused = file >= 0 &&
                      connect(file, (const struct sockaddr *)at, sizeof *at) != 0 &&
                      errno == ECONNREFUSED;
    if (file >= 0)
        close(file);
    return is_refused;
}

/* Bind to a path. umask sets the mode at creation: others never have access. */
static bool
bind_path(int file, const struct sockaddr_un *at)
{
    mode_t before = umask(0117);
    bool is_done = bind(file, (const struct sockaddr *)at, sizeof *at) == 0;
    int error = errno;
    if (!is_done && error == EADDRINUSE && is_left_behind(at)) {
        is_done = unlink(at->sun_path) == 0 &&
                  bind(file, (const struct sockaddr *)at, sizeof *at) == 0;
        error = errno;
    }
    umask(before);
    errno = error;
    return is_done;
}

int
exporter_listen_unix(const char *path, struct exporter_socket *made)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    *made = (struct exporter_socket){.file = -1};
    if (path[0] == '\0' || strlen(path) >= sizeof at.sun_path)
        return report_usage("live",
                            "--listen unix:%s: a path of a socket has 1 to %zu bytes",
                            path, sizeof at.sun_path - 1);
    memcpy(at.sun_path, path, strlen(path));
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0 || !bind_path(file, &at) || listen(file, BACKLOG) != 0 ||
        lstat(path, &made->made) != 0)
        return refuse(path, file);
    made->file = file;
    made->is_unix = true;
    snprintf(made->text, sizeof made->text, "%s", path);
    return EXIT_FINE;
}

void
exporter_unlisten(struct exporter_socket *made)
{
    struct stat now;
    if (made->file >= 0)
        close(made->file);
    made->file = -1;
    if (made->is_unix && lstat(made->text, &now) == 0 &&
        now.st_dev == made->made.st_dev && now.st_ino == made->made.st_ino)
        (void)unlink(made->text);
}
