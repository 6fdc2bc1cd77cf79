/* SPDX-License-Identifier: Apache-2.0 */

/* Texts are split in place, from left to right; only the path found is copied. See
   cgroup_text.h for formats and sources. */
#include "host/facts/cgroup_text.h"

#include <string.h>

#include "base/ascii.h"
#include "host/facts/fact_text.h"

struct text {
    const char *bytes;
    size_t length;
};

/* Split off the text before the next `mark`, or all of it; `from` keeps the text after
   the mark. */
static struct text
cut(struct text *from, char mark)
{
    const char *end = from->length ? memchr(from->bytes, mark, from->length) : NULL;
    struct text piece = {from->bytes, end ? (size_t)(end - from->bytes) : from->length};
    size_t gone = piece.length + (end != NULL);
    from->bytes += gone;
    from->length -= gone;
    return piece;
}

static bool
is_word(struct text t, const char *word)
{
    return dryi_text_is(t.bytes, t.length, word);
}

static bool
has_word(struct text list, const char *word)
{
    while (list.length)
        if (is_word(cut(&list, ','), word))
            return true;
    return false;
}

/* Find the controller's line: "4:memory:/a/b", or "0::/a/b" in version 2. */
static bool
find_group(struct text groups, int version, const char *controller, struct text *path)
{
    while (groups.length) {
        struct text line = cut(&groups, '\n');
        struct text number = cut(&line, ':');
        struct text controllers = cut(&line, ':');
        bool is_ours = version == 1 ? has_word(controllers, controller)
                                    : is_word(number, "0") && controllers.length == 0;
        if (is_ours && line.length && line.bytes[0] == '/') {
            *path = line;
            return true;
        }
    }
    return false;
}

struct mount {
    struct text root, point, type, options;
};

/* Parse "31 23 0:28 ROOT POINT OPTIONS [FIELD...] - TYPE SOURCE SUPER-OPTIONS". */
static bool
read_mount(struct text line, struct mount *m)
{
    for (int i = 0; i < 3; i++)
        cut(&line, ' ');
    m->root = cut(&line, ' ');
    m->point = cut(&line, ' ');
    for (;;) {
        if (line.length == 0)
            return false;
        if (is_word(cut(&line, ' '), "-"))
            break;
    }
    m->type = cut(&line, ' ');
    cut(&line, ' ');
    m->options = line;
    return m->root.length && m->point.length && m->point.bytes[0] == '/';
}

static bool
find_mount(struct text mounts, int version, const char *controller, struct mount *found)
{
    while (mounts.length) {
        struct mount m;
        if (!read_mount(cut(&mounts, '\n'), &m))
            continue;
        if (version == 1 ? is_word(m.type, "cgroup") && has_word(m.options, controller)
                         : is_word(m.type, "cgroup2")) {
            *found = m;
            return true;
        }
    }
    return false;
}

/* Remove `root`, the mounted group, from the beginning of a group's path. False: the path
   is not below `root`. */
static bool
below(struct text root, struct text *path)
{
    if (is_word(root, "/"))
        return true;
    if (path->length < root.length || memcmp(path->bytes, root.bytes, root.length) != 0)
        return false;
    if (path->length > root.length && path->bytes[root.length] != '/')
        return false;
    path->bytes += root.length;
    path->length -= root.length;
    return true;
}

static bool
has_dots(struct text path)
{
    while (path.length)
        if (is_word(cut(&path, '/'), ".."))
            return true;
    return false;
}

/* Join mount point and group. A group outside the mount is shown as "/../x"; use the
   mount itself then. */
static bool
join(const struct mount *m, struct text path, struct dryi_cgroup *group)
{
    if (!below(m->root, &path) || has_dots(path))
        path.length = 0;
    if (path.length == 1)
        path.length = 0; /* "/" */
    if (m->point.length + path.length >= sizeof group->path ||
        memchr(m->point.bytes, '\0', m->point.length) ||
        (path.length && memchr(path.bytes, '\0', path.length)))
        return false;
    memcpy(group->path, m->point.bytes, m->point.length);
    if (path.length)
        memcpy(group->path + m->point.length, path.bytes, path.length);
    group->path[m->point.length + path.length] = '\0';
    group->top_length = m->point.length;
    return true;
}

bool
dryi_cgroup_find(const char *groups, size_t groups_length, const char *mounts,
                 size_t mounts_length, const char *controller, struct dryi_cgroup *found)
{
    for (int version = 1; version <= 2; version++) {
        struct text path;
        struct mount mount;
        if (!find_group((struct text){groups, groups_length}, version, controller,
                        &path) ||
            !find_mount((struct text){mounts, mounts_length}, version, controller,
                        &mount) ||
            !join(&mount, path, found))
            continue;
        found->version = version;
        return true;
    }
    return false;
}

bool
dryi_cgroup_up(struct dryi_cgroup *group)
{
    size_t length = strlen(group->path);
    if (length <= group->top_length)
        return false;
    while (length > group->top_length && group->path[length - 1] != '/')
        length--;
    while (length > group->top_length && group->path[length - 1] == '/')
        length--;
    group->path[length] = '\0';
    return true;
}
