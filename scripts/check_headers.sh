#!/bin/sh
# Each public header compiles alone, in C11 and C++11: check_headers.sh INCLUDE-FOLDER
set -eu
include=$1
status=0

check() { # check HEADER COMPILER LANGUAGE
    printf '#include <drystone/%s>\n' "$1" |
        $2 -x "${3%%[0-9]*}" -std="$3" -I"$include" -Wall -Wextra -Werror -pedantic \
            -fsyntax-only - || { echo "$1 does not compile alone as $3"; status=1; }
}

for path in "$include"/drystone/*.h; do
    header=$(basename "$path")
    check "$header" "${CC:-cc}" c11
    if command -v c++ >/dev/null; then check "$header" c++ c++11; fi
done
exit $status
