/* SPDX-License-Identifier: Apache-2.0 */

/* Builds findings: their texts, and the commands that follow from their changes. */
#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"
#include "host/doctor/doctor_inside.h"

#define SYSCTL "/proc/sys/"
#define LINE_MAX_BYTES 768

/* --- texts -------------------------------------------------------------------------------- */

/* Add a text to the buffer; returns its offset, 0: no memory. Byte 0 of the buffer is the
   empty text. */
static size_t
add_text(struct dry_doctor *d, const char *bytes, size_t length)
{
    size_t needed = d->text_used + length + 2;
    if (d->lacks_memory ||
        !dryi_memory_grow(&d->memory, (void **)&d->text, &d->text_capacity, needed, 1)) {
        d->lacks_memory = true;
        return 0;
    }
    if (d->text_used == 0)
        d->text[d->text_used++] = '\0';
    size_t at = d->text_used;
    memcpy(d->text + at, bytes, length);
    d->text[at + length] = '\0';
    d->text_used += length + 1;
    return at;
}

static struct dryi_finding *
current(struct dry_doctor *d)
{
    return d->lacks_memory ? NULL : &d->findings[d->finding_count - 1];
}

static const char *
get_separator(enum dryi_doctor_text which)
{
    bool is_lines =
        which == DRYI_TEXT_FIX || which == DRYI_TEXT_UNDO || which == DRYI_TEXT_PERSIST;
    return is_lines ? "\n" : "; ";
}

/* Copy the finding's current text to the end of the buffer, and append `bytes` to the
   copy. */
static void
append(struct dry_doctor *d, enum dryi_doctor_text which, const char *bytes,
       size_t length)
{
    struct dryi_finding *f = current(d);
    if (!f)
        return;
    if (!f->texts[which]) {
        f->texts[which] = add_text(d, bytes, length);
        return;
    }
    const char *separator = get_separator(which);
    size_t old = strlen(d->text + f->texts[which]), between = strlen(separator);
    size_t needed = d->text_used + old + between + length + 1;
    if (!dryi_memory_grow(&d->memory, (void **)&d->text, &d->text_capacity, needed, 1)) {
        d->lacks_memory = true;
        return;
    }
    size_t at = d->text_used;
    memcpy(d->text + at, d->text + f->texts[which], old);
    memcpy(d->text + at + old, separator, between);
    memcpy(d->text + at + old + between, bytes, length);
    d->text_used = at + old + between + length;
    d->text[d->text_used++] = '\0';
    f->texts[which] = at;
}

