#!/bin/sh
# The subject of a commit has at most 72 characters: check_subjects.sh
# Checked from the commit on at which this became a rule; where a shallow clone lacks that one,
# of the last commit alone.
set -eu
since=b3cda92ee5
git cat-file -e "$since^{commit}" 2>/dev/null && range=$since..HEAD || range=-1
git log --format='%h %s' "$range" |
    awk '{ subject = substr($0, index($0, " ") + 1) }
         length(subject) > 72 { print $1 ": " length(subject) " characters: " subject; bad = 1 }
         END { exit bad }'
