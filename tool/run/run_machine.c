/* SPDX-License-Identifier: Apache-2.0 */
/* See run_machine.h. */
#include "run/run_machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "run/run_library.h"
#include "run/run_package.h"

const char *
run_variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static enum run_thp_mode
read_thp_mode(const char *root)
{
    char path[RUN_PATH_MAX], text[128];
    int n = snprintf(path, sizeof path, "%s/sys/kernel/mm/transparent_hugepage/enabled",
                     root);
    FILE *file = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
    if (!file)
        return RUN_THP_NOT_KNOWN;
    const char *line = fgets(text, sizeof text, file);
    fclose(file);
    if (!line)
        return RUN_THP_NOT_KNOWN;
    if (strstr(text, "[always]"))
        return RUN_THP_MODE_ALWAYS;
    if (strstr(text, "[madvise]"))
        return RUN_THP_MODE_ADVISED;
    return strstr(text, "[never]") ? RUN_THP_MODE_NEVER : RUN_THP_NOT_KNOWN;
}

static int
read_policy(void)
{
    int mode = 0;
    long result = syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0);
    return result < 0 ? -errno : mode;
}

static unsigned
read_glibc(void)
{
#ifdef __GLIBC__
    const char *text = gnu_get_libc_version(); /* "2.36": take the 36 */
    return strncmp(text, "2.", 2) == 0 ? (unsigned)strtoul(text + 2, NULL, 10) : 0;
#else
    return 0;
#endif
}

void
run_machine_read(struct run_machine *machine, const struct dry_topology *topology,
                 const char *root)
{
    bool is_this = root[0] == '\0';
    *machine = (struct run_machine){
        .topology = topology,
        .thp_mode = read_thp_mode(root),
        .is_thp_disabled = is_this && prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1,
        .policy = is_this ? read_policy() : 0,
        .glibc_minor = read_glibc(),
    };
    run_libraries_find(machine, root);
    run_package_find(machine);
}
