#!/usr/bin/env bash
# Print the C files whose code differs from that at COMMIT, whatever their comments: changed_code.sh COMMIT
set -u

# One file: this script calls itself with two arguments.
code() { gcc -w -fpreprocessed -dD -E -P -x c - 2>/dev/null; }
if [ $# = 2 ]; then
  cmp -s <(git show "$1:$2" 2>/dev/null | code) <(code <"$2") || echo "$2"
  exit 0
fi

git diff --name-only --diff-filter=d "$1" | grep '\.c$' | xargs -r -P "$(nproc)" -n 1 "$0" "$1"