__attribute__((format(printf, 3, 0))) static void
append_args(struct dry_doctor *d, enum dryi_doctor_text which, const char *format,
            va_list args)
{
    char text[LINE_MAX_BYTES];
    int length = vsnprintf(text, sizeof text, format, args);
    if (length > 0)
        append(d, which, text,
               (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

void
dryi_doctor_say(struct dry_doctor *d, enum dryi_doctor_text which, const char *format,
                ...)
{
    va_list args;
    va_start(args, format);
    append_args(d, which, format, args);
    va_end(args);
}

/* --- findings ----------------------------------------------------------------------------- */

void
dryi_doctor_begin(struct dry_doctor *d, const struct dryi_check *check)
{
    if (d->lacks_memory ||
        !dryi_memory_grow(&d->memory, (void **)&d->findings, &d->finding_capacity,
                          d->finding_count + 1, sizeof *d->findings)) {
        d->lacks_memory = true;
        return;
    }
    d->findings[d->finding_count++] = (struct dryi_finding){
        .check = check, .verdict = DRY_DOCTOR_GOOD, .first_change = d->change_count};
    if (d->text_used == 0)
        add_text(d, "", 0);
}

void
dryi_doctor_judge(struct dry_doctor *d, enum dry_doctor_verdict verdict)
{
    struct dryi_finding *f = current(d);
    if (f && verdict > f->verdict)
        f->verdict = verdict;
}

bool
dryi_doctor_is_good(const struct dry_doctor *d)
{
    return d->lacks_memory ||
           d->findings[d->finding_count - 1].verdict == DRY_DOCTOR_GOOD;
}

void
dryi_doctor_not_known(struct dry_doctor *d, const struct dryi_check *check,
                      const char *path)
{
    dryi_doctor_begin(d, check);
    dryi_doctor_judge(d, DRY_DOCTOR_NOT_KNOWN);
    dryi_doctor_is(d, "%s cannot be read", path);
    dryi_doctor_end(d);
}

void
dryi_doctor_needs_root(struct dry_doctor *d)
{
    struct dryi_finding *f = current(d);
    if (f)
        f->needs_root = true;
}

void
dryi_doctor_fix_at_boot(struct dry_doctor *d, const char *words)
{
    struct dryi_finding *f = current(d);
    if (!f)
        return;
    f->needs_root = f->needs_reboot = true;
    dryi_doctor_fix(d, "# add %s to the kernel's command line", words);
    dryi_doctor_undo(d, "# take it away again");
    dryi_doctor_persist(d,
                        "/etc/default/grub, or where your loader has it:\n"
                        "GRUB_CMDLINE_LINUX_DEFAULT=\"... %s\"\n"
                        "# then: update-grub",
                        words);
}

/* --- changes ------------------------------------------------------------------------------ */

void
dryi_doctor_write(struct dry_doctor *d, const char *path, const char *old_value,
                  const char *new_value)
{
    struct dryi_finding *f = current(d);
    /* An old value that may not be written back would make the change irreversible. */
    if (!f || !dry_doctor_may_write(path, old_value) ||
        !dry_doctor_may_write(path, new_value))
        return;
    struct dryi_change c = {add_text(d, path, strlen(path)),
                            add_text(d, old_value, strlen(old_value)),
                            add_text(d, new_value, strlen(new_value))};
    if (d->lacks_memory ||
        !dryi_memory_grow(&d->memory, (void **)&d->changes, &d->change_capacity,
                          d->change_count + 1, sizeof *d->changes)) {
        d->lacks_memory = true;
        return;
    }
    d->changes[d->change_count++] = c;
    f->change_count++;
    f->needs_root = true;
}

void
dryi_doctor_write_number(struct dry_doctor *d, const char *path, uint64_t old_value,
                         uint64_t new_value)
{
    char from[24], to[24];
    snprintf(from, sizeof from, "%llu", (unsigned long long)old_value);
    snprintf(to, sizeof to, "%llu", (unsigned long long)new_value);
    dryi_doctor_write(d, path, from, to);
}

/* Convert "/proc/sys/vm/swappiness" to "vm.swappiness". */
static const char *
sysctl_name(const char *path, char name[LINE_MAX_BYTES])
{
    size_t length = strlen(path) - (sizeof SYSCTL - 1);
    memcpy(name, path + sizeof SYSCTL - 1, length + 1);
    for (size_t i = 0; i < length; i++)
        if (name[i] == '/')
            name[i] = '.';
    return name;
}

static bool
is_sysctl(const char *path)
{
    return dryi_text_begins(path, strlen(path), SYSCTL) && strlen(path) < LINE_MAX_BYTES;
}

static void
say_command(struct dry_doctor *d, enum dryi_doctor_text which, const char *path,
            const char *value)
{
    char name[LINE_MAX_BYTES];
    if (is_sysctl(path))
        dryi_doctor_say(d, which, "sysctl -w %s=%s", sysctl_name(path, name), value);
    else
        dryi_doctor_say(d, which, "echo %s > %s", value, path);
}

/* Persist pools by a systemd unit, which can fill each node's pool, early at boot before
   memory is fragmented. */
static void
say_unit(struct dry_doctor *d, const char *path, const char *value)
{
    dryi_doctor_persist(d,
                        "/etc/systemd/system/drystone-pages.service:\n"
                        "[Unit]\nDescription=Pools of huge pages\n"
                        "DefaultDependencies=no\nBefore=sysinit.target\n"
                        "[Service]\nType=oneshot\n"
                        "ExecStart=/bin/sh -c 'echo %s > \\\n"
                        "  %s'\n"
                        "[Install]\nWantedBy=sysinit.target\n"
                        "# then: systemctl enable drystone-pages",
                        value, path);
}

static void
say_persistence(struct dry_doctor *d, const char *path, const char *value)
{
    char name[LINE_MAX_BYTES];
    if (is_sysctl(path))
        dryi_doctor_persist(d, "/etc/sysctl.d/90-drystone.conf:\n%s = %s",
                            sysctl_name(path, name), value);
    else if (strstr(path, "/nr_hugepages"))
        say_unit(d, path, value);
    else
        dryi_doctor_persist(d, "/etc/tmpfiles.d/drystone.conf:\nw %s - - - - %s", path,
                            value);
}

/* Copied, because adding texts reallocates the buffer. */
struct change_text {
    char path[256], old_value[64], new_value[64];
};

static void
copy_text(const struct dry_doctor *d, size_t from, char *to, size_t capacity)
{
    size_t length = strlen(d->text + from);
    DRYI_ASSERT(length < capacity);
    memcpy(to, d->text + from, length + 1);
}

void
dryi_doctor_end(struct dry_doctor *d)
{
    if (current(d) && !current(d)->texts[DRYI_TEXT_IS]) {
        dryi_doctor_judge(d, DRY_DOCTOR_NOT_KNOWN);
        dryi_doctor_is(d, "nothing that can be read tells");
    }
    for (size_t i = 0; current(d) && i < current(d)->change_count; i++) {
        const struct dryi_change *c = &d->changes[current(d)->first_change + i];
        struct change_text t;
        copy_text(d, c->path, t.path, sizeof t.path);
        copy_text(d, c->old_value, t.old_value, sizeof t.old_value);
        copy_text(d, c->new_value, t.new_value, sizeof t.new_value);
        say_command(d, DRYI_TEXT_FIX, t.path, t.new_value);
        say_command(d, DRYI_TEXT_UNDO, t.path, t.old_value);
        say_persistence(d, t.path, t.new_value);
    }
}
