/* SPDX-License-Identifier: Apache-2.0 */
/* See root.h. */
#include "base/root.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/command.h"
#include "base/report.h"

int
root_check(const char *command, const char *root)
{
    struct stat status;
    if (!root || !*root)
        return EXIT_FINE;
    if (stat(root, &status) != 0)
        return report_failure(command, root, EXIT_INPUT, "cannot be read: %s",
                              strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return report_failure(command, root, EXIT_INPUT, "is not a folder");
    if (access(root, R_OK | X_OK) != 0)
        return report_failure(command, root, EXIT_INPUT, "cannot be read: %s",
                              strerror(errno));
    return EXIT_FINE;
}
