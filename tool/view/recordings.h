/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RECORDINGS_H
#define TOOL_RECORDINGS_H

/*
 * What makes a written page whole: the engine, and the recordings themselves. The engine
 * comes with drystone.html, which `./dev page` makes and -Dpage installs. Where it is not
 * installed, or the recordings are too large, a page has the answers of report_set.h only.
 */

#include "view/html.h"
#include "view/view.h"

/* Read drystone.html from where it is installed. Returns its bytes, which the caller frees;
   NULL: it is not there, or another page has its name. */
unsigned char *recordings_find_engine(size_t *length);

/*
 * Pack the files of a view, each under its number and name: "0/run.pickle". Returns the
 * bytes of all texts. 0: one of them cannot be read again, or they take more than `most`
 * bytes; `recordings` is empty then. The caller calls html_answers_finish().
 */
size_t recordings_pack(const struct view *view, size_t most,
                       struct html_answers *recordings);

#endif
