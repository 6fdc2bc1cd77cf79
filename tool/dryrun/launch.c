/* SPDX-License-Identifier: Apache-2.0 */
/* See launch.h. */
#include "dryrun/launch.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <drystone/status.h>

#include "base/command.h"
#include "base/report.h"
#include "dryrun/replacements.h"
#include "dryrun/wheel.h"

static int
fail(const struct launch *l, enum exit_code code, const char *subject, const char *text)
{
    return report_failure(l->request.command, subject, code, "%s", text);
}

/* --- our own files ------------------------------------------------------------------------ */

/* Find the stand-in and the hook: next to the installed command, or in the build folder.
   A relative path starts at the command's folder. */
static int
find_support(struct launch *l)
{
    static const char *const places[] = {DRYSTONE_LIBDIR "/drystone", "../standin"};
    char self[LAUNCH_PATH_BYTES / 2];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return fail(l, EXIT_MACHINE, "/proc/self/exe", strerror(errno));
    self[length] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        slash[1] = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *from = places[i][0] == '/' ? "" : self;
        snprintf(l->standin, sizeof l->standin, "%s%s/libdrystone-standin.so", from,
                 places[i]);
        snprintf(l->hook, sizeof l->hook, "%s%s/hook", from, places[i]);
        if (access(l->standin, R_OK) == 0 && access(l->hook, R_OK) == 0)
            return EXIT_FINE;
    }
    return fail(l, EXIT_MACHINE, l->standin,
                "the stand-in is not where it was installed");
}

/* Choose the folder for temporary files. /tmp replaces a TMPDIR that LD_PRELOAD (blanks,
   colons), the stand-in's setup (semicolons) or the hook's JSON would split. */
static const char *
choose_base(void)
{
    const char *base = getenv("TMPDIR");
    for (const char *c = base; c && *c; c++) {
        if ((unsigned char)*c <= ' ' || strchr(":;\"\\", *c))
            return "/tmp";
    }
    return base && *base ? base : "/tmp";
}

/* Link the stand-in and the hook into the temporary folder, because their installed paths
   may contain separators. */
static int
link_support(struct launch *l)
{
    char standin[LAUNCH_PATH_BYTES], hook[LAUNCH_PATH_BYTES];
    char *real[] = {realpath(l->standin, NULL), realpath(l->hook, NULL)};
    snprintf(standin, sizeof standin, "%.4000s/libdrystone-standin.so", l->folder);
    snprintf(hook, sizeof hook, "%.4000s/hook", l->folder);
    bool is_linked = real[0] && real[1] && symlink(real[0], standin) == 0 &&
                     symlink(real[1], hook) == 0;
    int error = errno;
    free(real[0]);
    free(real[1]);
    memcpy(l->standin, standin, sizeof standin);
    memcpy(l->hook, hook, sizeof hook);
    return is_linked ? EXIT_FINE : fail(l, EXIT_MACHINE, l->folder, strerror(error));
}

static int
make_folder(struct launch *l)
{
    const char *base = choose_base();
    int written = snprintf(l->folder, sizeof l->folder, "%s/drystone-XXXXXX", base);
    if (written >= (int)sizeof l->folder - 32 || !mkdtemp(l->folder)) {
        l->folder[0] = '\0';
        return fail(l, EXIT_MACHINE, base, "no temporary folder can be made there");
    }
    snprintf(l->out, sizeof l->out, "%.4000s/out", l->folder);
    if (mkdir(l->out, 0700) != 0)
        return fail(l, EXIT_MACHINE, l->out, strerror(errno));
    return link_support(l);
}

static int
make_replacements(struct launch *l)
{
    char libraries[LAUNCH_PATH_BYTES + 8];
    struct dry_error err;
    snprintf(libraries, sizeof libraries, "%s/lib", l->wheel.folder);
    const struct replacements_request request = {.wheel = libraries,
                                                 .packages = l->wheel.packages,
                                                 .standin = l->standin,
                                                 .folder = l->folder};
    if (replacements_make(&request, &l->preload, &err) != DRY_OK)
        return report_error(l->request.command, libraries, &err);
    return EXIT_FINE;
}

int
launch_begin(struct launch *l)
{
    int code = wheel_find(&l->wheel, l->request.command, l->request.arguments->values[0]);
    if (code == EXIT_FINE)
        code = find_support(l);
    if (code == EXIT_FINE)
        code = make_folder(l);
    return code == EXIT_FINE ? make_replacements(l) : code;
}

static int
remove_one(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about, (void)kind, (void)where;
    remove(path);
    return 0;
}

void
launch_finish(struct launch *l)
{
    if (l->folder[0])
        nftw(l->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    l->folder[0] = '\0';
    free(l->preload);
    l->preload = NULL;
}
