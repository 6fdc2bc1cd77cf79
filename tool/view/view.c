/* SPDX-License-Identifier: Apache-2.0 */
/* Open the files of the viewer, and map keys to questions. */
#include "view/view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"
#include "view/answers.h"

const struct command *const view_commands[VIEW_COMMANDS] = {
    &command_explain, &command_info, &command_steps, &command_sweep};

/* With at most this many allocations, blocks are drawn down to 1/4096 of the height, a
   quarter of a pixel in a large picture. */
#define FEW_ALLOCATIONS 65536

/* --- opening ------------------------------------------------------------------------------ */

static void
add_place(struct view_device *d, const char *name, uint32_t moment)
{
    d->places[d->place_count++] = (struct view_place){name, moment};
}

/* Choose the moments of interest. A failure's is one before the OOM, when the blocks that
   were in the way are alive. */
static void
find_places(struct view_device *d)
{
    if (d->v->oom_event != DRY_NONE)
        add_place(d, "oom", d->v->oom_event);
    add_place(d, "peak", d->v->peaks[DRY_CURVE_ACTIVE].moment);
    add_place(d, "end", d->v->dump_moment);
}

static void
measure(struct view_device *d)
{
    d->moments = d->v->dump_moment + 1;
    d->levels = 1;
    while (((uint64_t)d->moments + (UINT64_C(1) << (d->levels - 1)) - 1) >>
           (d->levels - 1) > VIEW_TILE_COLUMNS)
        d->levels++;
    uint64_t reserved = d->v->peaks[DRY_CURVE_RESERVED].bytes;
    uint64_t active = d->v->peaks[DRY_CURVE_ACTIVE].bytes;
    uint64_t parts = d->v->allocation_count <= FEW_ALLOCATIONS ? 4096 : 1024;
    d->min_bytes = (reserved > active ? reserved : active) / parts + 1;
}

static int
open_device(const struct view *view, const char *path, struct view_device *d,
            const struct study_device *studied)
{
    const struct dry_timeline *timeline = studied->timeline;
    struct dry_error err;
    d->timeline = timeline;
    d->replay = studied->replay;
    d->v = dry_timeline_get_view(timeline);
    enum dry_status status = dry_steps_create(timeline, NULL, &d->steps, &err);
    if (status == DRY_OK)
        status = dry_categories_create(timeline, d->steps, NULL, &d->categories, &err);
    if (status != DRY_OK)
        return report_error(view->command, path, &err);
    size_t bytes = d->v->allocation_count * sizeof *d->row_of;
    d->row_of = malloc(bytes + 1);
    if (!category_sums_init(&d->category_sums, d->v, dry_categories_get(d->categories)) ||
        !d->row_of)
        return report_memory(view->command, path);
    memset(d->row_of, 0xff, bytes); /* DRY_NONE */
    measure(d);
    find_places(d);
    return EXIT_FINE;
}

static int
open_file(const struct view *view, struct view_file *file, const char *path)
{
    file->path = path;
    int code = study_open(&file->study, view->command, path, STUDY_EVERY_DEVICE);
    if (code != EXIT_FINE)
        return code;
    struct dry_error err;
    enum dry_status status =
        export_names_init(&file->names, file->study.devices[0].timeline, &err);
    if (status != DRY_OK)
        return report_error(view->command, path, &err);
    file->has_names = true;
    file->devices = calloc(file->study.device_count, sizeof *file->devices);
    if (!file->devices)
        return report_memory(view->command, path);
    for (size_t i = 0; code == EXIT_FINE && i < file->study.device_count; i++)
        code = open_device(view, path, &file->devices[i], &file->study.devices[i]);
    return code;
}

int
view_expect_files(const struct command *command, const struct option_list *operands,
                  const char *why_not)
{
    if (operands->count == 0 || operands->count > VIEW_FILES_MAX)
        return report_usage(command->name, "%zu files are given; 1 to %d are expected",
                            operands->count, VIEW_FILES_MAX);
    for (size_t i = 0; i < operands->count; i++)
        if (strcmp(operands->values[i], "-") == 0)
            return report_usage(command->name, "standard input %s: give a file", why_not);
    return EXIT_FINE;
}

int
view_open(struct view *view, const char *command, const char *const *paths, size_t count)
{
    *view =
        (struct view){.command = command, .files = calloc(count, sizeof *view->files)};
    if (!view->files)
        return report_memory(command, NULL);
    int code = EXIT_FINE;
    for (size_t i = 0; code == EXIT_FINE && i < count; i++)
        code = open_file(view, &view->files[view->file_count++], paths[i]);
    return code;
}

static void
close_file(struct view_file *file)
{
    for (size_t i = 0; file->devices && i < file->study.device_count; i++) {
        free(file->devices[i].row_of);
        category_sums_finish(&file->devices[i].category_sums);
        dry_categories_destroy(file->devices[i].categories);
        dry_steps_destroy(file->devices[i].steps);
    }
    free(file->devices);
    if (file->has_names)
        export_names_finish(&file->names);
    study_close(&file->study);
}

void
view_close(struct view *view)
{
    for (size_t i = 0; i < view->file_count; i++)
        close_file(&view->files[i]);
    free(view->files);
    *view = (struct view){0};
}

/* --- questions ---------------------------------------------------------------------------- */

/* Read a number and skip a slash after it. Leading zeros are refused, so that each
   question has only one key. */
static bool
take_number(const char **key, uint64_t bound, uint32_t *number)
{
    const char *at = *key;
    uint64_t value = 0;
    if (*at < '0' || *at > '9' || (at[0] == '0' && at[1] >= '0' && at[1] <= '9'))
        return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (uint64_t)(*at - '0');
        if (value >= bound)
            return false;
    }
    if (*at != '/' && *at != '\0')
        return false;
    *key = *at == '/' ? at + 1 : at;
    *number = (uint32_t)value;
    return true;
}

/* Read a number at the end of the key. */
static bool
take_last_number(const char *key, uint64_t bound, uint32_t *number)
{
    return take_number(&key, bound, number) && *key == '\0' && key[-1] != '/';
}

static bool
take_word(const char **key, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*key, word, length) != 0 || (*key)[length] != '/')
        return false;
    *key += length + 1;
    return true;
}

static enum view_status
to_status(bool is_fine)
{
    return is_fine ? VIEW_FOUND : VIEW_FAILED;
}

static enum view_status
answer_of_device(struct view_device *d, const char *key, struct answer *answer)
{
    uint32_t level, number;
    if (take_word(&key, "tile"))
        return take_number(&key, d->levels, &level) &&
                       take_last_number(key, UINT64_C(1) << level, &number)
                   ? to_status(answer_tile(d, level, number, answer))
                   : VIEW_NO_SUCH;
    bool is_map = take_word(&key, "map");
    if (is_map || take_word(&key, "owners")) {
        if (!take_last_number(key, d->moments, &number))
            return VIEW_NO_SUCH;
        return to_status(is_map ? answer_map(d, number, answer)
                                : answer_owners(d, number, answer));
    }
    if (take_word(&key, "reserved"))
        return answer_reserved(d, key, answer) ? VIEW_FOUND : VIEW_NO_SUCH;
    if (take_word(&key, "events") &&
        take_last_number(key, d->v->event_count / VIEW_EVENTS_PER_ANSWER + 1, &number))
        return to_status(answer_events(d, number, answer));
    return VIEW_NO_SUCH;
}

static enum view_status
answer_of_file(const struct view *view, struct view_file *file, const char *key,
               struct answer *answer)
{
    if (strcmp(key, "stacks") == 0)
        return to_status(answer_stacks(view, file, answer));
    uint32_t device;
    if (!take_number(&key, file->study.device_count, &device))
        return VIEW_NO_SUCH;
    return answer_of_device(&file->devices[device], key, answer);
}

/* Return the command whose JSON `key` asks for, and its file's *path; NULL: none. */
static const struct command *
find_command(const struct view *view, const char *key, const char **path)
{
    uint32_t file;
    if (!take_number(&key, view->file_count, &file))
        return NULL;
    *path = view->files[file].path;
    for (size_t i = 0; i < VIEW_COMMANDS; i++)
        if (strcmp(key, view_commands[i]->name) == 0)
            return view_commands[i];
    return NULL;
}

bool
view_is_slow(const struct view *view, const char *key)
{
    const char *path;
    return find_command(view, key, &path) || strstr(key, "/reserved/");
}

enum view_status
view_answer(struct view *view, const char *key, struct answer *answer)
{
    *answer = (struct answer){0};
    if (strcmp(key, "about") == 0)
        return to_status(answer_about(view, answer));
    const char *path;
    const struct command *command = find_command(view, key, &path);
    if (command)
        return to_status(answer_command(command, path, true, answer));
    uint32_t file;
    if (!take_number(&key, view->file_count, &file))
        return VIEW_NO_SUCH;
    return answer_of_file(view, &view->files[file], key, answer);
}
